const MAX = 32_767;
const MIN = -32_768;

/** Adds two signals of 16-bit samples, sample by sample, into `mixed`; what is too loud is clipped. All three have the same length. */
export function mix(one: Int16Array, other: Int16Array, mixed: Int16Array): void {
  for (let index = 0; index < mixed.length; index += 1) {
    const sum = (one[index] ?? 0) + (other[index] ?? 0);
    mixed[index] = sum > MAX ? MAX : sum < MIN ? MIN : sum;
  }
}
