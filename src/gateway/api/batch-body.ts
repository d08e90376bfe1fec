import { createHash } from 'node:crypto';
import { parseJson } from '../../lib/bounded-json.js';
import { err, ok, type Result } from '../../lib/result.js';
import type { RefusedRow } from '../model/batch-preview.js';
import { canonicalJson } from './idempotency.js';
import { readCsv, type GivenNumber, type ReadCsv } from './batch-numbers.js';
import type { ApiErrorEntry } from './schemas/api-error.js';
import { batchNumbers } from './schemas/batch-numbers-api.js';
import { entriesOf, FORBIDDEN_NAME, NESTED_TOO_DEEP } from './validation.js';

// The numbers of a large batch are read apart from its other fields, and in another thread: 8 MiB of them would hold all calls for a second.

/** A body of `POST /v2/batches`: CSV, or JSON with `numbers` or `csv` in it. */
export interface BatchText {
  readonly type: 'csv' | 'json';
  readonly text: string;
}

export interface ReadBatch {
  /** JSON of the body with the first of its numbers only; `null`: it is CSV. */
  readonly fields: string | null;
  /** Lists of up to 500 `GivenNumber` as JSON, which take the main thread a millisecond each; `null`: the body has no numbers. */
  readonly rows: readonly string[] | null;
  readonly count: number;
  /** Tells the numbers apart from others. */
  readonly digest: string;
  /** Rows of the CSV that could not be read, besides. */
  readonly unreadable: readonly RefusedRow[];
  /** What is wrong with the CSV as a whole: told after what is wrong with the other fields. */
  readonly problems: readonly ApiErrorEntry[];
}

/** Reads a body. The error's entries are as those of any other body. */
export type ReadBatchText = (orgId: string, body: BatchText) => Promise<Result<ReadBatch, readonly ApiErrorEntry[]>>;

export const NO_NUMBERS: ReadBatch = { fields: null, rows: null, count: 0, digest: '', unreadable: [], problems: [] };

const ROWS_AT_ONCE = 500;
const CHARACTERS_AT_ONCE = 65_536;
/** As of other routes' bodies. */
const MAX_FIELDS = 262_144;

export async function readBatchText({ type, text }: BatchText): Promise<Result<ReadBatch, readonly ApiErrorEntry[]>> {
  if (type === 'csv') {
    const given = await readCsv(text);
    return ok(given.ok ? readOf(null, given.value) : { ...NO_NUMBERS, problems: given.error });
  }
  const parsed = parseJson(text);
  if (!parsed.ok) {
    if (parsed.error === 'too-deep') return bad(NESTED_TOO_DEEP);
    // The server's own parser says so.
    return ok({ ...NO_NUMBERS, fields: '' });
  }
  const body = parsed.value;
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return bad('The body must be an object.');
  const { numbers, csv, ...others } = body as Readonly<Record<string, unknown>>;
  const [first] = Array.isArray(numbers) ? (numbers as readonly unknown[]) : [];
  // Enough of both for the rules about them.
  const fields = JSON.stringify({
    ...others,
    ...(numbers === undefined ? {} : { numbers: [first] }),
    ...(csv === undefined ? {} : { csv: typeof csv === 'string' ? csv.slice(0, 1) : csv }),
  });
  if (fields.length > MAX_FIELDS) return bad(`The body has more than ${String(MAX_FIELDS)} characters besides numbers and csv.`);
  if (typeof csv === 'string' && numbers === undefined) {
    const given = await readCsv(csv);
    return ok(given.ok ? readOf(fields, given.value) : { ...NO_NUMBERS, fields, problems: given.error });
  }
  if (numbers === undefined) return ok({ ...NO_NUMBERS, fields });
  if (hasForbiddenName(numbers)) return bad(FORBIDDEN_NAME);
  const list = batchNumbers.safeParse(numbers);
  if (!list.success) return err(entriesOf(list.error.issues.map((issue) => ({ ...issue, path: ['numbers', ...issue.path] }))));
  return ok(readOf(fields, { numbers: listed(list.data), unreadable: [] }));
}

/** Numbers of a list, with their places in it. */
export function listed(numbers: (typeof batchNumbers)['_output']): readonly GivenNumber[] {
  return numbers.map((one, row) => (typeof one === 'string' ? { row, phone_number: one } : { row, ...one }));
}

function readOf(fields: string | null, { numbers: given, unreadable }: ReadCsv): ReadBatch {
  const hash = createHash('sha256').update(JSON.stringify(unreadable));
  const rows: string[] = [];
  let waiting: string[] = [];
  let characters = 0;
  const write = (): void => {
    rows.push(`[${waiting.join()}]`);
    waiting = [];
    characters = 0;
  };
  for (const one of given) {
    const written = JSON.stringify(one);
    hash.update(one.metadata === undefined ? written : canonicalJson(one));
    waiting.push(written);
    characters += written.length;
    if (waiting.length === ROWS_AT_ONCE || characters >= CHARACTERS_AT_ONCE) write();
  }
  if (waiting.length > 0) write();
  return { fields, rows, count: given.length, digest: hash.digest('hex'), unreadable, problems: [] };
}

/** Names that change what objects are. */
function hasForbiddenName(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(hasForbiddenName);
  return Object.entries(value).some(
    ([name, part]) =>
      name === '__proto__' ||
      (name === 'constructor' && typeof part === 'object' && part !== null && Object.hasOwn(part as object, 'prototype')) ||
      hasForbiddenName(part),
  );
}

function bad(message: string): Result<never, readonly ApiErrorEntry[]> {
  return err([{ error: 'VALIDATION', message }]);
}
