import { readFileSync } from 'node:fs';
import { isMap, isScalar, isSeq, parseDocument, type Pair } from 'yaml';
import { table } from './table.js';

export interface Setting {
  readonly path: string;
  readonly variable: string;
  readonly byDefault: string;
  readonly meaning: string;
}

/** Names that differ from TRUNKLINE_ and the path. */
const VARIABLES: Readonly<Record<string, string>> = { 'rtpengine.address': 'TRUNKLINE_RTPENGINE' };

/** Every setting of config/default.yaml, with the comment behind it. */
export function settings(): Setting[] {
  const document = parseDocument(readFileSync(new URL('../../config/default.yaml', import.meta.url), 'utf8'));
  return isMap(document.contents) ? document.contents.items.flatMap((pair) => fromPair(pair, '')) : [];
}

function fromPair({ key, value }: Pair, prefix: string): Setting[] {
  const path = `${prefix}${isScalar(key) ? String(key.value) : ''}`;
  if (isMap(value)) return value.items.flatMap((pair) => fromPair(pair, `${path}.`));
  if (!isScalar(value) && !isSeq(value)) return [];
  return [
    {
      path,
      variable: VARIABLES[path] ?? `TRUNKLINE_${path.replaceAll('.', '_').toUpperCase()}`,
      byDefault: isSeq(value) ? `[${value.items.map(String).join(', ')}]` : String(value.value),
      meaning: value.comment?.trim() ?? '',
    },
  ];
}

export function settingsTable(): string {
  const groups = new Map<string, Setting[]>();
  for (const setting of settings()) {
    const group = setting.path.includes('.') ? (setting.path.split('.')[0] ?? '') : 'general';
    groups.set(group, [...(groups.get(group) ?? []), setting]);
  }
  const rows = [...groups.values()].flat();
  return table(
    ['setting', 'environment', 'default', 'meaning'],
    rows.map(({ path, variable, byDefault, meaning }) => [`\`${path}\``, `\`${variable}\``, `\`${byDefault}\``, meaning]),
  );
}
