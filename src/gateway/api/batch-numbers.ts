import { parse, CsvError } from 'csv-parse';
import type { BatchNumber } from '../model/batch.js';
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
/** Columns that mean something to the gateway; the others go to the agent. */
const NUMBER = 'phone_number';
const ZONE = 'time_zone';

/** A number as it was given. */
export interface GivenNumber {
  /** Line of the text, from 1; for a list, the place in it from 0. */
  readonly row: number;
  readonly phone_number: string;
  readonly time_zone?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** Why a number of a batch is not called. */
export interface InvalidNumber {
  readonly row: number;
  readonly phone_number: string;
  readonly error: string;
}

/** The number, or why it is none. */
export function numberOf({ row, phone_number: text, time_zone: zone, metadata }: GivenNumber): Result<BatchNumber, InvalidNumber> {
  const number = parseE164(text);
  if (number === undefined) return err({ row, phone_number: text.slice(0, 40), error: `is not ${E164_FORM}` });
  if (zone !== undefined && zone !== '' && !isTimeZone(zone))
    return err({ row, phone_number: number, error: `${zone.slice(0, 40)} is not a time zone, such as Europe/Berlin` });
  return ok({
    number,
    ...(zone === undefined || zone === '' ? {} : { zone }),
    ...(metadata === undefined || Object.keys(metadata).length === 0 ? {} : { metadata }),
  });
}

interface CsvRecord {
  readonly info: { readonly lines: number };
  readonly record: readonly string[];
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

/** Reads a piece at a time. An error names line and column. */
export async function readCsv(text: string): Promise<Result<readonly GivenNumber[], ApiErrorEntry>> {
  const first = text.slice(0, MAX_RECORD_BYTES).split(/\r?\n/, 1)[0] ?? '';
  const parser = parse({
    bom: true,
    trim: true,
    info: true,
    skip_empty_lines: true,
    delimiter: first.includes(';') && !first.includes(',') ? ';' : ',',
    max_record_size: MAX_RECORD_BYTES,
  });
  void feed(parser, text);
  const found: GivenNumber[] = [];
  let names: readonly string[] | undefined;
  try {
    for await (const { info, record } of parser as AsyncIterable<CsvRecord>) {
      if (names === undefined) {
        const problem = headerProblem(record);
        if (problem !== null) return err(bad(`line ${String(info.lines)}: ${problem}`));
        names = isHeader(record) ? record : [NUMBER];
        if (isHeader(record)) continue;
      }
      if (found.length >= MAX_BATCH_NUMBERS)
        return err(bad(`line ${String(info.lines)}: has more than ${String(MAX_BATCH_NUMBERS)} numbers`));
      const long = record.findIndex((cell) => cell.length > MAX_CELL);
      if (long >= 0)
        return err(bad(`line ${String(info.lines)}, column ${String(long + 1)}: has more than ${String(MAX_CELL)} characters`));
      found.push(givenBy(names, record, info.lines));
    }
  } catch (error) {
    if (error instanceof CsvError) return err(bad(csvProblem(error)));
    throw error;
  }
  return found.length === 0 ? err(bad('has no numbers')) : ok(found);
}

async function feed(parser: ReturnType<typeof parse>, text: string): Promise<void> {
  for (let at = 0; at < text.length && !parser.destroyed; at += CHUNK)
    await new Promise<void>((resolve) => parser.write(text.slice(at, at + CHUNK), () => resolve()));
  parser.end();
}

/** A list of numbers needs no first line with names. */
function isHeader(record: readonly string[]): boolean {
  return record.includes(NUMBER);
}

function headerProblem(record: readonly string[]): string | null {
  if (!isHeader(record)) return record.length === 1 && parseE164(record[0] ?? '') !== undefined ? null : `has no column ${NUMBER}`;
  if (record.length > MAX_COLUMNS) return `has more than ${String(MAX_COLUMNS)} columns`;
  const wrong = record.findIndex((name, index) => !/^[\w .-]{1,64}$/.test(name) || name === '__proto__' || record.indexOf(name) !== index);
  return wrong < 0 ? null : `column ${String(wrong + 1)} needs a name of its own: letters, digits, spaces, _ . -`;
}

function givenBy(names: readonly string[], record: readonly string[], row: number): GivenNumber {
  const fields = new Map(names.map((name, index) => [name, record[index] ?? '']));
  const metadata = Object.fromEntries([...fields].filter(([name]) => name !== NUMBER && name !== ZONE));
  return { row, phone_number: fields.get(NUMBER) ?? '', time_zone: fields.get(ZONE), metadata };
}

function csvProblem(error: CsvError): string {
  const line = typeof error['lines'] === 'number' ? `line ${String(error['lines'])}` : 'a line';
  const column = typeof error['column'] === 'number' ? `, column ${String(error['column'] + 1)}` : '';
  return `${line}${column}: ${error.message}`;
}

function bad(message: string): ApiErrorEntry {
  return { error: 'VALIDATION', message, path: 'csv' };
}
