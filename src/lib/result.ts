/** The outcome of something that can fail in an expected way. Unexpected failures throw. */
export type Result<T, E> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: E };

export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

export function err<E>(error: E): { readonly ok: false; readonly error: E } {
  return { ok: false, error };
}

/** What a thrown value says, for a log line or a message. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Closes a switch over a union: adding a member without a case is a compile error. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value: ${JSON.stringify(value)}`);
}
