import { readFileSync } from 'node:fs';

/** A file's text; '' if it cannot be read. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
