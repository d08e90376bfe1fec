/** Whoever speaks and listens on a leg: the built-in test line, or the test carrier's caller. */
export interface LegAgent {
  /** Audio may flow from now on. */
  start(): void;
  /** A key press, reported once (event codes of RFC 4733 §3.2). */
  digit(event: number): void;
  /**
   * One frame of 20 ms: `heard` is what came in, `spoken` is to be filled with what goes out. Both 16-bit linear at 8 kHz and
   * reused for the next frame. Not called before `start`, nor while the leg is held.
   */
  frame(heard: Int16Array, spoken: Int16Array): void;
  /** The leg is gone; nothing is called afterwards. */
  close(): void;
}
