import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SupervisedChild } from '../../../../src/supervisor/child.js';
import { rotateLog } from '../../../../src/observability/log/log-rotation.js';
import { silentLog } from '../../../../src/lib/log.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

let directory: string;
let file: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'trunkline-logs-'));
  file = join(directory, 'gateway.log');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describe('rotateLog', () => {
  it('moves the file to .1 while its writer has it open, and loses no line', () => {
    const writer = openSync(file, 'a', 0o600);
    writeSync(writer, 'first\n'.repeat(100));
    rotateLog(file, 500);
    writeSync(writer, 'second\n');
    closeSync(writer);
    expect(readFileSync(`${file}.1`, 'utf8')).toBe('first\n'.repeat(100));
    expect(readFileSync(file, 'utf8')).toBe('second\n');
    expect(statSync(`${file}.1`).mode & 0o077).toBe(0);
  });

  it('keeps one old log, and leaves a file alone that is short or missing', () => {
    writeFileSync(file, 'b'.repeat(501));
    writeFileSync(`${file}.1`, 'a'.repeat(900));
    rotateLog(file, 500);
    expect(readFileSync(`${file}.1`, 'utf8')).toBe('b'.repeat(501));
    writeFileSync(file, 'c'.repeat(500));
    rotateLog(file, 500);
    rotateLog(join(directory, 'none.log'), 500);
    expect([readFileSync(file, 'utf8'), existsSync(join(directory, 'none.log.1'))]).toEqual(['c'.repeat(500), false]);
  });
});

describe('a long-running process', () => {
  it('has its log rotated at run time', async () => {
    const clock = new VirtualClock();
    const spec = {
      name: 'gateway',
      command: 'sleep',
      args: ['600'],
      environment: process.env,
      followerReadiness: null,
      hasSpare: false,
      mustAnswer: false,
      stopSignal: 'SIGTERM' as const,
      ports: [],
      readiness: () => Promise.resolve({}),
      stopTimeoutMs: 1_000,
    };
    const child = new SupervisedChild(spec, directory, clock, silentLog, 20_000);
    const started = child.start();
    await clock.advanceAsync(100);
    await started;
    file = join(directory, 'logs', 'gateway.log');
    writeFileSync(file, 'x'.repeat((50 << 20) + 1));
    clock.advance(60_000);
    expect([statSync(file).size, statSync(`${file}.1`).size]).toEqual([0, (50 << 20) + 1]);
    await child.stop();
    expect(clock.pendingTimers).toBe(0);
  });
});
