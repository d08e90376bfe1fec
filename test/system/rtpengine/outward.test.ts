import { beforeEach, describe, expect, it } from 'vitest';
import type { RelayCall } from '../../../src/gateway/ports/ports.js';
import type { RelayPool } from '../../../src/gateway/relay/pool.js';
import { hearEachOther, negotiate, sdpOf, type CallEnd } from '../../support/relayed-call.js';
import { withRelay } from '../../support/relay-site.js';

// Who offers, carrier or gateway, in every order, with packets through the real rtpengine.

const relay = withRelay();
let pool: RelayPool;
let agent: CallEnd;
let carrier: CallEnd;
let call: RelayCall;

beforeEach(async () => {
  ({ pool } = relay);
  call = { relayId: relay.newRelayId(), agentSideSrtp: false, carrierSideSrtp: true };
  [agent, carrier] = [await relay.newEnd(false), await relay.newEnd(true)];
});

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
    const moved = await relay.newEnd(true);
    const second = await negotiate(pool, 'agent', call, moved, agent);
    expect(second).toEqual(first);
    expect(await hearEachOther(moved, agent)).toBe(true);
  });

  it('[3264 §8] then the carrier’s own, after a first offer of ours: the same ports and key, whoever offers', async () => {
    const first = await negotiate(pool, 'agent', call, carrier, agent);
    expect(await hearEachOther(carrier, agent)).toBe(true);
    const moved = await relay.newEnd(true);
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
    const plain = await relay.newEnd(false);
    const { outside } = await negotiate(pool, 'agent', { ...call, carrierSideSrtp: false }, plain, agent);
    expect(outside.crypto).toBeNull();
    expect(await hearEachOther(plain, agent)).toBe(true);
  });
});

describe('with SRTP on the inside leg', () => {
  it('passes the keys through in an offer towards the carrier too: each end has the other’s', async () => {
    const secured = await relay.newEnd(true);
    const { inside, outside } = await negotiate(pool, 'agent', { ...call, agentSideSrtp: true }, carrier, secured);
    expect(outside.crypto?.inline).toBe(Buffer.from(secured.key!).toString('base64'));
    expect(inside.crypto?.inline).toBe(Buffer.from(carrier.key!).toString('base64'));
    expect(await hearEachOther(carrier, secured)).toBe(true);
  });

  it('ends SRTP in rtpengine where the carrier’s leg is plain', async () => {
    const [plain, secured] = [await relay.newEnd(false), await relay.newEnd(true)];
    const { inside, outside } = await negotiate(pool, 'agent', { ...call, agentSideSrtp: true, carrierSideSrtp: false }, plain, secured);
    expect([outside.crypto, inside.crypto?.inline === Buffer.from(secured.key!).toString('base64')]).toEqual([null, false]);
    expect(await hearEachOther(plain, secured)).toBe(true);
  });
});
