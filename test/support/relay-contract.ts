import { beforeEach, describe, expect, it } from 'vitest';
import type { RelayCall } from '../../src/gateway/ports/ports.js';
import type { RelaySide } from '../../src/gateway/sdp/sdp-read.js';
import type { RelayPool } from '../../src/gateway/relay/pool.js';
import type { CallEnd } from './media/call-end.js';
import { hearEachOther, negotiate, saysTo, sideOf, sideSdp, type RelayedSides } from './relayed-call.js';
import type { RelaySite } from './relay-site.js';

// What the gateway relies on in rtpengine, with packets through it. The real one and the one that the world plays keep it.

/** Replies to commands, and the figures of a call. */
export function describeRelayCommands(relay: RelaySite): void {
  describe('rtpengine, by its commands,', () => {
    it('counts what each side sent', async () => {
      const { pool } = relay;
      const call = { relayId: relay.newRelayId(), agentSideSrtp: false, carrierSideSrtp: true };
      const [carrier, agent] = [await relay.newEnd(true), await relay.newEnd(false)];
      await negotiate(pool, 'carrier', call, carrier, agent);
      expect(await hearEachOther(carrier, agent)).toBe(true);
      expect(await saysTo(agent, carrier)).toBe(true);
      expect(await pool.delete(call.relayId)).toMatchObject({
        fromCarrier: { packets: 10, bytes: 1_720, errors: 0 },
        fromAgent: { packets: 20, bytes: 3_440, errors: 0 },
      });
      expect(await pool.delete(call.relayId)).toBeNull();
    });

    it('counts as errors what was not encrypted with the key of the carrier, and passes none of it on', async () => {
      const { pool } = relay;
      const call = { relayId: relay.newRelayId(), agentSideSrtp: false, carrierSideSrtp: true };
      const [carrier, stranger, agent] = [await relay.newEnd(true), await relay.newEnd(true), await relay.newEnd(false)];
      const { outside } = await negotiate(pool, 'carrier', call, carrier, agent);
      const theirs = Buffer.from(outside.crypto!.inline, 'base64');
      carrier.peer.secure({ receive: stranger.key!, send: theirs });
      await carrier.peer.speak(new Int16Array(1_600));
      carrier.peer.secure({ receive: carrier.key!, send: theirs });
      expect(await saysTo(carrier, agent)).toBe(true);
      expect(await pool.delete(call.relayId)).toMatchObject({ fromCarrier: { packets: 10, errors: 10 } });
    });

    it('counts as errors what comes before the key of the carrier, as early media does, and tells so at once', async () => {
      const { pool } = relay;
      const call = { relayId: relay.newRelayId(), agentSideSrtp: false, carrierSideSrtp: true };
      const [carrier, agent] = [await relay.newEnd(true), await relay.newEnd(false)];
      carrier.connect((await pool.offerToCarrier(call, agent.sdp())).sdp);
      await carrier.peer.speak(new Int16Array(1_600));
      await expect.poll(() => pool.figures(call.relayId)).toMatchObject({ fromCarrier: { packets: 0, errors: 10 } });
      agent.connect((await pool.answerFromCarrier(call, carrier.sdp())).sdp);
      expect(await saysTo(carrier, agent)).toBe(true);
      expect(await pool.delete(call.relayId)).toMatchObject({ fromCarrier: { packets: 10, errors: 10 } });
    });

    it.each([1, 4, 128])(
      '[3711 §3.1] takes packets whose key has an MKI of %i bytes, and none without it; those to the carrier have none',
      async (mkiBytes) => {
        const { pool } = relay;
        const call = { relayId: relay.newRelayId(), agentSideSrtp: false, carrierSideSrtp: true };
        const mki = Buffer.alloc(mkiBytes).fill(1, mkiBytes - 1);
        const [carrier, agent] = [await relay.newEnd(true, { mki }), await relay.newEnd(false)];
        const { outside } = await negotiate(pool, 'carrier', call, carrier, agent);
        const theirs = Buffer.from(outside.crypto!.inline, 'base64');
        carrier.peer.secure({ receive: carrier.key!, send: theirs });
        await carrier.peer.speak(new Int16Array(1_600));
        carrier.peer.secure({ receive: carrier.key!, send: theirs }, mki);
        expect(await hearEachOther(carrier, agent)).toBe(true);
        expect(await pool.delete(call.relayId)).toMatchObject({ fromCarrier: { packets: 10, errors: 10 } });
      },
    );

    it('names the reason of a refusal', async () => {
      const node = relay.node();
      await expect(node.command('query', { 'call-id': 'nobody' })).rejects.toMatchObject({ kind: 'refused', message: 'Unknown call-id' });
      node.close();
    });

    it('lists the sessions, of which a gateway frees those that it does not have', async () => {
      const node = relay.node();
      const [kept, left] = [relay.newRelayId(), relay.newRelayId()];
      for (const relayId of [kept, left])
        await relay.pool.offer({ relayId, agentSideSrtp: false, carrierSideSrtp: true }, (await relay.newEnd(true)).sdp());
      await relay.pool.reconcile(new Set([kept]));
      expect((await node.command('list', { limit: 1_000 }))['calls']).toEqual([`test:${kept}`]);
      node.close();
    });
  });
}

