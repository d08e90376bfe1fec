import { describe, expect, it } from 'vitest';
import { readBatchText, type BatchText } from '../../../src/gateway/api/batch-body.js';
import { batchReader } from '../../support/built.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const ROWS = 20_000;
const numberAt = (row: number): string => `+4930${String(1_000_000 + row)}`;
const CSV: BatchText = {
  type: 'csv',
  text: [
    'phone_number,time_zone,name',
    ...Array.from({ length: ROWS }, (_none, row) => `${numberAt(row)},Europe/Berlin,"N, ${String(row)}"`),
  ].join('\n'),
};
const json = (body: object): BatchText => ({ type: 'json', text: JSON.stringify({ name: 'March', from: '+15550100555', ...body }) });
const LIST = Array.from({ length: ROWS }, (_none, row) => ({ phone_number: numberAt(row), metadata: { row } }));

describe('the numbers of a large batch', () => {
  const read = batchReader(new VirtualClock());

  it.each([
    ['CSV', CSV],
    ['a list', json({ numbers: LIST })],
    ['CSV within JSON', json({ csv: CSV.text })],
  ])('give the same batch when a thread reads them as when the gateway does: %s', async (_form, body) => {
    const batch = await read('a', body);
    expect(batch).toEqual(await readBatchText(body));
    expect(batch).toMatchObject({ ok: true, value: { count: ROWS } });
  });

  it('come in chunks, with the fields and the first number apart', async () => {
    const batch = await read('a', json({ numbers: LIST }));
    if (!batch.ok) throw new Error('it is refused');
    const { fields, rows } = batch.value;
    expect(JSON.parse(fields ?? '')).toEqual({ name: 'March', from: '+15550100555', numbers: [LIST[0]] });
    expect(rows?.length).toBe(ROWS / 500);
    expect(rows?.every((some) => some.length < 131_072)).toBe(true);
    expect(rows?.flatMap((some) => JSON.parse(some) as unknown[])).toEqual(LIST.map((one, row) => ({ row, ...one })));
  });

  it.each([
    ['an entry that is not a number', json({ numbers: [...LIST, 7] }), `numbers[${String(ROWS)}]`],
    ['a key that changes prototypes', { type: 'json', text: `{"numbers":[${'"+4930",'.repeat(5_000)}{"__proto__":{}}]}` }, undefined],
    ['other fields that are too large', json({ metadata: Array(200_000).fill(1) }), undefined],
    ['numbers that are not a list', json({ numbers: { a: Array(200_000).fill(1) } }), 'numbers'],
    ['no column of numbers', { type: 'csv', text: CSV.text.replace('phone_number', 'name2') }, 'csv'],
  ] satisfies [string, BatchText, string | undefined][])('get an error for %s', async (_what, body, path) => {
    const batch = await read('a', body);
    const entry = batch.ok ? batch.value.problems[0] : batch.error[0];
    expect([entry?.error, entry?.path]).toEqual(['VALIDATION', path]);
  });

  it('get an error when 32 MiB of the organization are waiting', async () => {
    const text = `phone_number\n${'+4930\n'.repeat(1_300_000)}`;
    const first = [1, 2, 3, 4].map(() => read('b', { type: 'csv', text }));
    expect(() => read('b', { type: 'csv', text })).toThrow('Too many numbers of the organization are being read');
    await Promise.all(first);
  });
});
