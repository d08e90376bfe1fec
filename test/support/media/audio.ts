/** A repeatable noise in the voice band; each seed gives another one, unlike all others. */
export function voiceLikeNoise(samples: number, seed: number, amplitude = 8_000): Int16Array {
  let state = seed;
  let low = 0;
  return Int16Array.from({ length: samples }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    low = 0.6 * low + (0.4 * state) / 2 ** 31;
    return low * amplitude * 2;
  });
}

/** A pure tone: 16-bit linear at 8 kHz. */
export function tone(hertz: number, milliseconds: number): Int16Array {
  return Int16Array.from({ length: 8 * milliseconds }, (_, n) => Math.round(8_000 * Math.sin((2 * Math.PI * hertz * n) / 8_000)));
}
