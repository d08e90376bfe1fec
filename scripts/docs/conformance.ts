import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { table } from './table.js';

const TEST_ROOT = fileURLToPath(new URL('../../test/', import.meta.url));
const TAG = /^\[(\d{3,5})((?: [^\]\s]+)*)\] ?/;

interface Entry {
  readonly rfc: number;
  readonly section: string;
  readonly title: string;
  readonly file: string;
}

/** Tests whose title begins with `[RFC section]`, such as `[3261 §17.2.1]`; several in a row count each. */
export function conformanceTable(): string {
  const entries = readdirSync(TEST_ROOT, { recursive: true, encoding: 'utf8' })
    .filter((file) => /(?:\.test|-contract)\.ts$/.test(file))
    .sort()
    .flatMap((file) => testTitles(file).flatMap((title) => entriesOf(title, file)));
  const rfcs = [...new Set(entries.map(({ rfc }) => rfc))].sort((a, b) => a - b);
  const parts = rfcs.map((rfc) => {
    const own = entries.filter((entry) => entry.rfc === rfc).sort((a, b) => collator.compare(a.section, b.section));
    return [
      `### [RFC ${String(rfc)}](https://www.rfc-editor.org/rfc/rfc${String(rfc)})`,
      table(
        ['section', 'what is tested', 'file'],
        own.map(({ section, title, file }) => [section, title, `[${file}](../test/${file})`]),
      ),
    ].join('\n\n');
  });
  const files = new Set(entries.map(({ file }) => file)).size;
  return [`${String(entries.length)} entries of ${String(rfcs.length)} RFCs in ${String(files)} files.`, ...parts].join('\n\n');
}

const collator = new Intl.Collator('en', { numeric: true });

function entriesOf(title: string, file: string): Entry[] {
  const found: { rfc: number; section: string }[] = [];
  let rest = title;
  for (let match = TAG.exec(rest); match !== null; match = TAG.exec(rest)) {
    const sections = (match[2] ?? '').trim();
    for (const section of sections === '' ? [''] : sections.split(' ')) found.push({ rfc: Number(match[1]), section });
    rest = rest.slice(match[0].length);
  }
  return found.map(({ rfc, section }) => ({ rfc, section: section || '—', title: rest.replace(/%[sjid]/g, '…'), file }));
}

/** Titles of `it`, `test` and `describe`, also behind `.each(…)`. @param file below test/ */
export function testTitles(file: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(`${TEST_ROOT}${file}`, 'utf8'), ts.ScriptTarget.Latest);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && isTestCall(node.expression)) {
      const [title] = node.arguments;
      if (title !== undefined && ts.isStringLiteralLike(title)) found.push(title.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function isTestCall(callee: ts.Expression): boolean {
  if (ts.isIdentifier(callee)) return ['it', 'test', 'describe'].includes(callee.text);
  if (ts.isPropertyAccessExpression(callee)) return isTestCall(callee.expression);
  if (ts.isCallExpression(callee)) return isTestCall(callee.expression);
  return false;
}
