import { describe, expect, it } from 'vitest';
import { MediaUnavailableError, type RelayCall } from '../../../../src/gateway/ports/ports.js';
import { silentLog } from '../../../../src/lib/log.js';
import { callsOf } from '../../../../src/gateway/relay/media-ports.js';
import { RtpengineError, type NgReply } from '../../../../src/gateway/relay/node.js';
import { RelayPool, type RelayPoolOptions } from '../../../../src/gateway/relay/pool.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { turn } from '../../../support/turn.js';

/** Timers fire later than they should by what `stallMs` has grown. */
class StallingClock extends VirtualClock {
  stallMs = 0;

  override nowMs(): number {
    return super.nowMs() + this.stallMs;
  }
}

/** An rtpengine that answers, refuses, or does not, as the test says, in no time. */
class FakeNode {
  readonly sessions = new Set<string>();
  readonly asked: string[] = [];
  isAlive = true;
  answersPings = true;
  /** Sessions of all gateways. */
  sessionsOwn: number | undefined;
  refusal: string | null = null;
  /** Replaces the answer to `offer`. */
  answer: NgReply | null = null;
  upSinceMs = 0;
  outstanding = 0;
  delayMs = 0;
  readonly #held: (() => void)[] = [];
  readonly #unanswered = new Set<(error: RtpengineError) => void>();

  constructor(private readonly clock: VirtualClock) {}

  command(name: string, args: object = {}): Promise<NgReply> {
    this.asked.push(name);
    return this.#after(1_000, () => this.#do(name, args as Record<string, unknown>));
  }

  probe(_name: string, timeoutMs: number): Promise<NgReply> {
    const uptime = String(Math.floor((this.clock.nowMs() - this.upSinceMs) / 1_000));
    if (!this.answersPings) return new Promise(() => undefined);
    const currentstatistics = { sessionsown: this.sessionsOwn };
    return this.#after(timeoutMs, () => ({ statistics: { totalstatistics: { uptime }, currentstatistics } }));
  }

  abandon(): void {
    for (const reject of this.#unanswered) reject(new RtpengineError('timeout', 'abandoned'));
  }

  /** It stood still: what was asked meanwhile lay in its socket. */
  goOn(): void {
    this.isAlive = true;
    for (const answer of this.#held.splice(0)) answer();
  }

  restart(): void {
    this.sessions.clear();
    this.upSinceMs = this.clock.nowMs();
  }

  close(): void {
    this.isAlive = false;
  }

  async #after(timeoutMs: number, answer: () => NgReply): Promise<NgReply> {
    if (this.refusal !== null) throw new RtpengineError('refused', this.refusal);
    if (this.isAlive) return answer();
    return new Promise((resolve, reject) => {
      this.#held.push(() => resolve(answer()));
      this.#unanswered.add(reject);
      this.clock.setTimer(timeoutMs, () => reject(new RtpengineError('timeout', 'no answer')));
    });
  }

  #do(name: string, args: Record<string, unknown>): NgReply {
    const callId = String(args['call-id']);
    if (name === 'offer') this.sessions.add(callId);
    if (name === 'list') return { calls: [...this.sessions].slice(0, Number(args['limit'])) };
    if (name === 'query' && !this.sessions.has(callId)) throw new RtpengineError('refused', 'Unknown call-id');
    if (name === 'delete') return this.sessions.delete(callId) ? { result: 'ok', tags: {} } : { result: 'ok', warning: 'not found' };
    return this.answer ?? { sdp: 'v=0' };
  }
}

function poolOf(count: number, changes: Partial<RelayPoolOptions> = {}) {
  const clock = new StallingClock();
  const nodes: FakeNode[] = [];
  const options = {
    nodes: Array.from({ length: count }, (_, index) => ({ address: '127.0.0.1', port: index + 1 })),
    interfaces: null,
    instance: 'gw',
    clock,
    log: silentLog,
    maxDelayMs: 100,
    own: null,
    ...changes,
  };
  const pool = new RelayPool(options, () => {
    const node = new FakeNode(clock);
    nodes.push(node);
    return node;
  });
  const events: [string, ...string[]][] = [];
  pool.onNodeLost((node, relayIds) => events.push([`lost ${node}`, ...relayIds]));
  pool.onNodeBack((node) => events.push([`back ${node}`]));
  return { pool, clock, nodes, events };
}

