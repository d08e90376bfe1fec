/** Root mean square level of 16-bit samples in dB relative to full scale; `-Infinity` for silence or nothing. */
export function levelDbfs(samples: Int16Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return samples.length === 0 ? -Infinity : 10 * Math.log10(sum / samples.length / 32_768 ** 2);
}
