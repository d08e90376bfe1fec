import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { table } from './table.js';

const RULES = new URL('../../.dependency-cruiser.cjs', import.meta.url);
const { forbidden } = createRequire(import.meta.url)(RULES.pathname) as {
  readonly forbidden: readonly { readonly name: string; readonly comment?: string }[];
};

/** The rooms of src/ that have a rule: what each is by its README, and what it may import by .dependency-cruiser.cjs. */
export function roomTable(): string {
  const rooms = forbidden.flatMap(({ comment = '' }) => {
    const [, room, imports = ''] = /^src\/([a-z-]+) imports only (.*)$/.exec(comment) ?? [];
    return room === undefined ? [] : [{ room, imports: imports.replaceAll('src/', '') }];
  });
  const rows = rooms.map(({ room, imports }) => [
    `[${room}](src/${room}/README.md)`,
    firstParagraphOf(room),
    imports === 'itself' ? '—' : imports,
  ]);
  return table(['room', 'what it is', 'imports'], rows);
}

function firstParagraphOf(room: string): string {
  const text = readFileSync(new URL(`../../src/${room}/README.md`, import.meta.url), 'utf8');
  return text.split('\n\n')[1]?.trim() ?? '';
}
