import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { currentText, expectedText, FILES, ROOT, SECTIONS } from '../../../scripts/docs/generate.js';
import { settings } from '../../../scripts/docs/settings.js';
import { environmentLayer, parseLayer } from '../../../src/config/layers.js';
import { configSchema } from '../../../src/config/schema.js';

describe('generated sections of the documents (npm run docs makes them anew)', () => {
  it.each(SECTIONS.map((section) => [`${section.file}: ${section.name}`, section] as const))('%s', (_name, section) => {
    expect(currentText(section)).toBe(expectedText(section));
  });

  it.each(FILES)('$file', async ({ file, render }) => {
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

  it('says what each means', () => {
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

describe('links between the documents', () => {
  const documents = ['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', ...markdownOf('docs')];

  it.each(documents)('%s leads to files and headings that exist', (document) => {
    const text = readFileSync(`${ROOT}${document}`, 'utf8').replace(/^```[\s\S]*?^```/gm, '');
    const broken = [...text.matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].filter(([, file = '', anchor]) => {
      const target = file === '' ? `${ROOT}${document}` : resolve(dirname(`${ROOT}${document}`), file);
      if (!existsSync(target)) return true;
      return anchor !== undefined && !anchorsOf(target).includes(anchor);
    });
    expect(broken.map(([link]) => link)).toEqual([]);
  });
});

function markdownOf(folder: string): string[] {
  const files = readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' });
  return files.filter((file) => file.endsWith('.md')).map((file) => `${folder}/${file}`);
}

/** As GitHub makes them. */
function anchorsOf(file: string): string[] {
  return [...readFileSync(file, 'utf8').matchAll(/^#{1,6} (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
