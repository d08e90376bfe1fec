import { parse, CsvError } from 'csv-parse';
import type { BatchNumber } from '../model/batch.js';
import type { RefusedRow } from '../model/batch-preview.js';
import { isTimeZone } from '../model/calling-hours.js';
import { E164_FORM, parseE164 } from '../model/e164.js';
import { parseJson } from '../../lib/bounded-json.js';
import { err, ok, type Result } from '../../lib/result.js';
import type { ApiErrorEntry } from './schemas/api-error.js';

// The numbers of a batch, as its owner gives them: a list, or CSV.

export const MAX_BATCH_NUMBERS = 100_000;
const MAX_COLUMNS = 32;
const MAX_CELL = 1_000;
const MAX_RECORD_BYTES = 16_384;
const CHUNK = 65_536;
/** Rows with broken quotes behind which reading goes on: each may cost a whole record. */
const MAX_BROKEN = 100;
/** Of what a refused row says. */
const MAX_SHOWN = 40;
/** Columns that mean something to the gateway; the others go to the agent. */
const NUMBER = 'phone_number';
const ZONE = 'time_zone';
/** Other names of them, in small letters without spaces, hyphens and underscores. */
const NAMES = new Map([
  ...['phonenumber', 'phone', 'telephone', 'number'].map((name) => [name, NUMBER] as const),
  ...['timezone', 'tz'].map((name) => [name, ZONE] as const),
]);

/** A number as it was given. */
export interface GivenNumber {
  /** Line of the text, from 1; for a list, the place in it from 0. */
  readonly row: number;
  readonly phone_number: string;
  readonly time_zone?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** The number, or why its row is refused. */
export function numberOf({ row, phone_number: text, time_zone: zone, metadata }: GivenNumber): Result<BatchNumber, RefusedRow> {
  // People and spreadsheets group digits by spaces.
  const number = parseE164(text.replaceAll(/\s/g, ''));
  if (number === undefined)
    return err({ row, phone_number: text.slice(0, MAX_SHOWN), reason: 'INVALID_NUMBER', message: `is not ${E164_FORM}` });
  if (zone !== undefined && zone !== '' && !isTimeZone(zone)) {
    const message = `${zone.slice(0, MAX_SHOWN)} is not a time zone, such as Europe/Berlin`;
    return err({ row, phone_number: number, reason: 'INVALID_TIME_ZONE', message });
  }
  return ok({
    number,
    ...(zone === undefined || zone === '' ? {} : { zone }),
    ...(metadata === undefined || Object.keys(metadata).length === 0 ? {} : { metadata }),
  });
}

/** Fields of a batch whose values are text, whatever they look like. */
const TEXTS: readonly string[] = ['name', 'from', 'agent_id', 'webhook'];

/** The fields of a batch whose CSV is the whole body: numbers, true, and objects are JSON. */
export function fieldsOfQuery(query: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, TEXTS.includes(name) ? value : fromJson(value)]));
}

function fromJson(value: unknown): unknown {
  // As in bodies of JSON: nothing that changes what objects are.
  if (typeof value !== 'string' || /__proto__|constructor/.test(value)) return value;
  const parsed = parseJson(value);
  return parsed.ok ? parsed.value : value;
}

/** What a CSV has. */
export interface ReadCsv {
  readonly numbers: readonly GivenNumber[];
  /** Rows that cannot be read. */
  readonly unreadable: readonly RefusedRow[];
}

/** Reads a piece at a time, and goes on behind a row that cannot be read. The errors are what is wrong with the whole, each with its line. */
export async function readCsv(text: string): Promise<Result<ReadCsv, readonly ApiErrorEntry[]>> {
  const rows = new CsvRows();
  let from: Place | null = { at: 0, line: 0 };
  for (let broken = 0; from !== null && rows.problems.length === 0;) {
    const begin: Place = from;
    let last = 0;
    const error: CsvError | null = await parseFrom(text, begin.at, (record, line) => {
      last = line;
      rows.add(record, begin.line + line);
    });
    if (error === null) break;
    // Its quotes do not match, or it never ends: the next line may be a row again.
    const start = nextRow(text, begin, last);
    broken += 1;
    rows.addBroken(start.line + 1, csvProblem(error), broken);
    from = nextLine(text, start);
  }
  const { problems, numbers, unreadable } = rows;
  if (problems.length > 0) return err(problems.map(bad));
  return numbers.length + unreadable.length === 0 ? err([bad('has no numbers')]) : ok({ numbers, unreadable });
}

/** The rows of a CSV, as they come. */
class CsvRows {
  readonly numbers: GivenNumber[] = [];
  readonly unreadable: RefusedRow[] = [];
  /** With the CSV as a whole: nothing more is read. */
  problems: readonly string[] = [];
  #columns: readonly string[] | undefined;

