import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CallArchive } from '../../../../../src/gateway/store/files/call-archive.js';
import { VirtualClock } from '../../../../support/virtual-clock.js';
import { recordingLog, type LogLine } from '../../api/api-fixture.js';
import { callOf } from '../store-contract.js';

const DAY_MS = 86_400_000;
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'trunkline-archive-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function archive(days: number) {
  const clock = new VirtualClock(Date.UTC(2026, 4, 30, 23, 59));
  const lines: LogLine[] = [];
  return { clock, lines, calls: new CallArchive(join(directory, 'calls'), days, clock, recordingLog(lines)) };
}

const read = (day: string): unknown[] =>
  readFileSync(join(directory, 'calls', `${day}.jsonl`), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

describe('CallArchive', () => {
  it('writes each record as a line of its day, readable by its owner only', async () => {
    const { clock, calls } = archive(30);
    const records = Array.from({ length: 5 }, () => callOf('a', 0));
    for (const record of records.slice(0, 3)) calls.append(record);
    await calls.close();
    clock.advance(DAY_MS);
    for (const record of records.slice(3)) calls.append(record);
    await calls.close();
    expect([read('2026-05-30'), read('2026-05-31')]).toEqual([records.slice(0, 3), records.slice(3)]);
    expect(statSync(join(directory, 'calls', '2026-05-30.jsonl')).mode & 0o077).toBe(0);
  });

  it('removes files older than its days, and nothing else', async () => {
    const { calls } = archive(2);
    mkdirSync(join(directory, 'calls'));
    for (const name of ['2026-05-28.jsonl', '2026-05-29.jsonl', 'waiting.gateway', 'notes.txt'])
      writeFileSync(join(directory, 'calls', name), '');
    calls.append(callOf('a', 0));
    await calls.close();
    expect(readdirSync(join(directory, 'calls')).sort()).toEqual(['2026-05-29.jsonl', '2026-05-30.jsonl', 'notes.txt', 'waiting.gateway']);
  });

  it('logs how many records the disk refused, and continues', async () => {
    const { lines, calls } = archive(2);
    writeFileSync(join(directory, 'calls'), 'a file where the directory should be');
    calls.append(callOf('a', 0));
    await calls.close();
    expect(lines).toMatchObject([{ level: 'error', event: 'call.archive.lost', fields: { records: 1 } }]);
    rmSync(join(directory, 'calls'));
    calls.append(callOf('b', 0));
    await calls.close();
    expect(read('2026-05-30')).toMatchObject([{ org_id: 'b' }]);
  });
});
