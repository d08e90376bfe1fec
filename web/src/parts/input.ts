import { ApiError } from '../../../src/client/api-error.js';

// What was typed, as the API takes it. What cannot be sent is refused in the API's own shape, so that a form shows both alike.

export function refuse(path: string, message: string): never {
  throw new ApiError(`The form has errors: ${path} ${message}`, {
    status: 400,
    code: 'VALIDATION',
    errors: [{ error: 'VALIDATION', message, path }],
  });
}

/** `null`: empty. */
export function numberOf(path: string, text: string): number | null {
  if (text.trim() === '') return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : refuse(path, 'must be a number');
}

/** `null`: empty. */
export function jsonOf(path: string, text: string): unknown {
  if (text.trim() === '') return null;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    return refuse(path, `is not JSON: ${error instanceof Error ? error.message : ''}`);
  }
}

/** Lines, or what commas and spaces part. */
export function wordsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}

/** As it is shown to be changed. */
export function jsonText(value: unknown): string {
  const isEmpty = value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0);
  return isEmpty ? '' : JSON.stringify(value, null, 2);
}

/** The version of a record, so that nobody's change is lost. */
export function ifMatch({ updated_at: updatedAt }: { readonly updated_at: string }): { 'if-match': string } {
  return { 'if-match': `"${updatedAt}"` };
}