const call = (relayId: string): RelayCall => ({ relayId, agentSideSrtp: false, carrierSideSrtp: true });

describe('the pool, when it places calls,', () => {
  it('distributes them evenly, and a call stays on its node', async () => {
    const { pool, nodes } = poolOf(2);
    for (const id of ['a', 'b', 'c', 'd']) await pool.offer(call(id), 'v=0');
    expect(nodes.map(({ sessions }) => sessions.size)).toEqual([2, 2]);
    const node = pool.nodeOf('a');
    await pool.answer(call('a'), 'v=0');
    await pool.offerToCarrier(call('a'), 'v=0');
    expect(pool.nodeOf('a')).toBe(node);
    expect(pool.nodes().map(({ calls }) => calls)).toEqual([2, 2]);
  });

  it('prefers a node with less outstanding work', async () => {
    const { pool, nodes } = poolOf(2);
    nodes[0]!.outstanding = 5;
    for (const id of ['a', 'b', 'c']) await pool.offer(call(id), 'v=0');
    expect(nodes.map(({ sessions }) => sessions.size)).toEqual([0, 3]);
  });

  it('reports excess when offers wait too long on every node, counting live ones only', () => {
    const { pool, nodes } = poolOf(2);
    nodes[0]!.delayMs = 101;
    expect(pool.excess()).toBeNull();
    nodes[1]!.delayMs = 101;
    expect(pool.excess()).toMatch(/^calls wait \d+ ms for rtpengine, limit \d+ ms$|^\d+ calls wait for rtpengine, limit \d+$/);
    nodes[1]!.delayMs = 20;
    expect(pool.excess()).toBeNull();
  });

  it('reports excess while 128 offers of each live node are unanswered, though none has waited', async () => {
    const { pool, nodes } = poolOf(2);
    for (const node of nodes) node.isAlive = false;
    const offers = Array.from({ length: 255 }, (_, index) => pool.offer(call(String(index)), 'v=0'));
    expect(pool.excess()).toBeNull();
    offers.push(pool.offer(call('255'), 'v=0'));
    expect(pool.excess()).toMatch(/^calls wait \d+ ms for rtpengine, limit \d+ ms$|^\d+ calls wait for rtpengine, limit \d+$/);
    // Offers reach their node in a later turn.
    await turn();
    for (const node of nodes) node.goOn();
    await Promise.all(offers);
    expect(pool.excess()).toBeNull();
  });

  it.each(['Ran out of ports', 'Parallel session limit reached'])('tries a second node when the first answers "%s"', async (refusal) => {
    const { pool, nodes } = poolOf(2);
    nodes[0]!.refusal = refusal;
    await pool.offer(call('a'), 'v=0');
    expect(pool.nodeOf('a')).toBe('127.0.0.1:2');
    await pool.answer(call('a'), 'v=0');
    expect(nodes[1]!.asked).toEqual(['offer', 'answer']);
  });

  it('tries no other node when the offer is at fault, and no third one', async () => {
    const { pool, nodes } = poolOf(3);
    nodes[0]!.refusal = 'Failed to parse SDP';
    await expect(pool.offer(call('a'), 'v=0')).rejects.toThrow('rtpengine offer: Failed to parse SDP');
    expect([nodes[1]!.asked, nodes[2]!.asked, pool.nodeOf('a')]).toEqual([[], [], null]);
    const full = poolOf(3);
    for (const node of full.nodes) node.refusal = 'Ran out of ports';
    await expect(full.pool.offer(call('b'), 'v=0')).rejects.toBeInstanceOf(MediaUnavailableError);
    expect(full.nodes[2]!.asked).toEqual([]);
  });

  it('tries a second node when the first does not answer, before that is found dead', async () => {
    const { pool, clock, nodes } = poolOf(2);
    nodes[0]!.isAlive = false;
    const offered = pool.offer(call('a'), 'v=0');
    await clock.advanceAsync(900);
    expect(await offered).toEqual({ sdp: 'v=0' });
    expect(pool.nodeOf('a')).toBe('127.0.0.1:2');
  });

  it.each([
    ['no SDP', { result: 'ok' }],
    ['an empty SDP', { sdp: '' }],
    ['an SDP that is not a string', { sdp: 7 }],
  ])('treats an answer with %s as unavailable media, and frees the session', async (_what, answer) => {
    const { pool, nodes } = poolOf(1);
    nodes[0]!.answer = answer;
    await expect(pool.offer(call('a'), 'v=0')).rejects.toThrow('answered without an SDP');
    await turn();
    expect(nodes[0]!.sessions.size).toBe(0);
  });

  it('rejects an answer for a call that is on no node', async () => {
    const { pool } = poolOf(1);
    await expect(pool.answer(call('a'), 'v=0')).rejects.toThrow('the call is on no node');
    expect(await pool.delete('a')).toBeNull();
  });
});

