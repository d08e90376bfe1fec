/** For values of `interruption_threshold`: after how much silence the caller has finished, in milliseconds. Sorted by value. */
export type EndOfSpeechTable = readonly (readonly [threshold: number, silenceMs: number])[];

/** The agent's own default, which leaves it to the provider. */
const NEUTRAL = 100;

/** From `50=250,200=1000`. The schema of the settings has checked its form. */
export function endOfSpeechTable(text: string): EndOfSpeechTable {
  return text
    .split(',')
    .map((pair) => pair.split('=').map(Number))
    .map(([threshold = 0, silenceMs = 0]) => [threshold, silenceMs] as const)
    .sort(([a], [b]) => a - b);
}

/** On the straight line between two values of the table, and beyond it as at its nearest. `null`: the provider's own default. */
export function endOfSpeechMs(table: EndOfSpeechTable, threshold: number): number | null {
  if (threshold === NEUTRAL) return null;
  const after = table.findIndex(([value]) => value >= threshold);
  const [to, toMs] = table.at(after) ?? [0, 0];
  const [from, fromMs] = table.at(Math.max(0, after - 1)) ?? [0, 0];
  if (after <= 0 || from === to) return toMs;
  return Math.round(fromMs + ((toMs - fromMs) * (threshold - from)) / (to - from));
}
