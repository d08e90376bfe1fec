import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EndedCall } from '../../../../../src/gateway/ports/ports.js';
import { CallSpool, type SpoolOptions } from '../../../../../src/gateway/store/files/call-spool.js';
import { callOf, endedCall } from '../store-contract.js';

const RESERVED = 8_192;
let directory: string;
let file: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'trunkline-spool-'));
  file = join(directory, 'calls', 'waiting');
});
afterEach(async () => {
  for (const spool of opened.splice(0)) await spool.close();
  rmSync(directory, { recursive: true, force: true });
});

/** Closed when the test is over; a process that was killed closes nothing itself. */
const opened: CallSpool[] = [];
async function open(options?: SpoolOptions): Promise<CallSpool> {
  const spool = await CallSpool.open(file, options);
  opened.push(spool);
  return spool;
}

const someCalls = (count: number): EndedCall[] => Array.from({ length: count }, (_, at) => endedCall(callOf(`org-${String(at)}`, 0)));

async function drained(spool: CallSpool): Promise<EndedCall[]> {
  const calls: EndedCall[] = [];
  await spool.drain((call) => {
    calls.push(call);
    return Promise.resolve();
  });
  return calls;
}

describe('CallSpool', () => {
  it('reserves its space on the disk in advance, readable by its owner only', async () => {
    await open({ reservedBytes: RESERVED });
    const { size, blocks, mode } = statSync(file);
    expect(size).toBe(RESERVED);
    expect(blocks * 512).toBeGreaterThanOrEqual(RESERVED);
    expect(mode & 0o077).toBe(0);
  });

  it('returns what it was given, in order, beyond the reserved space and after another start', async () => {
    const calls = someCalls(40);
    const spool = await open({ reservedBytes: RESERVED });
    for (const call of calls) await spool.append(call);
    expect(statSync(file).size).toBeGreaterThan(RESERVED);
    expect(await drained(await open({ reservedBytes: RESERVED }))).toEqual(calls);
  });

  it('is empty once it is drained, and a later start finds only what came afterwards', async () => {
    const [first, ...rest] = someCalls(30);
    const spool = await open({ reservedBytes: RESERVED });
    for (const call of rest) await spool.append(call);
    await drained(spool);
    expect(statSync(file).size).toBe(RESERVED);
    await spool.append(first!);
    expect(await drained(await open({ reservedBytes: RESERVED }))).toEqual([first]);
  });

  it('keeps the call that could not be written, and those behind it', async () => {
    const calls = someCalls(3);
    const spool = await open();
    for (const call of calls) await spool.append(call);
    const taken: EndedCall[] = [];
    const takesOne = (call: EndedCall): Promise<void> => {
      if (taken.length === 1) return Promise.reject(new Error('away'));
      taken.push(call);
      return Promise.resolve();
    };
    await expect(spool.drain(takesOne)).rejects.toThrow('away');
    expect([taken, spool.size]).toEqual([calls.slice(0, 1), 2]);
    expect(await drained(spool)).toEqual(calls.slice(1));
  });

  it('accepts calls while it is drained', async () => {
    const [first, second] = someCalls(2);
    const spool = await open();
    await spool.append(first!);
    const calls: EndedCall[] = [];
    await spool.drain(async (call) => {
      if (calls.length === 0) await spool.append(second!);
      calls.push(call);
    });
    expect([calls, spool.size]).toEqual([[first, second], 0]);
  });

  it('overwrites a line that a killed process did not end', async () => {
    const [first, second] = someCalls(2);
    const spool = await open({ reservedBytes: 0 });
    await spool.append(first!);
    await opened.pop()?.close();
    const whole = readFileSync(file);
    rmSync(file);
    appendFileSync(file, Buffer.concat([whole.subarray(0, -1), Buffer.from('{"record":{"call_id"')]));
    const next = await open({ reservedBytes: 0 });
    expect(next.size).toBe(1);
    await next.append(second!);
    expect(await drained(await open({ reservedBytes: 0 }))).toEqual([first, second]);
  });

  it('skips a line that is not JSON, and logs it', async () => {
    const [first, second] = someCalls(2);
    const spool = await open({ reservedBytes: 0 });
    await spool.append(first!);
    await opened.pop()?.close();
    const whole = readFileSync(file).subarray(0, -1);
    rmSync(file);
    appendFileSync(file, Buffer.concat([Buffer.from('no JSON\n'), whole, Buffer.of(0)]));
    const next = await open({ reservedBytes: 0 });
    await next.append(second!);
    const calls: EndedCall[] = [];
    await expect(next.drain((call) => Promise.resolve(void calls.push(call)))).rejects.toThrow('1 lines');
    expect(calls).toEqual([first, second]);
  });

  it('refuses what exceeds its limit', async () => {
    const [first] = someCalls(1);
    const spool = await open({ maxBytes: 100 });
    await expect(spool.append(first!)).rejects.toThrow('full');
    expect(spool.size).toBe(0);
  });
});
