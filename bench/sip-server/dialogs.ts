import { startRedis } from '../../test/support/redis.js';
import { cpuMs, median } from '../support/process-figures.js';
import type { LoadTarget } from './generator.js';
import { order, startAll, type All } from './processes.js';

/** Between 200 and ACK, and between ACK and BYE: as over a network, so that each is a change of its own. */
const PAUSE_MS = 100;
const RATE = 500;
const ROUNDS = 5;

type Place = 'memory' | 'file' | 'redis';

/** Milliseconds of CPU a call. */
interface Cost {
  readonly server: number;
  readonly redis: number;
}

/**
 * What it costs the SIP server to keep its dialogs for the next process, and for another host (`sip.take_over`): CPU a call of three
 * servers, slice by slice in one run.
 */
export async function dialogCosts(messages: LoadTarget['messages'], seconds: number): Promise<void> {
  const redis = await startRedis();
  // As `trunkline up` has it.
  await redis.command('CONFIG SET appendfsync everysec');
  const redisMs = async (): Promise<number> => {
    const info = await redis.command('INFO cpu');
    return ['user', 'sys'].reduce((sum, kind) => sum + 1_000 * Number(new RegExp(`used_cpu_${kind}:([\\d.]+)`).exec(info)?.[1]), 0);
  };
  const started = new Map<Place, All>();
  const costs: Record<Place, Cost[]> = { memory: [], file: [], redis: [] };
  try {
    for (const dialogs of ['memory', 'file', 'redis'] as const)
      started.set(dialogs, await startAll({ profile: false, messages, drachtio: null, dialogs, redisUrl: redis.url }));
    // The first round warms up.
    for (let round = 0; round <= ROUNDS; round += 1) {
      for (const [place, { server, generator, target }] of started) {
        const before = [cpuMs(server.pid), await redisMs()] as const;
        const { completed, failed } = await order(generator, { type: 'open', target, rate: RATE, seconds, pauseMs: PAUSE_MS });
        // The last changes are written.
        await new Promise((resolve) => setTimeout(resolve, 200));
        if (failed > 0) throw new Error(`${String(failed)} calls failed`);
        const cost = { server: (cpuMs(server.pid) - before[0]) / completed, redis: ((await redisMs()) - before[1]) / completed };
        if (round > 0) costs[place].push(cost);
      }
    }
  } finally {
    for (const { close } of started.values()) await close();
    await redis.close();
  }
  console.log(
    `\nDialogs that outlive the SIP server: CPU a call, ${String(RATE)} calls/s, ${String(ROUNDS)} rounds of ${String(seconds)} s`,
  );
  const line = (title: string, place: Place, beside: Place | null): void => {
    const own = costs[place].map(({ server }) => server);
    const more = own.map((ms, round) => ms - (costs[beside ?? place][round]?.server ?? 0));
    const redisOwn = costs[place].map((cost) => cost.redis);
    console.log(
      `  ${title} ${median(own).toFixed(4)} ms` +
        (beside === null ? '' : `; more than the line before ${median(more).toFixed(4)} (${more.map((ms) => ms.toFixed(4)).join(', ')})`) +
        (place === 'redis' ? `; Redis itself ${median(redisOwn).toFixed(4)} ms` : ''),
    );
  };
  line('in memory          ', 'memory', null);
  line('in dialogs.journal ', 'file', 'memory');
  line('and in Redis       ', 'redis', 'file');
}
