import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';
import { table } from './table.js';

/** A call of the log in the source. */
export interface LogEvent {
  readonly file: string;
  readonly level: string;
  readonly event: string;
  /** As far as they stand in the call itself, without those of the logger (`call_id` of a call, `process`, `time`). */
  readonly fields: readonly string[];
  /** What to do, where the event carries it. */
  readonly hint: string;
}

const LEVELS = ['debug', 'info', 'warn', 'error'];

/** Every event that the product logs, by name. */
export function logEvents(root: string): readonly LogEvent[] {
  const files = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.endsWith('.d.ts'),
  );
  return files
    .flatMap((file) => eventsOf(`src/${file}`, readFileSync(`${root}src/${file}`, 'utf8')))
    .sort((a, b) => (a.event < b.event ? -1 : 1));
}

export function logTable(root: string): string {
  const byName = new Map<string, LogEvent[]>();
  for (const one of logEvents(root)) byName.set(one.event, [...(byName.get(one.event) ?? []), one]);
  const rows = [...byName].map(([event, all]) => [
    `\`${event}\``,
    [...new Set(all.map(({ level }) => level))].join(', '),
    [...new Set(all.flatMap(({ fields }) => fields))].map((name) => `\`${name}\``).join(' ') || '—',
    all.find(({ hint }) => hint !== '')?.hint ?? '',
  ]);
  return table(['event', 'level', 'fields', 'hint'], rows);
}

function eventsOf(file: string, text: string): LogEvent[] {
  if (!text.includes('og')) return [];
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: LogEvent[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) found.push(...eventsOfCall(file, source, node));
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function eventsOfCall(file: string, source: ts.SourceFile, { expression, arguments: given }: ts.CallExpression): LogEvent[] {
  const [fields, event] = given;
  if (!ts.isPropertyAccessExpression(expression) || fields === undefined || event === undefined) return [];
  const called = expression.name.text;
  // An agent's connection counts its warnings.
  const level = called === '#warn' ? 'warn' : called;
  if (!LEVELS.includes(level) || (called !== '#warn' && !/log$/i.test(expression.expression.getText(source).replace(/[()?!]/g, ''))))
    return [];
  const events = ts.isConditionalExpression(event) ? [event.whenTrue, event.whenFalse] : [event];
  return events.filter(ts.isStringLiteral).map(({ text }) => ({ file, level, event: text, ...fieldsOf(fields) }));
}

function fieldsOf(node: ts.Expression): Pick<LogEvent, 'fields' | 'hint'> {
  if (!ts.isObjectLiteralExpression(node)) return { fields: [], hint: '' };
  const named = node.properties.flatMap((one) =>
    one.name !== undefined && ts.isIdentifier(one.name) ? [{ name: one.name.text, one }] : [],
  );
  const hint = named.find(({ name }) => name === 'hint')?.one;
  return {
    fields: named.map(({ name }) => name).filter((name) => name !== 'hint'),
    hint: hint !== undefined && ts.isPropertyAssignment(hint) && ts.isStringLiteral(hint.initializer) ? hint.initializer.text : '',
  };
}
