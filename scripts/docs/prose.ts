import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, resolve } from 'node:path';
import { longOptions } from './cli.js';
import { testTitles } from './conformance.js';
import { ROOT } from './generate.js';
import { logEvents } from './logs.js';
import { settings } from './settings.js';
import { mergeLayers, parseLayer } from '../../src/config/layers.js';
import { API_ERRORS } from '../../src/gateway/api/schemas/api-error.js';
import { REASONS, type ReasonFacts } from '../../src/gateway/model/reasons.js';

/** A Markdown page. Each text has the length of the page: what a variant leaves out is blank, so that an index leads to the same line. */
export interface Page {
  readonly file: string;
  readonly text: string;
  /** Without generated sections. */
  readonly written: string;
  /** Also without code blocks. */
  readonly prose: string;
}

/** Something that a rule inspected: where it begins in the page, and what is wrong with it. */
interface Item {
  readonly at: number;
  readonly fault: string | undefined;
}

interface Rule {
  readonly name: string;
  readonly pages: RegExp;
  /** The rule inspects at least this many items: a pattern that matches nothing finds no fault. */
  readonly least: number;
  readonly check: (page: Page) => readonly Item[];
  /** A page with a fault: its file and text. */
  readonly wrong: readonly [file: string, text: string];
}

const CODE_BLOCK = /^( *)```(\w*)[^\n]*\n([\s\S]*?)^\1```/gm;
const GENERATED = /<!-- ([\w-]+): made by npm run \w+ -->[\s\S]*?<!-- \1: end -->/g;
const HAND_WRITTEN = /^(?!CHANGELOG)/;
const GUIDES = /^docs\/carriers\//;

export function pageOf(file: string, text: string): Page {
  const blank = (from: string, pattern: RegExp): string => from.replace(pattern, (found) => found.replace(/[^\n]/g, ' '));
  const written = blank(text, GENERATED);
  return { file, text, written, prose: blank(written, CODE_BLOCK) };
}

const read = (file: string): string => readFileSync(`${ROOT}${file}`, 'utf8');

export const PAGES: readonly Page[] = [
  ...['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md'],
  ...['bench', 'docker', 'docs', 'src', 'test/fixtures'].flatMap((folder) =>
    readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  ),
]
  .filter((file) => file.endsWith('.md'))
  .map((file) => pageOf(file, read(file)));