describe('a node that stops answering', () => {
  it('is lost with its calls within a second; new calls go elsewhere, and its own are refused at once', async () => {
    const { pool, clock, nodes, events } = poolOf(2);
    await pool.offer(call('a'), 'v=0');
    await clock.advanceAsync(10_000);
    nodes[0]!.isAlive = false;
    await clock.advanceAsync(800);
    for (const id of ['b', 'c']) await pool.offer(call(id), 'v=0');
    expect([pool.nodeOf('b'), pool.nodeOf('c'), pool.nodeOf('a')]).toEqual(['127.0.0.1:2', '127.0.0.1:2', '127.0.0.1:1']);
    await expect(pool.answer(call('a'), 'v=0')).rejects.toThrow('does not answer');
    expect(events).toEqual([]);
    await clock.advanceAsync(600);
    expect(events).toEqual([['lost 127.0.0.1:1', 'a']]);
  });

  it('keeps its calls when it was only suspended for a second, whether or not others are alive', async () => {
    for (const count of [1, 2]) {
      const { pool, clock, nodes, events } = poolOf(count);
      await pool.offer(call('a'), 'v=0');
      await clock.advanceAsync(10_000);
      nodes[0]!.isAlive = false;
      await clock.advanceAsync(1_000);
      nodes[0]!.goOn();
      await clock.advanceAsync(5_000);
      expect(events).toEqual([['back 127.0.0.1:1']]);
      await pool.answer(call('a'), 'v=0');
    }
  });

  it('is alive as long as it answers anything, even an error', async () => {
    const { pool, clock, nodes, events } = poolOf(1);
    await pool.offer(call('a'), 'v=0');
    nodes[0]!.answersPings = false;
    for (let round = 0; round < 20; round += 1) {
      nodes[0]!.refusal = round % 2 === 0 ? 'Unknown call-id' : null;
      await pool.answer(call('a'), 'v=0').catch(() => undefined);
      await clock.advanceAsync(400);
    }
    expect([events, pool.isUp]).toEqual([[], true]);
    await clock.advanceAsync(800);
    expect(pool.isUp).toBe(false);
  });

  it('makes the pool refuse at once when it was the last one', async () => {
    const { pool, clock, nodes } = poolOf(2);
    for (const node of nodes) node.isAlive = false;
    await clock.advanceAsync(1_000);
    expect([pool.isUp, pool.headroom()]).toEqual([false, 0]);
    const before = clock.nowMs();
    await expect(pool.offer(call('a'), 'v=0')).rejects.toThrow('no rtpengine answers');
    expect(clock.nowMs()).toBe(before);
  });

  it('is used again when it answers, after what was left on it is freed', async () => {
    const { pool, clock, nodes, events } = poolOf(1);
    await pool.offer(call('a'), 'v=0');
    await pool.offer(call('b'), 'v=0');
    nodes[0]!.isAlive = false;
    await clock.advanceAsync(1_000);
    // One ends, one leaves for a node that lives.
    expect(await pool.delete('a')).toBeNull();
    pool.leave('b');
    await clock.advanceAsync(60_000);
    expect(nodes[0]!.sessions.size).toBe(2);
    nodes[0]!.isAlive = true;
    await clock.advanceAsync(1_000);
    expect([nodes[0]!.sessions.size, events.at(-1), pool.isUp]).toEqual([0, ['back 127.0.0.1:1'], true]);
    await pool.offer(call('b'), 'v=0');
    expect([...nodes[0]!.sessions]).toEqual(['gw:b']);
  });

  it('is not lost when the gateway itself was suspended', async () => {
    const { pool, clock, nodes, events } = poolOf(1);
    nodes[0]!.isAlive = false;
    for (let round = 0; round < 10; round += 1) {
      clock.stallMs += 300;
      await clock.advanceAsync(200);
    }
    // The answers may have been in the socket all the time.
    expect([events, pool.isUp]).toEqual([[], true]);
    await clock.advanceAsync(800);
    expect([events, pool.isUp]).toEqual([[], false]);
    await clock.advanceAsync(2_000);
    expect(events).toEqual([['lost 127.0.0.1:1']]);
  });

  it('keeps its calls for two seconds when no other one is alive, and for good if it was only suspended', async () => {
    const { pool, clock, nodes, events } = poolOf(1);
    await pool.offer(call('a'), 'v=0');
    nodes[0]!.isAlive = false;
    await clock.advanceAsync(2_500);
    expect([events, pool.isUp]).toEqual([[], false]);
    nodes[0]!.isAlive = true;
    await clock.advanceAsync(5_000);
    expect(events).toEqual([['back 127.0.0.1:1']]);
    await pool.answer(call('a'), 'v=0');
  });

  it('loses its calls when it is back as another process, or not back in time', async () => {
    const { pool, clock, nodes, events } = poolOf(1);
    await pool.offer(call('a'), 'v=0');
    nodes[0]!.isAlive = false;
    await clock.advanceAsync(2_000);
    nodes[0]!.restart();
    nodes[0]!.isAlive = true;
    await clock.advanceAsync(1_000);
    expect(events).toEqual([['back 127.0.0.1:1'], ['lost 127.0.0.1:1', 'a']]);
    const late = poolOf(1);
    await late.pool.offer(call('b'), 'v=0');
    late.nodes[0]!.isAlive = false;
    await late.clock.advanceAsync(2_800);
    expect(late.events).toEqual([['lost 127.0.0.1:1', 'b']]);
  });

  it('gives its calls to another one that comes back first', async () => {
    const { pool, clock, nodes, events } = poolOf(2);
    await pool.offer(call('a'), 'v=0');
    nodes[1]!.isAlive = false;
    await clock.advanceAsync(1_500);
    nodes[0]!.isAlive = false;
    await clock.advanceAsync(1_000);
    nodes[1]!.isAlive = true;
    await clock.advanceAsync(1_000);
    expect(events).toEqual([['lost 127.0.0.1:2'], ['lost 127.0.0.1:1', 'a'], ['back 127.0.0.1:2']]);
  });
});

