import { readFileSync } from 'node:fs';

/** What stands in a file; '' where it cannot be read. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