/** Anchors of a page's headings, as GitHub makes them. */
export const anchorsOf = (text: string): readonly string[] =>
  [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

const SETTINGS = settings();
const PATHS = new Set(SETTINGS.map(({ path }) => path));
/** The log writes `log.lines_dropped` past the logger. */
const EVENTS = new Set(['log.lines_dropped', ...logEvents(ROOT).map(({ event }) => event)]);
const AREAS = new Set([...PATHS, ...EVENTS].map((name) => name.split('.')[0] ?? ''));
const VARIABLES = new Set(SETTINGS.map(({ variable }) => variable));
for (const name of ['TRUNKLINE_API_URL', 'TRUNKLINE_API_KEY', 'TRUNKLINE_CONFIG']) VARIABLES.add(name);
/** Names of others: a host, a message of Twilio, an attribute of OpenTelemetry. */
const OTHERS = new Set(['sip.example.com', 'api.twilio.com', 'media.payload', 'sip.response.status_code']);
const OPTIONS = longOptions();
const DEFAULTS = parseLayer('config/default.yaml', read('config/default.yaml'));
const reasons: Readonly<Partial<Record<string, ReasonFacts>>> = REASONS;
const apiErrors: Readonly<Partial<Record<string, readonly [status: number, meaning: string]>>> = API_ERRORS;
const { forbidden } = createRequire(import.meta.url)(`${ROOT}.dependency-cruiser.cjs`) as {
  forbidden: readonly { readonly comment?: string }[];
};

/** `instead of | write` of docs/style.md, as patterns. */
const WORDS =
  /\b(?:his|for so long|so many|that there (?:is|are)|tells?|told|gets to know|taken up|said to be|thrown away|made anew|is of use|left to chance)\b|(?:^|[.:] )Of an? [^.]+ follows\b/gim;

/** The same, in comments of the sources. */
const COMMENT_WORDS =
  /\b(?:whoever|himself|his|told of|tells? of|so often|so many|for so long|gets to know)\b|^Of (?:a|an|the|all|each|it|several|those)\b/i;

/** The lines of comments in a source file, without their marks. */
export function commentsOf(source: string): readonly string[] {
  return [...source.matchAll(/(?:^\s*|\s)(?:\/\*\*|\*|\/\/) ([^\n]*)/gm)].map(([, text = '']) => text.replace(/ ?\*\/$/, ''));
}

/** Comments of the sources that docs/style.md would have put otherwise. */
export function commentFaults(): readonly string[] {
  return readdirSync(`${ROOT}src`, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
    .flatMap((file) =>
      commentsOf(read(`src/${file}`))
        .filter((text) => COMMENT_WORDS.test(text))
        .map((text) => `src/${file}: ${text}`),
    );
}

const titles = new Map<string, readonly string[]>();
function titlesOf(file: string): readonly string[] {
  const found = titles.get(file) ?? testTitles(file);
  titles.set(file, found);
  return found;
}

/** A whole title, or with "…" the beginning of exactly one. */
function isTitle(file: string, title: string): boolean {
  const all = titlesOf(file);
  return title.endsWith('…') ? all.filter((one) => one.startsWith(title.slice(0, -1))).length === 1 : all.includes(title);
}

/** One item for each match of the pattern. */
function each(text: string, pattern: RegExp, faultOf: (...groups: string[]) => string | undefined): Item[] {
  return [...text.matchAll(pattern)].map((match) => {
    const groups: readonly (string | undefined)[] = match.slice(1);
    return { at: match.index, fault: faultOf(...groups.map((group) => group ?? '')) };
  });
}

const unless = (isFine: boolean, fault: string): string | undefined => (isFine ? undefined : fault);

/** Rows of the tables under a heading. */
function rows({ prose }: Page, heading: RegExp): readonly { readonly at: number; readonly cells: readonly string[] }[] {
  const from = prose.search(heading);
  if (from < 0) return [];
  const length = prose.slice(from + 1).search(/^## /m);
  const section = prose.slice(from, length < 0 ? undefined : from + 1 + length);
  return [...section.matchAll(/^\| (.*) \|$(?!\n\| ---)/gm)]
    .filter(([, row = '']) => !row.startsWith('---'))
    .map(({ index, 1: row = '' }) => ({ at: from + index, cells: row.split(' | ') }));
}

/** Code blocks of some languages, with the index of their text. */
const blocks = (text: string, language: RegExp): { at: number; text: string }[] =>
  [...text.matchAll(CODE_BLOCK)]
    .filter(([, , name = '']) => language.test(name))
    .map(({ index, 0: all, 3: block = '' }) => ({ at: index + all.indexOf('\n') + 1, text: block }));

export const RULES: readonly Rule[] = [
  {
    name: 'links lead to files and headings that exist',
    pages: /./,
    least: 500,
    check: ({ file, text }) =>
      each(
        text.replace(CODE_BLOCK, (block) => block.replace(/[^\n]/g, ' ')),
        /\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g,
        (path = '', anchor = '') => {
          const target = path === '' ? `${ROOT}${file}` : resolve(dirname(`${ROOT}${file}`), path);
          if (!existsSync(target)) return `${path} does not exist`;
          return unless(anchor === '' || anchorsOf(readFileSync(target, 'utf8')).includes(anchor), `${path} has no heading #${anchor}`);
        },
      ),
    wrong: ['README.md', '[a](docs/api.md#no-such-heading)'],
  },
  {
    name: 'dotted names are settings or log events',
    pages: HAND_WRITTEN,
    least: 400,
    check: ({ prose }) =>
      each(prose, /`([a-z_]+)((?:\.[a-z0-9_]+)+)(?=`|[:=] ?)/g, (area = '', rest = '') => {
        const name = area + rest;
        const isOurs = AREAS.has(area) && !/\.(?:ts|md|json|yaml|cfg|xml|pem|pid|log)$/.test(name) && !OTHERS.has(name);
        return unless(!isOurs || PATHS.has(name) || EVENTS.has(name), `${name} is neither a setting nor a log event`);
      }),
    wrong: ['README.md', '`sip.no_such_setting`'],
  },
  {
    name: 'variables exist',
    pages: HAND_WRITTEN,
    least: 15,
    check: ({ written }) => each(written, /\b(TRUNKLINE_[A-Z0-9_]+)/g, (name = '') => unless(VARIABLES.has(name), `${name} sets nothing`)),
    wrong: ['README.md', '`TRUNKLINE_NO_SUCH_SETTING=1`'],
  },
  {
    name: 'configurations load',
    pages: HAND_WRITTEN,
    least: 10,
    check: ({ written }) =>
      blocks(written, /^yaml$/).map(({ at, text }) => {
        try {
          mergeLayers([DEFAULTS, parseLayer('the page', text)]);
          return { at, fault: undefined };
        } catch (error) {
          return { at, fault: String(error) };
        }
      }),
    wrong: ['README.md', '```yaml\nsip:\n  no_such_setting: 1\n```'],
  },
  {
    name: 'options of commands exist',
    pages: HAND_WRITTEN,
    least: 60,
    check: ({ written }) =>
      [...written.matchAll(/(?:\btrunkline (?=[a-z])|npm run (?:-s )?(?:up|call|load|doctor) -- )[^`#|\n]*/g)].flatMap(
        ({ index, 0: command }) =>
          each(command, / (--[a-z][a-z-]+)/g, (option = '') => unless(OPTIONS.has(option), `no command has ${option}`)).map((item) => ({
            ...item,
            at: item.at + index,
          })),
      ),
    wrong: ['README.md', '`trunkline call --no-such-option`'],
  },
  {
    name: 'codes exist and have their status',
    pages: HAND_WRITTEN,
    least: 90,
    check: (page) => [
      ...each(page.prose, /\b([3-6]\d\d) `?([A-Z][A-Z_]{5,})\b/g, (status = '', code = '') =>
        unless([reasons[code]?.sipStatus, apiErrors[code]?.[0]].map(String).includes(status), `${code} is not answered with ${status}`),
      ),
      ...(GUIDES.test(page.file) ? rows(page, /^## What goes wrong/m) : []).flatMap(({ at, cells: [seen = ''] }) =>
        each(seen.replace(/`[^`]*`/g, ''), /\b([A-Z]+_[A-Z_]+)\b/g, (code = '') =>
          unless(reasons[code] !== undefined, `no reason ${code}`),
        ).map(({ fault }) => ({ at, fault })),
      ),
    ],
    wrong: ['README.md', '404 NUMBER_CALL_LIMIT'],
  },
  {
    name: 'refusals have their Q.850 cause',
    pages: GUIDES,
    least: 8,
    check: (page) =>
      rows(page, /^## When we refuse/m)
        .filter(({ cells: [, theirs = ''] }) => /^\d+\b/.test(theirs))
        .flatMap(({ at, cells: [ours = '', theirs = ''] }) =>
          each(ours, /\b([A-Z_]{6,})\b/g, (code = '') =>
            unless(reasons[code]?.q850 === Number.parseInt(theirs, 10), `${code} has not the cause ${theirs}`),
          ).map(({ fault }) => ({ at, fault })),
        ),
    wrong: ['docs/carriers/a.md', '## When we refuse\n\n| ours | theirs |\n| --- | --- |\n| 503 DRAINING | 17 |\n'],
  },
  {
    name: 'tests exist, by file and title',
    pages: HAND_WRITTEN,
    least: 150,
    check: ({ text }) =>
      each(text, /\[(\S+?\.test\.ts)\]\(\.\.\/test\/(\S+)\): `([^`]+)`/g, (shown = '', file = '', title = '') =>
        unless(shown === file && existsSync(`${ROOT}test/${file}`) && isTitle(file, title), `test/${file} has no test "${title}"`),
      ),
    wrong: ['docs/a.md', '[unit/docs/prose.test.ts](../test/unit/docs/prose.test.ts): `no such test`'],
  },
  {
    name: 'each problem and attack has three cells, and a test in the last',
    pages: /^docs\/(?:field-notes|security)\.md$/,
    least: 75,
    check: (page) => {
      const isNotes = page.file.endsWith('field-notes.md');
      const headings = isNotes ? (page.prose.match(/^## .*$/gm) ?? []) : ['## Tried'];
      return headings.flatMap((heading) =>
        rows(page, new RegExp(`^${heading}$`, 'm')).map(({ at, cells }) => ({
          at,
          fault: unless(
            cells.length === 3 && ((isNotes && cells[2] === 'not yet') || /^\[\S+\.test\.ts\]\(\.\.\/test\/\S+\): `/.test(cells[2] ?? '')),
            `${cells[0] ?? ''}: no test`,
          ),
        })),
      );
    },
    wrong: ['docs/security.md', '## Tried\n\n| attack | result | test |\n| --- | --- | --- |\n| a | b | none |\n'],
  },
  {
    name: 'every guide for a carrier is linked from README.md and docs/carriers.md',
    pages: GUIDES,
    least: 6,
    check: ({ file }) =>
      [
        ['README.md', file],
        ['docs/carriers.md', file.replace('docs/', '')],
      ].map(([from = '', link = '']) => ({ at: 0, fault: unless(read(from).includes(`(${link})`), `${from} has no link to it`) })),
    wrong: ['docs/carriers/a.md', ''],
  },
  {
    name: 'the README of a room lists what it may import',
    pages: /^src\/[^/]+\/README\.md$/,
    least: 25,
    check: ({ file, text }) =>
      forbidden.flatMap(({ comment = '' }) => {
        const [, folder = '', imports = ''] = /^src\/(\S+) imports only (.*)$/.exec(comment) ?? [];
        const [room = '', inner] = folder.split('/');
        if (file !== `src/${room}/README.md` || inner === 'wiring') return [];
        const names = imports === 'itself' ? [] : imports.split(', ').map((name) => name.replace(/^src\//, ''));
        if (inner === undefined) {
          const line = `Imports: ${names.map((name) => `\`${name}\``).join(', ') || 'nothing of `src`'}.`;
          return [{ at: 0, fault: unless(text.includes(`\n${line}\n`), `lacks "${line}"`) }];
        }
        const shown = names.filter((name) => name !== 'lib').map((name) => `\`${name.replace(/^gateway\//, '')}\``);
        const row = text.split('\n').find((line) => line.startsWith(`| [${inner}](`));
        const cell = `| ${shown.join(', ') || '—'} |`;
        return [{ at: text.indexOf(row ?? text), fault: unless(row?.endsWith(cell) === true, `the row of ${inner} lacks "${cell}"`) }];
      }),
    wrong: ['src/rtp/README.md', 'Imports: everything.\n'],
  },
  {
    name: 'the words of docs/style.md',
    pages: /^(?!CHANGELOG|docs\/style)/,
    least: 0,
    check: ({ prose }) =>
      each(
        prose.replace(/`[^`\n]*`/g, (code) => ' '.repeat(code.length)),
        new RegExp(`(${WORDS.source})`, WORDS.flags),
        (words = '') => `"${words}": see docs/style.md`,
      ),
    wrong: ['README.md', 'The gateway tells the carrier.'],
  },
];

/** `file:line: rule: what` for each fault. */
export function faultsOf(rule: Rule, pages: readonly Page[]): { readonly inspected: number; readonly faults: readonly string[] } {
  const found = pages
    .filter(({ file }) => rule.pages.test(file))
    .flatMap((page) => rule.check(page).map(({ at, fault }) => ({ page, at, fault })));
  const faults = found.flatMap(({ page: { file, text }, at, fault }) =>
    fault === undefined ? [] : [`${file}:${String(text.slice(0, at).split('\n').length)}: ${rule.name}: ${fault}`],
  );
  return { inspected: found.length, faults };
}