describe('a node that restarts', () => {
  it('is detected within 2 s, by the calls that it has lost', async () => {
    const { pool, clock, nodes, events } = poolOf(2);
    for (const id of ['a', 'b', 'c']) await pool.offer(call(id), 'v=0');
    await clock.advanceAsync(10_000);
    nodes[0]!.restart();
    await clock.advanceAsync(100);
    await pool.delete('c');
    await pool.offer(call('new'), 'v=0');
    expect(pool.nodeOf('new')).toBe('127.0.0.1:1');
    await clock.advanceAsync(1_900);
    expect(events).toEqual([['lost 127.0.0.1:1', 'a']]);
    expect(pool.isUp).toBe(true);
    // The call is offered anew to the same node: the only other thing that it could find there is its own old session.
    pool.leave('a');
    await pool.offerToCarrier(call('a'), 'v=0');
    expect(nodes.flatMap(({ sessions }) => [...sessions]).sort()).toEqual(['gw:a', 'gw:b', 'gw:new']);
  });

  it('loses nothing when only a clock was set', async () => {
    const { pool, clock, nodes, events } = poolOf(1);
    await pool.offer(call('a'), 'v=0');
    await clock.advanceAsync(10_000);
    nodes[0]!.upSinceMs = clock.nowMs();
    await clock.advanceAsync(5_000);
    expect(events).toEqual([]);
  });

  it('together with the gateway loses an adopted call that it does not have', async () => {
    const { pool, clock, nodes, events } = poolOf(1);
    nodes[0]!.sessions.add('gw:kept');
    expect([pool.adopt('kept', '127.0.0.1:1'), pool.adopt('gone', '127.0.0.1:1'), pool.adopt('x', '127.0.0.1:9')]).toEqual([
      true,
      true,
      false,
    ]);
    await clock.advanceAsync(0);
    expect(events).toEqual([['lost 127.0.0.1:1', 'gone']]);
    await pool.answer(call('kept'), 'v=0');
  });
});

