import type { E164 } from './e164.js';
import { NUMBER_ZONES } from './number-zones-data.js';

let byPrefix: ReadonlyMap<string, readonly string[]> | undefined;

/** Time zones (IANA) of a number, by its longest known prefix; empty: unknown. */
export function zonesOf(number: E164): readonly string[] {
  byPrefix ??= readZones(NUMBER_ZONES);
  for (let end = number.length; end > 1; end -= 1) {
    const zones = byPrefix.get(number.slice(1, end));
    if (zones !== undefined) return zones;
  }
  return [];
}

/** Zones and then their prefixes, and so on. */
function readZones(text: string): ReadonlyMap<string, readonly string[]> {
  const map = new Map<string, readonly string[]>();
  let zones: string[] = [];
  let hasPrefixes = true;
  for (const word of text.trim().split(/\s+/)) {
    if (/^\d/.test(word)) {
      map.set(word, zones);
      hasPrefixes = true;
    } else if (hasPrefixes) {
      zones = [word];
      hasPrefixes = false;
    } else zones.push(word);
  }
  return map;
}
