import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, it } from 'vitest';
import { ROOT } from '../../../scripts/docs/generate.js';

const { forbidden } = createRequire(import.meta.url)(`${ROOT}.dependency-cruiser.cjs`) as {
  readonly forbidden: readonly { readonly from: { readonly pathNot?: string }; readonly to: { readonly path?: string } }[];
};
const page = readFileSync(`${ROOT}docs/security.md`, 'utf8');
const section = /^## Work that a tenant's text makes\n([\s\S]*?)^## /m.exec(page)?.[1] ?? '';
const rows = [...section.matchAll(/^\| [^|]+ \| \[(src\/[^\]]+)\][^|]*\| (?:`([^`]+)`|—) \| [^|]+ \|$/gm)].map(([, file = '', name]) => ({
  file,
  name,
}));

it('each place of work on a tenant\u2019s text exists', () => {
  expect(rows.length).toBeGreaterThanOrEqual(10);
  for (const { file } of rows) expect(existsSync(`${ROOT}${file}`), file).toBe(true);
});

it.each(rows.filter(({ name }) => name !== undefined))('only $file may import $name', ({ file, name }) => {
  const rule = forbidden.find(({ to }) => to.path === `node_modules/${String(name)}/`);
  expect(new RegExp(rule?.from.pathNot ?? '^$').test(file)).toBe(true);
});

it('the table has each package that a rule of its kind keeps in one file', () => {
  const ofOneFile = forbidden.filter(({ from }) => from.pathNot?.endsWith('\\.ts$') === true && !from.pathNot.includes('('));
  const packages = ofOneFile.flatMap(({ to }) => /^node_modules\/([^()]+)\/$/.exec(to.path ?? '')?.[1] ?? []);
  expect(packages.sort()).toEqual(rows.flatMap(({ name }) => name ?? []).sort());
});
