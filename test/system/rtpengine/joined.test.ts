import { beforeEach, describe, expect, it } from 'vitest';
import type { RelayCall } from '../../../src/gateway/ports/ports.js';
import type { RelayPool } from '../../../src/gateway/relay/pool.js';
import { readRelaySdp, type RelaySide } from '../../../src/gateway/sdp/sdp-read.js';
import { hearEachOther, negotiate, saysTo, sdpOf, sideSdp, takeSide, type CallEnd, type RelayedSides } from '../../support/relayed-call.js';
import { withRelay } from '../../support/relay-site.js';

// Two calls whose agent sides send to each other: what a transfer by a second call of ours asks of the real rtpengine.

const relay = withRelay();
let pool: RelayPool;
let caller: CallEnd;
let agent: CallEnd;
let callee: CallEnd;
let first: RelayCall;
let second: RelayCall;
let sides: RelayedSides;

beforeEach(async () => {
  ({ pool } = relay);
  first = { relayId: relay.newRelayId(), agentSideSrtp: false, carrierSideSrtp: true };
  second = { ...first, relayId: relay.newRelayId(), beside: first.relayId };
  [caller, agent, callee] = [await relay.newEnd(true), await relay.newEnd(false), await relay.newEnd(true)];
  sides = await negotiate(pool, 'carrier', first, caller, agent);
  expect(await hearEachOther(caller, agent)).toBe(true);
});

function sideOf(sdp: string): RelaySide {
  const side = readRelaySdp(sdp);
  if (side === undefined) throw new Error(`not one audio line: ${sdp}`);
  return side;
}

/** The second call is dialled and answered; its agent side is the first one's. */
async function dial(): Promise<RelaySide> {
  const outside = sideOf((await pool.offerToCarrier(second, sideSdp(sides.inside))).sdp);
  const inside = sideOf((await pool.answerFromCarrier(second, sdpOf(callee))).sdp);
  takeSide(callee, outside);
  return inside;
}

/** The first call's agent side from now on; its carrier hears of nothing. */
async function join(side: RelaySide): Promise<RelayedSides> {
  const outside = sideOf((await pool.offerToCarrier(first, sideSdp(side))).sdp);
  const inside = sideOf((await pool.answerFromCarrier(first, sdpOf(caller))).sdp);
  return { inside, outside };
}

describe('a call that is joined with another one', () => {
  it('keeps its address, ports and key; both carriers hear each other, and the agent neither', async () => {
    expect(await join(await dial())).toEqual(sides);
    const before = agent.peer.received.length;
    expect(await hearEachOther(caller, callee)).toBe(true);
    expect(agent.peer.received.length).toBe(before);
  });

  it('keeps them when rtpengine has long learnt where the agent is', async () => {
    for (let round = 0; round < 20; round += 1) expect(await hearEachOther(caller, agent)).toBe(true);
    expect(await join(await dial())).toEqual(sides);
    expect(await hearEachOther(caller, callee)).toBe(true);
  });

  it('sends the caller’s audio to the callee, also when the agent’s first packet comes just afterwards', async () => {
    const silent = await relay.newEnd(false);
    await negotiate(pool, 'agent', first, caller, silent);
    await join(await dial());
    const before = caller.peer.received.length;
    await silent.peer.speak(new Int16Array(160));
    await caller.peer.until(() => caller.peer.received.length > before);
    expect(await saysTo(caller, callee)).toBe(true);
  });

  it('follows its carrier to another address, and comes back to the endpoint at another port', async () => {
    const inside = await dial();
    await join(inside);
    expect(await hearEachOther(caller, callee)).toBe(true);
    const moved = await relay.newEnd(true);
    const offered = sideOf((await pool.offer(first, sdpOf(moved))).sdp);
    const answered = sideOf((await pool.answer(first, sideSdp(inside))).sdp);
    expect({ inside: offered, outside: answered }).toEqual(sides);
    takeSide(moved, answered);
    expect(await hearEachOther(moved, callee)).toBe(true);
    const other = await relay.newEnd(false);
    expect(await negotiate(pool, 'agent', first, moved, other)).toEqual(sides);
    expect(await hearEachOther(moved, other)).toBe(true);
  });

  it('goes on alone when the other one is deleted', async () => {
    await join(await dial());
    await pool.delete(second.relayId);
    expect(await negotiate(pool, 'agent', first, caller, agent)).toEqual(sides);
    expect(await hearEachOther(caller, agent)).toBe(true);
  });
});

describe('a call that is joined with another one, with SRTP on the agent side', () => {
  it('needs another key for its carrier: the keys pass through', async () => {
    const [end, inner, other] = [await relay.newEnd(true), await relay.newEnd(true), await relay.newEnd(true)];
    const [one, two] = [first, second].map((call) => ({ ...call, relayId: relay.newRelayId(), beside: null, agentSideSrtp: true }));
    const before = await negotiate(pool, 'carrier', one!, end, inner);
    const outside = sideOf((await pool.offerToCarrier(two!, sideSdp(before.inside))).sdp);
    const inside = sideOf((await pool.answerFromCarrier(two!, sdpOf(other))).sdp);
    takeSide(other, outside);
    const offered = sideOf((await pool.offerToCarrier(one!, sideSdp(inside))).sdp);
    expect(offered).toMatchObject({ address: before.outside.address, rtpPort: before.outside.rtpPort });
    expect(offered.crypto?.inline).not.toBe(before.outside.crypto?.inline);
    sideOf((await pool.answerFromCarrier(one!, sdpOf(end))).sdp);
    takeSide(end, offered);
    expect(await hearEachOther(end, other)).toBe(true);
  });
});
