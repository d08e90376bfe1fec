import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../../../scripts/docs/generate.js';
import { settings } from '../../../scripts/docs/settings.js';
import { mergeLayers, parseLayer } from '../../../src/config/layers.js';
import { REASONS, type ReasonFacts } from '../../../src/gateway/model/reasons.js';

const read = (file: string): string => readFileSync(`${ROOT}${file}`, 'utf8');
const guides = readdirSync(`${ROOT}docs/carriers`).map((file) => ({ file: `docs/carriers/${file}`, text: read(`docs/carriers/${file}`) }));
const defaults = parseLayer('config/default.yaml', read('config/default.yaml'));
const reasons: Readonly<Partial<Record<string, ReasonFacts>>> = REASONS;

const blocksOf = (text: string, language: string): string[] =>
  [...text.matchAll(new RegExp(`^( *)\`\`\`${language}\\n([\\s\\S]*?)^\\1\`\`\``, 'gm'))].map(([, , block = '']) => block);
const withoutBlocks = (text: string): string => text.replace(/^( *)```[\s\S]*?^\1```/gm, '');
const inlineCode = (text: string): string[] => [...withoutBlocks(text).matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);

/** Every long option that a command of ours has. */
const OPTIONS = new Set(
  readdirSync(`${ROOT}src/cli`, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => [...read(`src/cli/${file}`).matchAll(/[Oo]ption\(\s*'(?:-\w, )?(--[a-z-]+)/g)].map(([, flag = '']) => flag)),
);

/** Rows of the tables under a heading, each as its cells. */
function rowsUnder(text: string, heading: string): string[][] {
  const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^\| (.*) \|$/gm)].slice(2).map(([, row = '']) => row.split(' | '));
}

describe('the guides for carriers', () => {
  it('are six, each found from docs/carriers.md and the README', () => {
    const names = ['asterisk', 'bandwidth', 'freeswitch', 'kamailio', 'telnyx', 'twilio'];
    expect(guides.map(({ file }) => file)).toEqual(names.map((name) => `docs/carriers/${name}.md`));
    for (const name of names) {
      expect(read('docs/carriers.md')).toContain(`(carriers/${name}.md)`);
      expect(read('README.md')).toContain(`(docs/carriers/${name}.md)`);
    }
  });
});

describe.each(guides)('$file', ({ text }) => {
  it('names settings and variables that there are', () => {
    const known = settings();
    const paths = new Set(known.map(({ path }) => path));
    const groups = new Set(known.map(({ path }) => path.split('.')[0]));
    const named = inlineCode(text).flatMap((code) => /^([a-z_]+)\.[a-z][a-z0-9_]*(?=$|:)/.exec(code) ?? []);
    const ours = named.filter((path) => groups.has(path.split('.')[0]) && path.includes('.'));
    expect(ours.length).toBeGreaterThan(3);
    expect(ours.filter((path) => !paths.has(path))).toEqual([]);
    const variables = new Set([...known.map(({ variable }) => variable), 'TRUNKLINE_API_URL', 'TRUNKLINE_API_KEY', 'TRUNKLINE_CONFIG']);
    expect((text.match(/\bTRUNKLINE_[A-Z_]+/g) ?? []).filter((variable) => !variables.has(variable))).toEqual([]);
  });

  it('shows configurations that the gateway takes', () => {
    const blocks = blocksOf(text, 'yaml');
    expect(blocks.length).toBeGreaterThan(0);
    const config = (): unknown => mergeLayers([defaults, ...blocks.map((block) => parseLayer('the guide', block))]);
    expect(config).not.toThrow();
  });

  it('shows commands with options that there are', () => {
    const commands = blocksOf(text, 'sh').flatMap((block) => block.match(/npx trunkline .*/g) ?? []);
    const named = commands.flatMap((command) => command.replace(/ #.*/, '').match(/ --[a-z-]+/g) ?? []).map((flag) => flag.trim());
    expect(named.length).toBeGreaterThan(2);
    expect(named.filter((flag) => !OPTIONS.has(flag))).toEqual([]);
  });

  it('names reasons that there are, with their status', () => {
    const pairs = [...withoutBlocks(text).matchAll(/\b([3-6]\d\d) ([A-Z_]{6,})\b/g)];
    expect(pairs.length).toBeGreaterThan(3);
    expect(pairs.filter(([, status, code = '']) => String(reasons[code]?.sipStatus) !== status).map(([pair]) => pair)).toEqual([]);
    const rows = rowsUnder(text, 'What goes wrong');
    expect(rows.length).toBeGreaterThan(5);
    const codes = rows.flatMap(([seen = '']) => seen.replace(/`[^`]*`/g, '').match(/\b[A-Z]+_[A-Z_]+\b/g) ?? []);
    expect(codes.filter((code) => reasons[code] === undefined)).toEqual([]);
  });

  it('names events of the log that there are', () => {
    const events = inlineCode(text).filter((code) => /^sip\.(?!example\b)[a-z]+\.[a-z_]+$/.test(code));
    expect(events.filter((event) => !read('docs/operations.md').includes(`\`${event}\``))).toEqual([]);
  });

  it('says which Q.850 causes our refusals have', () => {
    const rows = rowsUnder(text, 'When we refuse').map(([ours = '', theirs = '']) => ({
      codes: ours.match(/\b[A-Z_]{6,}\b/g) ?? [],
      theirs,
    }));
    const withCause = rows.filter(({ theirs, codes }) => codes.length > 0 && /^\d+\b/.test(theirs));
    for (const { codes, theirs } of withCause)
      for (const code of codes) expect([code, reasons[code]?.q850]).toEqual([code, Number.parseInt(theirs, 10)]);
  });
});

it('kamailio.cfg of docs/carriers/kamailio.md is taken by Kamailio, and so is not one with a word that it does not know', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kamailio-'));
  try {
    const [config = ''] = blocksOf(read('docs/carriers/kamailio.md'), 'kamailio');
    const taken = (text: string): boolean => {
      writeFileSync(join(directory, 'kamailio.cfg'), text);
      return spawnSync('kamailio', ['-c', '-f', join(directory, 'kamailio.cfg')]).status === 0;
    };
    expect([taken(config), taken(config.replaceAll('t_relay', 't_rely'))]).toEqual([true, false]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
