/** The next turn of the event loop: what was ready has happened. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Turns of the event loop go by until it is so: for files, sockets and threads, which take the time that they take. */
export async function untilSo(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await turn();
}
