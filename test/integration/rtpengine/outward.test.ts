import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RelayCall } from '../../../src/gateway/ports/ports.js';
import type { RelayPool } from '../../../src/gateway/relay/pool.js';
import { hearEachOther, negotiate, newEnd, sdpOf, type CallEnd } from '../../support/relayed-call.js';
import { RunningRtpengine } from '../../support/rtpengine.js';

// Who offers, carrier or gateway, in every order, with packets through the real rtpengine.

let rtpengine: RunningRtpengine;
let pool: RelayPool;
let agent: CallEnd;
let carrier: CallEnd;
let call: RelayCall;
let serial = 0;
const ends: CallEnd[] = [];

beforeAll(async () => {
  rtpengine = await RunningRtpengine.start(28_500, 28_599);
  pool = rtpengine.pool();
});

beforeEach(async () => {
  call = { relayId: `outward-${String((serial += 1))}`, agentSideSrtp: false, carrierSideSrtp: true };
  agent = await anEnd(false);
  carrier = await anEnd(true);
});

afterEach(async () => {
  await pool.delete(call.relayId);
  for (const { peer } of ends.splice(0)) await peer.close();
});

afterAll(async () => {
  pool.close();
  await rtpengine.stop();
});

async function anEnd(isSecure: boolean): Promise<CallEnd> {
  const end = await newEnd(isSecure);
  ends.push(end);
  return end;
}

describe('an offer towards the carrier', () => {
  it('[3264 §5] is the first of a call whose INVITE had none: one key of rtpengine’s, plain RTP inside, both hear each other', async () => {
    const offered = (await pool.offerToCarrier(call, sdpOf(agent))).sdp;
    expect(offered).toMatch(/^m=audio \d+ RTP\/SAVP 0 101\r$/m);
    expect(offered.match(/^a=crypto:.*/gm)).toHaveLength(1);
    expect(offered).toMatch(/^a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:[A-Za-z0-9+/]{40}\r$/m);
    expect(offered).not.toMatch(/rtcp-mux|fingerprint|candidate/);
    await pool.delete(call.relayId);
    await negotiate(pool, 'agent', call, carrier, agent);
    expect(await hearEachOther(carrier, agent)).toBe(true);
  });

  it('[3264 §8] within a call that the carrier offered: the same ports and key, and the carrier goes on at a new address with a new key', async () => {
    const first = await negotiate(pool, 'carrier', call, carrier, agent);
    expect(await hearEachOther(carrier, agent)).toBe(true);
    const moved = await anEnd(true);
    const second = await negotiate(pool, 'agent', call, moved, agent);
    expect(second).toEqual(first);
    expect(await hearEachOther(moved, agent)).toBe(true);
  });

  it('[3264 §8] then the carrier’s own, after a first offer of ours: the same ports and key, whoever offers', async () => {
    const first = await negotiate(pool, 'agent', call, carrier, agent);
    expect(await hearEachOther(carrier, agent)).toBe(true);
    const moved = await anEnd(true);
    expect(await negotiate(pool, 'carrier', call, moved, agent)).toEqual(first);
    expect(await hearEachOther(moved, agent)).toBe(true);
    expect(await negotiate(pool, 'agent', call, moved, agent)).toEqual(first);
    expect(await hearEachOther(moved, agent)).toBe(true);
  });

  it('moves a call to another session, as after the loss of a relay: other ports, another key, and it goes on', async () => {
    const first = await negotiate(pool, 'carrier', call, carrier, agent);
    pool.leave(call.relayId);
    const second = await negotiate(pool, 'agent', call, carrier, agent);
    expect(second.outside.crypto?.inline).not.toBe(first.outside.crypto?.inline);
    expect(await hearEachOther(carrier, agent)).toBe(true);
  });

  it('is plain RTP where the call is not encrypted', async () => {
    const plain = await anEnd(false);
    const { outside } = await negotiate(pool, 'agent', { ...call, carrierSideSrtp: false }, plain, agent);
    expect(outside.crypto).toBeNull();
    expect(await hearEachOther(plain, agent)).toBe(true);
  });
});

describe('with SRTP on the inside leg', () => {
  it('passes the keys through in an offer towards the carrier too: each end has the other’s', async () => {
    const secured = await anEnd(true);
    const { inside, outside } = await negotiate(pool, 'agent', { ...call, agentSideSrtp: true }, carrier, secured);
    expect(outside.crypto?.inline).toBe(Buffer.from(secured.key!).toString('base64'));
    expect(inside.crypto?.inline).toBe(Buffer.from(carrier.key!).toString('base64'));
    expect(await hearEachOther(carrier, secured)).toBe(true);
  });

  it('ends SRTP in rtpengine where the carrier’s leg is plain', async () => {
    const [plain, secured] = [await anEnd(false), await anEnd(true)];
    const { inside, outside } = await negotiate(pool, 'agent', { ...call, agentSideSrtp: true, carrierSideSrtp: false }, plain, secured);
    expect([outside.crypto, inside.crypto?.inline === Buffer.from(secured.key!).toString('base64')]).toEqual([null, false]);
    expect(await hearEachOther(plain, secured)).toBe(true);
  });
});
