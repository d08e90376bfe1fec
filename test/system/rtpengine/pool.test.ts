import { afterEach, beforeEach, expect, it } from 'vitest';
import type { RelayCall } from '../../../src/gateway/ports/ports.js';
import type { RelayPool } from '../../../src/gateway/relay/pool.js';
import { CallEnd } from '../../support/media/call-end.js';
import { hearEachOther, negotiate } from '../../support/relayed-call.js';
import { RunningRtpengine } from '../../support/rtpengine.js';

// Two real rtpengines, one of which is killed.

let first: RunningRtpengine;
let second: RunningRtpengine;
let pool: RelayPool;
let carrier: CallEnd;
let agent: CallEnd;
const call: RelayCall = { relayId: 'call', agentSideSrtp: false, carrierSideSrtp: true };

beforeEach(async () => {
  [first, second] = await Promise.all([RunningRtpengine.start(40), RunningRtpengine.start(40)]);
  pool = first.pool({
    nodes: [first, second].map(({ port }) => ({ address: '127.0.0.1', port })),
    own: null,
  });
  [carrier, agent] = await Promise.all([CallEnd.open(), CallEnd.open({ key: null })]);
  await negotiate(pool, 'carrier', call, carrier, agent);
  expect(pool.nodeOf('call')).toBe(first.name);
});

afterEach(async () => {
  pool.close();
  await Promise.all([first.stop(), second.stop(), carrier.close(), agent.close()]);
});

/** Resolves with what the pool tells first. (How soon, test/unit/gateway/relay/pool.test.ts has.) */
function nextLoss(): Promise<{ readonly node: string; readonly relayIds: readonly string[] }> {
  return new Promise((resolve) => pool.onNodeLost((node, relayIds) => resolve({ node, relayIds })));
}

it('a pool of rtpengines reports a node that was killed, and moves its call to the other one, where both hear each other', async () => {
  const loss = nextLoss();
  await first.kill();
  expect(await loss).toEqual({ node: first.name, relayIds: ['call'] });
  pool.leave('call');
  await negotiate(pool, 'agent', call, carrier, agent);
  expect(pool.nodeOf('call')).toBe(second.name);
  expect(await hearEachOther(carrier, agent)).toBe(true);
  await pool.offer({ ...call, relayId: 'new' }, carrier.sdp());
  expect(pool.nodeOf('new')).toBe(second.name);
});

it('a pool of rtpengines uses a node again when it is back', async () => {
  const loss = nextLoss();
  await first.kill();
  await loss;
  const back = new Promise((resolve) => pool.onNodeBack(resolve));
  await first.startAgain();
  expect(await back).toBe(first.name);
  await pool.delete('call');
  await pool.offer({ ...call, relayId: 'new' }, carrier.sdp());
  expect(pool.nodeOf('new')).toBe(first.name);
});

it('a pool of rtpengines reports the calls of a node that restarted too quickly to miss a ping', async () => {
  // Its uptime must have been asked for once, and have grown by more than the whole seconds in which it is told.
  const other = first.node();
  await expect
    .poll(async () => Number(((await other.command('statistics'))['statistics'] as Uptime).totalstatistics.uptime))
    .toBeGreaterThanOrEqual(3);
  other.close();
  const loss = nextLoss();
  await first.kill();
  await first.startAgain();
  expect(await loss).toEqual({ node: first.name, relayIds: ['call'] });
  expect(pool.isUp).toBe(true);
});

interface Uptime {
  readonly totalstatistics: { readonly uptime: string };
}

it('a pool of rtpengines tries the other node when another gateway has taken all ports of the emptier one', async () => {
  const other = second.pool({ instance: 'other' });
  const fill = async (): Promise<void> => {
    for (let serial = 0; ; serial += 1) await other.offer({ ...call, relayId: String(serial) }, carrier.sdp());
  };
  await expect(fill()).rejects.toThrow('Ran out of ports');
  expect(pool.nodes().map(({ calls }) => calls)).toEqual([1, 0]);
  await pool.offer({ ...call, relayId: 'new' }, carrier.sdp());
  expect(pool.nodeOf('new')).toBe(first.name);
  other.close();
});