describe('a delete command', () => {
  it('is sent again until it is confirmed', async () => {
    const { pool, clock, nodes } = poolOf(1);
    await pool.offer(call('a'), 'v=0');
    nodes[0]!.refusal = 'busy';
    const figures = pool.delete('a');
    await clock.advanceAsync(1_000);
    nodes[0]!.refusal = null;
    await clock.advanceAsync(1_000);
    expect(await figures).toMatchObject({ fromCarrier: { packets: 0 } });
    expect(nodes[0]!.asked.filter((name) => name === 'delete')).toHaveLength(3);
  });

  it('is given up after about 20 s, and the session is left to rtpengine’s own timeout', async () => {
    const { pool, clock, nodes } = poolOf(1);
    await pool.offer(call('a'), 'v=0');
    nodes[0]!.refusal = 'busy';
    const outcome = pool.delete('a').catch((error: unknown) => error);
    await clock.advanceAsync(25_000);
    expect(await outcome).toBeInstanceOf(MediaUnavailableError);
    expect(nodes[0]!.asked.filter((name) => name === 'delete')).toHaveLength(4);
  });

  it('does not overtake the call’s offer, which then goes to no other node', async () => {
    const { pool, clock, nodes } = poolOf(2);
    nodes[0]!.isAlive = false;
    const offered = pool.offer(call('a'), 'v=0').catch((error: unknown) => error);
    await clock.advanceAsync(0);
    const deleted = pool.delete('a');
    expect(nodes[0]!.asked).toEqual(['offer']);
    await clock.advanceAsync(1_000);
    expect(await offered).toBeInstanceOf(MediaUnavailableError);
    expect([await deleted, nodes[1]!.asked]).toEqual([null, []]);
  });
});