  add(record: readonly string[], line: number): void {
    if (this.problems.length > 0) return;
    if (this.#columns === undefined) {
      this.#columns = isHeader(record) ? record.map(meaningOf) : [NUMBER];
      this.problems = headerProblems(record, this.#columns).map((problem) => `line ${String(line)}: ${problem}`);
      if (this.problems.length > 0 || isHeader(record)) return;
    }
    if (this.numbers.length + this.unreadable.length >= MAX_BATCH_NUMBERS) {
      this.problems = [`line ${String(line)}: has more than ${String(MAX_BATCH_NUMBERS)} numbers`];
      return;
    }
    const problem = rowProblem(record, this.#columns);
    const one = givenBy(this.#columns, record, line);
    if (problem === null) this.numbers.push(one);
    else this.unreadable.push(unreadableRow(line, problem, one.phone_number));
  }

  /** @param count rows with broken quotes, with this one */
  addBroken(line: number, problem: string, count: number): void {
    if (this.problems.length > 0) return;
    if (this.#columns === undefined) this.problems = [`line ${String(line)}: ${problem}`];
    else if (count > MAX_BROKEN) {
      const lines = this.unreadable.map(({ row }) => String(row)).slice(-MAX_BROKEN);
      this.problems = [`has more than ${String(MAX_BROKEN)} rows whose quotes do not match, at the lines ${lines.join(', ')}`];
    } else this.unreadable.push(unreadableRow(line, problem, ''));
  }
}

/** A place in the text, and the lines before it. */
interface Place {
  readonly at: number;
  readonly line: number;
}

/** The first row behind `rows` lines more. */
function nextRow(text: string, from: Place, rows: number): Place {
  let place = from;
  for (;;) {
    const next = nextLine(text, place);
    if (next === null || (place.line >= from.line + rows && text.slice(place.at, next.at).trim() !== '')) return place;
    place = next;
  }
}

function nextLine(text: string, { at, line }: Place): Place | null {
  const end = text.indexOf('\n', at);
  return end < 0 || end + 1 >= text.length ? null : { at: end + 1, line: line + 1 };
}

/** Hands over each record with its line, from 1. Resolves with what ended it before its end. */
function parseFrom(text: string, at: number, take: (record: readonly string[], line: number) => void): Promise<CsvError | null> {
  const first = text.slice(0, MAX_RECORD_BYTES).split(/\r?\n/, 1)[0] ?? '';
  return new Promise((resolve, reject) => {
    const parser = parse({
      bom: true,
      trim: true,
      skip_empty_lines: true,
      skip_records_with_empty_values: true,
      relax_column_count: true,
      delimiter: delimiterOf(first),
      max_record_size: MAX_RECORD_BYTES,
      // An error of the stream would drop the records that wait in it.
      on_record: (record: readonly string[], { lines }) => {
        take(record, lines);
        return null;
      },
    });
    parser.on('error', (error) => (error instanceof CsvError ? resolve(error) : reject(error)));
    parser.on('end', () => resolve(null));
    parser.resume();
    void feed(parser, text, at);
  });
}

/** Spreadsheets write commas, semicolons or tabs. */
function delimiterOf(first: string): string {
  if (first.includes(',')) return ',';
  return first.includes(';') ? ';' : first.includes('\t') ? '\t' : ',';
}

async function feed(parser: ReturnType<typeof parse>, text: string, from: number): Promise<void> {
  for (let at = from; at < text.length && !parser.destroyed; at += CHUNK)
    await new Promise<void>((resolve) => parser.write(text.slice(at, at + CHUNK), () => resolve()));
  parser.end();
}

/** What a column is for: its name, or the gateway's own name for it. */
function meaningOf(name: string): string {
  const plain = name.toLowerCase().replaceAll(/[ _-]/g, '');
  return NAMES.get(plain) ?? name;
}

/** A list of numbers needs no first line with names. */
function isHeader(record: readonly string[]): boolean {
  return record.map(meaningOf).includes(NUMBER);
}

function headerProblems(record: readonly string[], columns: readonly string[]): readonly string[] {
  if (!isHeader(record)) {
    const isNumber = record.length === 1 && numberOf({ row: 0, phone_number: record[0] ?? '' }).ok;
    return isNumber ? [] : [`has no column ${NUMBER}`];
  }
  if (record.length > MAX_COLUMNS) return [`has more than ${String(MAX_COLUMNS)} columns`];
  return columns.flatMap((name, index) => {
    const first = columns.indexOf(name);
    if (!/^[\w .-]{1,64}$/.test(name) || name === '__proto__')
      return [`column ${String(index + 1)} needs a name: letters, digits, spaces, _ . -`];
    return first === index ? [] : [`column ${String(index + 1)} needs a name of its own: column ${String(first + 1)} is ${name}, too`];
  });
}

function rowProblem(record: readonly string[], columns: readonly string[]): string | null {
  if (record.length !== columns.length) return `has ${String(record.length)} columns, and the first line has ${String(columns.length)}`;
  const long = record.findIndex((cell) => cell.length > MAX_CELL);
  return long < 0 ? null : `column ${String(long + 1)} has more than ${String(MAX_CELL)} characters`;
}

function givenBy(columns: readonly string[], record: readonly string[], row: number): GivenNumber {
  const fields = new Map(columns.map((name, index) => [name, record[index] ?? '']));
  const metadata = Object.fromEntries([...fields].filter(([name]) => name !== NUMBER && name !== ZONE));
  return { row, phone_number: fields.get(NUMBER) ?? '', time_zone: fields.get(ZONE), metadata };
}

function unreadableRow(row: number, message: string, text: string): RefusedRow {
  return { row, phone_number: text.slice(0, MAX_SHOWN), reason: 'UNREADABLE_ROW', message };
}

function csvProblem(error: CsvError): string {
  switch (error.code) {
    case 'CSV_QUOTE_NOT_CLOSED':
      return 'has a quote that is never closed';
    case 'CSV_MAX_RECORD_SIZE':
      return `has more than ${String(MAX_RECORD_BYTES)} bytes, or a quote that is never closed`;
    default:
      return 'has a quote within a cell: put the cell in quotes and write each quote in it twice';
  }
}

function bad(message: string): ApiErrorEntry {
  return { error: 'VALIDATION', message, path: 'csv' };
}
