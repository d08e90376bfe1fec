import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { followed } from '../../../src/cli/process.js';
import { loadConfig } from '../../../src/config/load.js';
import { askProcess, FACTS_QUESTION } from '../../../src/config/process-socket.js';
import { FOLLOW_SIGNAL } from '../../../src/supervisor/running-process.js';
import { silentLog } from '../../../src/lib/log.js';

let directory: string;
let first: ChildProcess;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'followed-'));
  first = spawn('sleep', ['60']);
});

afterEach(async () => {
  first.kill('SIGKILL');
  vi.useRealTimers();
  process.removeAllListeners(FOLLOW_SIGNAL);
  await rm(directory, { recursive: true });
});

function follow(): Promise<void> {
  const config = loadConfig({ set: [`data_dir=${directory}`], environment: {} });
  return followed(config, 'gateway', first.pid ?? 0, silentLog);
}

async function endFirst(): Promise<void> {
  first.kill('SIGKILL');
  await once(first, 'exit');
}

it('a process that follows another one answers questions once it has loaded, until that one ends', async () => {
  const end = follow();
  expect(await askProcess(directory, 'gateway-next', FACTS_QUESTION, 1_000)).toEqual({ pid: process.pid });
  await endFirst();
  process.emit(FOLLOW_SIGNAL);
  await end;
  await expect(askProcess(directory, 'gateway-next', FACTS_QUESTION, 1_000)).rejects.toThrow('ENOENT');
});

it('a process that follows another one ignores a signal while that one is alive', async () => {
  let isOver = false;
  const end = follow().then(() => (isOver = true));
  process.emit(FOLLOW_SIGNAL);
  await askProcess(directory, 'gateway-next', FACTS_QUESTION, 1_000);
  expect(isOver).toBe(false);
  await endFirst();
  process.emit(FOLLOW_SIGNAL);
  await end;
});

it('a process that follows another one notices its end within a second, and a later signal does not end it', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const end = follow();
  await endFirst();
  vi.advanceTimersByTime(1_000);
  await end;
  expect(vi.getTimerCount()).toBe(0);
  expect(process.listenerCount(FOLLOW_SIGNAL)).toBe(1);
});
