import { readFileSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';

// Makes src/gateway/model/number-zones-data.ts of libphonenumber's resources/timezones/map_data.txt (`<prefix>|<zone>&<zone>…`):
//   npx tsx scripts/number-zones.ts map_data.txt

const OUT = 'src/gateway/model/number-zones-data.ts';
const WIDTH = 132;

const [, , file = ''] = process.argv;
const all = new Map(
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => /^\d+\|/.test(line))
    .map((line) => line.split('|') as [string, string]),
);

/** What the longest shorter prefix says. */
function inherited(prefix: string): string | undefined {
  for (let length = prefix.length - 1; length > 0; length -= 1) {
    const zones = all.get(prefix.slice(0, length));
    if (zones !== undefined) return zones;
  }
  return undefined;
}

const byZones = new Map<string, string[]>();
for (const [prefix, zones] of all) {
  if (inherited(prefix) === zones) continue;
  byZones.set(zones, [...(byZones.get(zones) ?? []), prefix]);
}
const words = [...byZones]
  .sort(([one], [other]) => (one < other ? -1 : 1))
  .flatMap(([zones, prefixes]) => [...zones.split('&'), ...prefixes.sort()]);

const lines: string[] = [];
for (const word of words) {
  const last = lines.at(-1);
  if (last === undefined || last.length + word.length + 1 > WIDTH) lines.push(word);
  else lines[lines.length - 1] = `${last} ${word}`;
}

const source = `// Made by scripts/number-zones.ts of libphonenumber's timezones/map_data.txt (Google, Apache-2.0). Do not edit.

/** Words: time zones (IANA), then the prefixes of numbers that are in one of them, and so on. The longest prefix counts. */
export const NUMBER_ZONES = \`
${lines.join('\n')}
\`;
`;
writeFileSync(OUT, source);
execFileSync('npx', ['oxfmt', OUT], { stdio: 'inherit' });