describe('the sessions that an earlier process left', () => {
  const reconciled = async (own: RelayPoolOptions['own'], keep: string[]) => {
    const { pool, nodes } = poolOf(1, { own, instance: 'gw:1' });
    for (const id of ['gw%3A1:a', 'gw%3A1:b', 'gw%3A2:x', 'other']) nodes[0]!.sessions.add(id);
    await pool.reconcile(new Set(keep));
    return [...nodes[0]!.sessions];
  };

  it('are freed except calls to keep; on our own node all of them, unless another process of ours has them', async () => {
    expect(await reconciled({ capacity: 2_500, instances: ['gw:1', 'gw:2'] }, ['b', 'x'])).toEqual(['gw%3A1:b', 'gw%3A2:x']);
  });

  it('are freed on a shared node when they are ours', async () => {
    expect(await reconciled(null, ['b'])).toEqual(['gw%3A1:b', 'gw%3A2:x', 'other']);
  });

  it('may be more than a list of them holds', async () => {
    const { pool, nodes } = poolOf(1);
    for (let serial = 0; serial < 1_700; serial += 1) nodes[0]!.sessions.add(`gw:${String(serial)}`);
    await pool.reconcile(new Set(Array.from({ length: 700 }, (_, serial) => String(serial))));
    expect(nodes[0]!.sessions.size).toBe(700);
  });

  it('are freed on a node that did not answer at first when it is back, except calls that are on it by then', async () => {
    const { pool, clock, nodes } = poolOf(2);
    const [first, silent] = nodes as [FakeNode, FakeNode];
    for (const id of ['gw:left', 'gw:kept']) silent.sessions.add(id);
    silent.isAlive = false;
    const reconciling = pool.reconcile(new Set(['kept']));
    await clock.advanceAsync(1_000);
    await reconciling;
    first.isAlive = false;
    silent.goOn();
    await clock.advanceAsync(1_000);
    await pool.offer(call('new'), 'v=0');
    expect([...silent.sessions]).toEqual(['gw:kept', 'gw:new']);
    await clock.advanceAsync(5_000);
    expect([...silent.sessions]).toEqual(['gw:kept', 'gw:new']);
  });

  it('are unknown when no node answers', async () => {
    const { pool, clock, nodes } = poolOf(2);
    for (const node of nodes) node.isAlive = false;
    const outcome = pool.reconcile(new Set()).catch((error: unknown) => error);
    await clock.advanceAsync(1_000);
    expect(await outcome).toBeInstanceOf(MediaUnavailableError);
  });
});

it('count against the headroom of a node of its own', async () => {
  const { pool } = poolOf(1, { own: { capacity: 3, instances: [] } });
  expect(pool.headroom()).toBe(3);
  await pool.offer(call('a'), 'v=0');
  expect(pool.headroom()).toBe(2);
  await pool.delete('a');
  expect(pool.headroom()).toBe(3);
  expect(poolOf(1).pool.headroom()).toBeNull();
});

it('count against the headroom that several gateways share, which the node reports once a second', async () => {
  const { pool, clock, nodes } = poolOf(1, { own: { capacity: 10, instances: [] } });
  await pool.offer(call('a'), 'v=0');
  nodes[0]!.sessionsOwn = 8;
  await clock.advanceAsync(1_100);
  expect(pool.headroom()).toBe(2);
  await pool.offer(call('b'), 'v=0');
  expect(pool.headroom()).toBe(1);
  nodes[0]!.sessionsOwn = 2;
  await clock.advanceAsync(1_100);
  expect(pool.headroom()).toBe(8);
});

it('make a pool stop asking a full node, for a second or until a call on it ends', async () => {
  const { pool, clock, nodes } = poolOf(1);
  const [node] = nodes;
  await pool.offer(call('a'), 'v=0');
  const offers = (): number => node!.asked.filter((name) => name === 'offer').length;
  const isRefused = async (id: string): Promise<void> => expect(pool.offer(call(id), 'v=0')).rejects.toBeInstanceOf(MediaUnavailableError);
  node!.refusal = 'Ran out of ports';
  await isRefused('b');
  for (const id of ['c', 'd']) await isRefused(id);
  expect([offers(), pool.isUp]).toEqual([2, true]);
  await clock.advanceAsync(1_000);
  await isRefused('e');
  expect(offers()).toBe(3);
  node!.refusal = null;
  await clock.advanceAsync(200);
  await pool.delete('a');
  await pool.offer(call('f'), 'v=0');
  expect(pool.nodeOf('f')).not.toBeNull();
});

it('a node carries as many calls as its ports and its open files allow', () => {
  const ports = { min: 30_000, max: 39_999 };
  expect([callsOf(ports, Infinity), callsOf(ports, 65_536), callsOf(ports, 4_100), callsOf(ports, 50)]).toEqual([2_500, 2_500, 1_000, 0]);
});

it('a pool sends nothing more when it is closed', () => {
  const { pool, clock } = poolOf(2);
  pool.close();
  expect(clock.pendingTimers).toBe(0);
});
