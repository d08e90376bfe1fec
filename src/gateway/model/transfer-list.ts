import { parseE164, type E164 } from './e164.js';

// An agent's transfer_list: texts, or objects that have one, in a list or by name.

/** Its numbers. `null`: it has no entries, and limits nothing. */
export function listedNumbers(transferList: unknown): readonly E164[] | null {
  const entries = entriesOf(transferList);
  return entries.length === 0 ? null : entries.flatMap(textsOf).flatMap((text) => parseE164(text) ?? []);
}

/** Texts with the digits of a number that are in no form in which one is dialled, such as `+49(0)30…`. */
export function doubtfulNumbers(transferList: unknown): readonly string[] {
  return entriesOf(transferList)
    .flatMap(textsOf)
    .filter((text) => /^\s*\+?[\d\s().-]+$/.test(text) && text.replace(/\D/g, '').length >= MIN_DIGITS && parseE164(text) === undefined);
}

const MIN_DIGITS = 7;

function entriesOf(transferList: unknown): readonly unknown[] {
  if (typeof transferList !== 'object' || transferList === null) return [];
  return Array.isArray(transferList) ? (transferList as readonly unknown[]) : Object.values(transferList);
}

function textsOf(entry: unknown): string[] {
  const values: readonly unknown[] = typeof entry === 'object' && entry !== null ? Object.values(entry) : [entry];
  return values.filter((value) => typeof value === 'string');
}
