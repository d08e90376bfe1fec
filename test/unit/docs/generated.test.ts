import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { currentText, expectedText, FILES, ROOT, SECTIONS } from '../../../scripts/docs/generate.js';
import { logEvents } from '../../../scripts/docs/logs.js';
import { settings } from '../../../scripts/docs/settings.js';
import { environmentLayer, parseLayer } from '../../../src/config/layers.js';
import { configSchema } from '../../../src/config/schema.js';

describe('the generated sections of the documents (npm run docs)', () => {
  it.each(SECTIONS.map((section) => [`${section.file}: ${section.name}`, section] as const))('are current: %s', (_name, section) => {
    expect(currentText(section)).toBe(expectedText(section));
  });

  it.each(FILES)('are current: $file', async ({ file, render }) => {
    expect(readFileSync(`${ROOT}${file}`, 'utf8')).toBe(await render());
  });
});

function schemaPaths(schema: z.ZodType, prefix = ''): string[] {
  if (!(schema instanceof z.ZodObject)) return [prefix.slice(0, -1)];
  return Object.entries(schema.shape as Record<string, z.ZodType>).flatMap(([name, inner]) => schemaPaths(inner, `${prefix}${name}.`));
}

describe('the table of settings', () => {
  const table = readFileSync(`${ROOT}docs/settings.md`, 'utf8').matchAll(/^\| `([a-z0-9_.]+)` \| `(TRUNKLINE_[A-Z0-9_]+)` \|/gm);
  const rows = [...table].map(([, path = '', variable = '']) => ({ path, variable }));

  it('has every setting of the schema and no other', () => {
    expect(rows.map(({ path }) => path).sort()).toEqual(schemaPaths(configSchema).sort());
  });

  it('has a meaning for each', () => {
    expect(settings().filter(({ meaning }) => meaning === '')).toEqual([]);
  });

  it('names variables that set their setting', () => {
    const defaults = parseLayer('config/default.yaml', readFileSync(`${ROOT}config/default.yaml`, 'utf8')).settings;
    for (const { path, variable } of rows) {
      const [group = '', name] = path.split('.');
      const set = environmentLayer({ [variable]: 'x' }, defaults).settings;
      expect(set).toEqual(name === undefined ? { [group]: 'x' } : { [group]: { [name]: 'x' } });
    }
  });
});

describe('log events', () => {
  const events = logEvents(ROOT);

  it('are named area.event, with fields in snake case', () => {
    expect(events.length).toBeGreaterThan(100);
    expect(events.filter(({ event }) => !/^[a-z_]+(\.[a-z_]+)+$/.test(event))).toEqual([]);
    expect(events.filter(({ fields }) => fields.some((name) => !/^[a-z][a-z0-9_]*$/.test(name)))).toEqual([]);
  });

  it('carry the failure as `error`', () => {
    expect(events.filter(({ fields }) => fields.includes('err'))).toEqual([]);
  });
});
