import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SupervisedChild, type Readiness } from '../../../src/supervisor/child.js';
import { redisReadiness } from '../../../src/supervisor/supervisor.js';
import { EventLog } from '../../support/event-log.js';
import { freePorts } from '../../support/ports.js';
import { passUntil, VirtualClock } from '../../support/virtual-clock.js';

const MINUTE_MS = 60_000;
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'trunkline-child-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function starting(readiness: () => Readiness, mustAnswer = false) {
  const clock = new VirtualClock();
  const log = new EventLog();
  const spec = {
    name: 'slow',
    command: 'sleep',
    args: ['600'],
    environment: process.env,
    followerReadiness: null,
    mustAnswer,
    stopSignal: 'SIGTERM' as const,
    ports: [],
    readiness: () => Promise.resolve(readiness()),
    stopTimeoutMs: 1_000,
  };
  return { clock, log, child: new SupervisedChild(spec, directory, clock, log, 20_000) };
}

/** Whether a promise is settled yet; who waits for its outcome still gets it. */
function settled<T>(outcome: Promise<T>) {
  const state = { outcome, isSettled: false };
  outcome.then(
    () => (state.isSettled = true),
    () => (state.isSettled = true),
  );
  return state;
}

describe('the start of a program', () => {
  it('waits as long as the program is loading, and logs its progress', async () => {
    let readiness: Readiness = 'unready';
    const { clock, log, child } = starting(() => readiness);
    const started = settled(child.start());
    await passUntil(clock, () => log.named('supervisor.child.loading').length > 50);
    expect([started.isSettled, clock.nowMs()]).toEqual([false, expect.toSatisfy((nowMs: number) => nowMs > 4 * MINUTE_MS)]);
    readiness = {};
    await passUntil(clock, () => started.isSettled);
    expect(await started.outcome).toEqual({});
    await child.stop();
  });

  it('fails when the program does not answer for 20 s, also after it was loading', async () => {
    let readiness: Readiness = 'unready';
    const { clock, log, child } = starting(() => readiness);
    const started = settled(child.start());
    await passUntil(clock, () => log.named('supervisor.child.loading').length > 5);
    readiness = 'silent';
    const silentMs = clock.nowMs();
    await passUntil(clock, () => started.isSettled);
    await expect(started.outcome).rejects.toThrow('not ready within 20000 ms');
    expect(clock.nowMs() - silentMs).toBeGreaterThanOrEqual(19_000);
  });
});

describe('a program that serves', () => {
  async function serving(asked: () => Readiness) {
    let readiness: Readiness = {};
    let beats = 0;
    const world = starting(() => {
      beats += 1;
      return readiness;
    }, true);
    const started = settled(world.child.start());
    await passUntil(world.clock, () => started.isSettled);
    await started.outcome;
    readiness = asked();
    beats = 0;
    return { ...world, hung: () => world.log.named('supervisor.child.hung').length, beats: () => beats };
  }

  it('gets a health check once a second, however fast it fails, and is killed after six', async () => {
    const { clock, child, hung, beats } = await serving(() => 'silent');
    await clock.advanceAsync(5_500);
    expect([beats(), hung()]).toEqual([5, 0]);
    await clock.advanceAsync(1_000);
    expect([beats(), hung()]).toEqual([6, 1]);
    await child.stop();
  });

  it('survives while it runs without a file handle to answer with', async () => {
    const { clock, child, hung, beats } = await serving(() => 'unready');
    await clock.advanceAsync(MINUTE_MS);
    expect([beats(), hung()]).toEqual([60, 0]);
    await child.stop();
  });
});

describe('a program that an earlier supervisor left', () => {
  async function left() {
    const earlier = starting(() => ({}));
    const started = settled(earlier.child.start());
    await passUntil(earlier.clock, () => started.isSettled);
    await started.outcome;
    let readiness: Readiness = 'silent';
    const world = starting(() => readiness);
    const taking = settled(world.child.start());
    return { ...world, taking, left: earlier.child.pid, answers: () => (readiness = {}) };
  }

  it('may be one that is taking over: it stays when it answers within 6 s', async () => {
    const { child, clock, taking, left: pid, answers } = await left();
    await clock.advanceAsync(5_900);
    answers();
    await passUntil(clock, () => taking.isSettled);
    await taking.outcome;
    expect([child.pid, child.isTakenOver]).toEqual([pid, true]);
    const stopped = settled(child.stop());
    await passUntil(clock, () => stopped.isSettled);
    expect(child.isLeft).toBe(false);
  });

  it('is replaced when it does not answer within 6 s', async () => {
    const { child, clock, log, taking, left: pid, answers } = await left();
    await passUntil(clock, () => log.named('supervisor.child.replaced').length > 0);
    expect(clock.nowMs()).toBeGreaterThanOrEqual(6_000);
    expect(log.named('supervisor.child.replaced')).toMatchObject([{ fields: { child_pid: pid, error: 'not ready within 6000 ms' } }]);
    answers();
    await passUntil(clock, () => taking.isSettled);
    await taking.outcome;
    expect(child.pid).not.toBe(pid);
    await child.stop();
  });
});

describe('the readiness of Redis', () => {
  it('is its own answer: loading while it reads its append-only file, then ready', async () => {
    const [port = 0] = await freePorts(1);
    writeFileSync(join(directory, 'appendonly.aof'), '*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n'.repeat(8_000));
    // It answers clients at each 1,024 commands, of 0.4 ms each.
    const slow = ['--key-load-delay', '400', '--loading-process-events-interval-bytes', '1024'];
    const redis = spawn('redis-server', ['--port', String(port), '--dir', directory, '--appendonly', 'yes', ...slow], { stdio: 'ignore' });
    const seen = new Set<Readiness>();
    const isReady = async (): Promise<boolean> => {
      const readiness = await redisReadiness(port);
      seen.add(readiness);
      return typeof readiness === 'object';
    };
    await expect.poll(isReady, { interval: 10 }).toBe(true);
    expect([...seen]).toContain('unready');
    redis.kill('SIGKILL');
    await once(redis, 'exit');
  });

  it('is silent where nothing listens', async () => {
    const [port = 0] = await freePorts(1);
    expect(await redisReadiness(port)).toBe('silent');
  });
});
