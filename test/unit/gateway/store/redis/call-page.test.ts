import { expect, it } from 'vitest';
import { readPage } from '../../../../../src/gateway/store/redis/call-page.js';
import { recordMember } from '../../../../../src/gateway/ports/listing.js';
import { MAX_SCANNED_CALLS } from '../../../../../src/gateway/ports/stores.js';
import { callOf } from '../store-contract.js';

it('one request reads a bounded number of records, and the next one continues behind them', async () => {
  const calls = Array.from({ length: 2_500 }, (_, index) => callOf('o', index, { reason: index === 0 ? 'BAD_SDP' : 'CALLER_HANGUP' }));
  const index = calls.map((record) => ({ member: recordMember(record.started_at, record.call_id), record, bytes: 1 })).reverse();
  let read = 0;
  const page = (before?: string) =>
    readPage({ limit: 10, reason: 'BAD_SDP', ...(before === undefined ? {} : { before }) }, ({ to }, count) => {
      const entries = index.filter(({ member }) => to === null || member < to).slice(0, count);
      read += entries.length;
      return Promise.resolve(entries);
    });
  const first = await page();
  expect([first.calls.length, read]).toEqual([0, MAX_SCANNED_CALLS]);
  const second = await page(first.next!);
  const third = await page(second.next!);
  expect([third.calls, third.next, read]).toEqual([[calls[0]], null, 2_500]);
});

it.each([
  ['2125551234', '2125551234'],
  ['+12125551234', '12125551234'],
  ['+12125551234', '+1-212-555-1234'],
  ['anonymous', 'anonymous'],
])('a caller recorded as %s is found by %s', async (from, asked) => {
  const record = callOf('o', 0, { from });
  const entry = { member: recordMember(record.started_at, record.call_id), record, bytes: 1 };
  const found = async (text: string): Promise<number> =>
    (await readPage({ limit: 10, from: text }, () => Promise.resolve([entry]))).calls.length;
  expect([await found(asked), await found('+2125551234')]).toEqual([1, 0]);
});
