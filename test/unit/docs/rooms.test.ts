import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../../../scripts/docs/generate.js';

interface Rule {
  readonly name: string;
  readonly from: { readonly path?: string | readonly string[]; readonly pathNot?: string | readonly string[] };
  readonly to: { readonly path?: string | readonly string[]; readonly pathNot?: string | readonly string[] };
}

const { forbidden } = createRequire(import.meta.url)(`${ROOT}.dependency-cruiser.cjs`) as { forbidden: readonly Rule[] };
const files = [
  'src',
  'native',
  'scripts',
  'test',
  'bench',
  'docs',
  'node_modules',
  'node_modules/@fastify',
  'node_modules/@echogarden',
].flatMap((folder) =>
  readdirSync(`${ROOT}${folder}`, { recursive: folder === 'src', encoding: 'utf8' }).flatMap((file) => [
    `${folder}/${file}`,
    `${folder}/${file}/`,
  ]),
);
const rooms = [
  ...readdirSync(`${ROOT}src`, { withFileTypes: true }).map(({ name }) => name),
  ...readdirSync(`${ROOT}src/gateway`, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `gateway/${name}`),
];

/** `^src/(a|b)/` is two patterns: each has to match something. */
function alternatives(pattern: string): string[] {
  const group = /\((?:\?!)?([^()?]+)\)/.exec(pattern);
  if (group === null) return [pattern];
  return (group[1] ?? '').split('|').flatMap((one) => alternatives(pattern.replace(group[0], one)));
}

const list = (paths: string | readonly string[] | undefined): readonly string[] => (typeof paths === 'string' ? [paths] : (paths ?? []));

describe('the rules of npm run rules', () => {
  const patterns = forbidden.flatMap(({ name, from, to }) =>
    [from.path, from.pathNot, to.path, to.pathNot]
      .flatMap(list)
      .flatMap(alternatives)
      // Modules of Node.js are no files.
      .filter((pattern) => !pattern.startsWith('^node:?'))
      .map((pattern) => [name, pattern] as const),
  );

  it.each([...new Map(patterns.map((row) => [row[1], row])).values()])('match a file: %s: %s', (_name, pattern) => {
    expect(files.some((file) => new RegExp(pattern).test(file))).toBe(true);
  });

  it.each(rooms.filter((room) => room !== 'cli' && room !== 'gateway'))('define what src/%s may import', (room) => {
    expect(forbidden.map(({ name }) => name)).toContain(`room-${room.replace('/', '-')}`);
  });
});