/** Who offers, carrier or gateway, in every order. */
export function describeOffers(relay: RelaySite): void {
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
    it('[3264 §5] may be the first of a call whose INVITE had none: one key of rtpengine’s, plain RTP inside, both hear each other', async () => {
      const offered = (await pool.offerToCarrier(call, agent.sdp())).sdp;
      expect(offered).toMatch(/^m=audio \d+ RTP\/SAVP 0 101\r$/m);
      expect(offered.match(/^a=crypto:.*/gm)).toHaveLength(1);
      expect(offered).toMatch(/^a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:[A-Za-z0-9+/]{40}\r$/m);
      expect(offered).not.toMatch(/rtcp-mux|fingerprint|candidate/);
      await pool.delete(call.relayId);
      await negotiate(pool, 'agent', call, carrier, agent);
      expect(await hearEachOther(carrier, agent)).toBe(true);
    });

    it('[3264 §8] within a call that the carrier offered keeps ports and key, and the carrier continues at a new address with a new key', async () => {
      const first = await negotiate(pool, 'carrier', call, carrier, agent);
      expect(await hearEachOther(carrier, agent)).toBe(true);
      const moved = await relay.newEnd(true);
      const second = await negotiate(pool, 'agent', call, moved, agent);
      expect(second).toEqual(first);
      expect(await hearEachOther(moved, agent)).toBe(true);
    });

    it('[3264 §8] keeps ports and key when the carrier’s own follows a first offer of ours', async () => {
      const first = await negotiate(pool, 'agent', call, carrier, agent);
      expect(await hearEachOther(carrier, agent)).toBe(true);
      const moved = await relay.newEnd(true);
      expect(await negotiate(pool, 'carrier', call, moved, agent)).toEqual(first);
      expect(await hearEachOther(moved, agent)).toBe(true);
      expect(await negotiate(pool, 'agent', call, moved, agent)).toEqual(first);
      expect(await hearEachOther(moved, agent)).toBe(true);
    });

    it('moves a call to another session, as after the loss of a relay, with other ports and another key', async () => {
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

  describe('an rtpengine with SRTP on the inside leg', () => {
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
}

/** Two calls whose agent sides send to each other: what a transfer by a second call of ours asks for. */
export function describeJoinedCalls(relay: RelaySite): void {
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

  /** The second call is dialled and answered; its agent side is the first one's. */
  async function dial(): Promise<RelaySide> {
    const outside = sideOf((await pool.offerToCarrier(second, sideSdp(sides.inside))).sdp);
    const inside = sideOf((await pool.answerFromCarrier(second, callee.sdp())).sdp);
    callee.connect(sideSdp(outside));
    return inside;
  }

  /** The first call's agent side from now on; its carrier hears of nothing. */
  async function join(side: RelaySide): Promise<RelayedSides> {
    const outside = sideOf((await pool.offerToCarrier(first, sideSdp(side))).sdp);
    const inside = sideOf((await pool.answerFromCarrier(first, caller.sdp())).sdp);
    return { inside, outside };
  }

  describe('a call that is joined with another one', () => {
    it('keeps its address, ports and key; both carriers hear each other, and the agent hears neither', async () => {
      expect(await join(await dial())).toEqual(sides);
      const before = agent.peer.received.length;
      expect(await hearEachOther(caller, callee)).toBe(true);
      expect(agent.peer.received.length).toBe(before);
    });

    it('keeps them when rtpengine has long learnt the agent’s address', async () => {
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

    it('follows its carrier to another address, and returns to the endpoint at another port', async () => {
      const inside = await dial();
      await join(inside);
      expect(await hearEachOther(caller, callee)).toBe(true);
      const moved = await relay.newEnd(true);
      const offered = sideOf((await pool.offer(first, moved.sdp())).sdp);
      const answered = sideOf((await pool.answer(first, sideSdp(inside))).sdp);
      expect({ inside: offered, outside: answered }).toEqual(sides);
      moved.connect(sideSdp(answered));
      expect(await hearEachOther(moved, callee)).toBe(true);
      const other = await relay.newEnd(false);
      expect(await negotiate(pool, 'agent', first, moved, other)).toEqual(sides);
      expect(await hearEachOther(moved, other)).toBe(true);
    });

    it('continues alone when the other one is deleted', async () => {
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
      const inside = sideOf((await pool.answerFromCarrier(two!, other.sdp())).sdp);
      other.connect(sideSdp(outside));
      const offered = sideOf((await pool.offerToCarrier(one!, sideSdp(inside))).sdp);
      expect(offered).toMatchObject({ address: before.outside.address, rtpPort: before.outside.rtpPort });
      expect(offered.crypto?.inline).not.toBe(before.outside.crypto?.inline);
      sideOf((await pool.answerFromCarrier(one!, end.sdp())).sdp);
      end.connect(sideSdp(offered));
      expect(await hearEachOther(end, other)).toBe(true);
    });
  });
}
