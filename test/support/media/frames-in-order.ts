const FRAME_BYTES = 160;

/** How many frames of `expected` are in `heard`, in their order; what was made up between them, or came from others, does not count. */
export function framesInOrder(heard: Buffer, expected: Buffer): number {
  const ours = framesOf(expected);
  // The longest common subsequence, a row for each frame that was heard.
  let before = new Uint32Array(ours.length + 1);
  for (const frame of framesOf(heard)) {
    const now = new Uint32Array(ours.length + 1);
    for (const [place, one] of ours.entries())
      now[place + 1] = one === frame ? before[place]! + 1 : Math.max(before[place + 1]!, now[place]!);
    before = now;
  }
  return before[ours.length]!;
}

function framesOf(bytes: Buffer): string[] {
  return Array.from({ length: Math.floor(bytes.length / FRAME_BYTES) }, (_, place) =>
    bytes.toString('latin1', place * FRAME_BYTES, (place + 1) * FRAME_BYTES),
  );
}
