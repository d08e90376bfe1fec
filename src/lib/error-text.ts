/** What a thrown value says, for a log line or a message. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
