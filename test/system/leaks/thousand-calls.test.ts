import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLog } from '../../../src/lib/log.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { RtpengineNode } from '../../../src/gateway/relay/node.js';
import { isExpected, KINDS, placeMixedCalls, type Tally } from '../../soak/mixed-calls.js';
import { until } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import { freePorts } from '../../support/ports.js';
import { CHILDREN, childPid, isAlive, openFiles, startedBy } from '../../support/processes.js';

const CALLS = 1_000;
// Room for far fewer than a thousand: what is not given back is missed before the end.
const MEDIA_LEGS = 128;
const TRANSACTIONS = 900;
const T1_MS = 50;
/** Longer than any test: a gateway that waits for it hangs. */
const DRAIN_MS = 600_000;

let gateway: RunningGateway;
let rtpengine: RtpengineNode;
let redis: Redis;
let before: { readonly keys: ReadonlySet<string>; readonly files: Readonly<Record<string, number>> };

const files = (): Record<string, number> =>
  Object.fromEntries(CHILDREN.map((name) => [name, openFiles(childPid(gateway.ready.pid, name))]));

const calls = (count: number): Promise<Tally> =>
  placeMixedCalls({
    port: gateway.sipPort,
    ca: gateway.ca,
    number: gateway.ready.phone_number,
    calls: count,
    rate: 60,
    // Fewer than there is room for, on however slow a machine.
    atOnce: MEDIA_LEGS / 2,
    connections: 4,
  });

const sessions = async (): Promise<unknown> => (await rtpengine.command('list'))['calls'];

async function keys(): Promise<Set<string>> {
  const all = new Set<string>();
  for await (const page of redis.scanStream({ count: 1_000 }) as AsyncIterable<string[]>) for (const key of page) all.add(key);
  return all;
}

beforeAll(async () => {
  const [media] = await freePorts(1);
  gateway = await RunningGateway.start({
    TRUNKLINE_SIP_T1_MS: String(T1_MS),
    TRUNKLINE_SIP_MAX_TRANSACTIONS: String(TRANSACTIONS),
    TRUNKLINE_CALLS_DRAIN_MS: String(DRAIN_MS),
    ...mediaPorts(media!),
  });
  rtpengine = new RtpengineNode({
    address: '127.0.0.1',
    port: Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']),
    timeoutMs: 2_000,
    clock: systemClock,
    log: silentLog,
  });
  redis = new Redis(Number(gateway.environment['TRUNKLINE_REDIS_PORT']), '127.0.0.1');
  // One of each kind first: what is opened once and kept is open then.
  await calls(KINDS.length);
  await until(async () => JSON.stringify(await sessions()) === '[]', 'sessions are left');
  before = { keys: await keys(), files: files() };
});

/** Two pairs, 64 calls each, and as many for a successor. */
function mediaPorts(near: number): Record<string, string> {
  const first = near - (near % 2);
  return { TRUNKLINE_MEDIA_PORT_MIN: String(first), TRUNKLINE_MEDIA_PORT_MAX: String(first + MEDIA_LEGS / 16 - 1) };
}

afterAll(async () => {
  rtpengine.close();
  redis.disconnect();
  await gateway.destroy();
});

describe(`${String(CALLS)} calls, a fifth of each kind: ${KINDS.join(', ')}`, () => {
  it('end as expected, though there is room for few at a time', async () => {
    expect(await gateway.log('gateway')).toContain(`"capacity":${String(MEDIA_LEGS)}`);
    const tally = await calls(CALLS);
    expect(Object.keys(tally).filter((line) => !isExpected(line))).toEqual([]);
    expect(Object.values(tally).reduce((sum, count) => sum + count, 0)).toBe(CALLS);
    expect(tally['answered: 200, BYE 200']).toBe(CALLS / KINDS.length);
    expect(tally['held and resumed: 200, hold 200, resume 200, BYE 200']).toBe(CALLS / KINDS.length);
  });

  it('leave no session in rtpengine', async () => {
    await expect.poll(sessions).toEqual([]);
  });

  it('leave only keys that expire in Redis', async () => {
    const added = [...(await keys())].filter((key) => !before.keys.has(key));
    // The answered ones have a record each, the others are in lists that were there already or expire too.
    expect(added.length).toBeGreaterThan(CALLS / 2);
    // -1: it never expires. One that is gone meanwhile (-2) is not left; the snapshot of a call goes after its record.
    const staying = async (): Promise<string[]> => {
      const lives = await Promise.all(added.map((key) => redis.ttl(key)));
      return added.filter((_key, index) => lives[index] === -1);
    };
    await expect.poll(staying).toEqual([]);
  });

  it('leave no file or socket open in any process', async () => {
    await expect
      .poll(() => CHILDREN.filter((name) => files()[name]! > before.files[name]!).map((name) => [name, files()[name], before.files[name]]))
      .toEqual([]);
  });

  it('leave no call in the gateway, which stops before the drain time', async () => {
    // The shells that run espeak-ng have no environment by which `processesOf` would find them.
    const helpers = startedBy(childPid(gateway.ready.pid, 'gateway'));
    expect(helpers).toHaveLength(4);
    expect(await gateway.stop()).toBe(0);
    await expect.poll(() => helpers.filter(isAlive)).toEqual([]);
    const log = await gateway.log('gateway');
    expect(log).not.toMatch(/call\.(bug|step\.failed|close\.failed|record\.not_written|bye\.failed)|unhandled_rejection/);
  });
});
