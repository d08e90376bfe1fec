import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

// The end of `npm run mutation`: writes score and survivors of each file into docs/mutation.md.
// Reports of Stryker (mutation-testing-report-schema) may be named; the usual one is that of the last run.

interface Report {
  readonly files: Readonly<
    Record<
      string,
      {
        readonly mutants: readonly {
          readonly mutatorName: string;
          readonly status: string;
          readonly location: { readonly start: { readonly line: number } };
        }[];
      }
    >
  >;
}

const PAGE = 'docs/mutation.md';
const [BEGIN, END] = ['<!-- results: made by npm run mutation -->', '<!-- results: end -->'];
const FOUND = ['Killed', 'Timeout'];
const SURVIVED = ['Survived', 'NoCoverage'];

const commit = process.env['MUTATION_COMMIT'] ?? execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
const named = process.argv.slice(2);
const reports = (named.length > 0 ? named : ['test-results/mutation/report.json']).map(
  (file) => JSON.parse(readFileSync(file, 'utf8')) as Report,
);
const rows = new Map(reports.flatMap(({ files }) => Object.entries(files)).map(([file, { mutants }]) => [file, rowOf(mutants)]));

const page = readFileSync(PAGE, 'utf8');
const before = new Map([...page.matchAll(/^\| `(src\/[^`]+)` \|.*$/gm)].map(([row, file = '']) => [file, row]));
for (const [file, row] of rows) before.set(file, `| \`${file}\` | ${commit} | ${row} |`);
// A file that was moved, or joined with another, has no row any more.
const there = [...before].filter(([file]) => existsSync(file));
const sorted = there.toSorted(([a], [b]) => (dirname(a) === dirname(b) ? a.localeCompare(b) : dirname(a).localeCompare(dirname(b))));
const table = [
  '| file | commit | found | score | survivors: line and what was changed |',
  '|---|---|---|---|---|',
  ...sorted.map(([, row]) => row),
];
const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
if (from < 0 || to < from) throw new Error(`${PAGE} lacks the marks of its results`);
writeFileSync(PAGE, `${page.slice(0, from)}${BEGIN}\n\n${table.join('\n')}\n\n${page.slice(to)}`);

function rowOf(mutants: Report['files'][string]['mutants']): string {
  const count = (statuses: readonly string[]): number => mutants.filter(({ status }) => statuses.includes(status)).length;
  const [found, all] = [count(FOUND), count([...FOUND, ...SURVIVED])];
  const survivors = new Map<string, number>();
  for (const { status, mutatorName, location } of mutants) {
    const place = `${String(location.start.line)} ${kindOf(mutatorName)}`;
    if (SURVIVED.includes(status)) survivors.set(place, (survivors.get(place) ?? 0) + 1);
  }
  const listed = [...survivors].map(([place, times]) => (times === 1 ? place : `${place} ×${String(times)}`)).join(', ');
  return `${String(found)} of ${String(all)} | ${all === 0 ? '–' : `${((100 * found) / all).toFixed(1)} %`} | ${listed === '' ? 'none' : listed}`;
}

/** `ConditionalExpression` → `conditional`. */
function kindOf(mutator: string): string {
  return mutator.replace(/([a-z])([A-Z]).*/, '$1').toLowerCase();
}
