import { createSocket } from 'node:dgram';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readOffer, readRelaySdp } from '../../../src/gateway/sdp/sdp-read.js';
import { canonicalSdp, endpointSdp, sessionSdp } from '../../../src/gateway/sdp/sdp-write.js';
import { MediaUnavailableError } from '../../../src/gateway/ports/ports.js';
import type { RtpengineNode } from '../../../src/gateway/relay/node.js';
import type { RelayPool } from '../../../src/gateway/relay/pool.js';
import { until } from '../../support/carrier-call.js';
import { RunningRtpengine } from '../../support/rtpengine.js';
import { KEY, offerSdp, OTHER_KEY } from '../../support/sdp.js';

const LOCAL = { address: '127.0.0.1', rtpPort: 45_000, rtcpPort: 45_001 };

let rtpengine: RunningRtpengine;
let node: RtpengineNode;
let relay: RelayPool;
let serial = 0;

beforeAll(async () => {
  rtpengine = await RunningRtpengine.start(400);
  node = rtpengine.node();
  relay = rtpengine.pool();
});

afterAll(async () => {
  node.close();
  relay.close();
  await rtpengine.stop();
});

const newCall = (agentSideSrtp = false) => ({ relayId: `relay-${String((serial += 1))}`, agentSideSrtp, carrierSideSrtp: true });
const sessions = async () => (await node.command('list', { limit: 1_000 }))['calls'];

/** Offer and answer as the call machine does them. */
async function negotiate(sdp: string, agentSideSrtp = false) {
  const offer = readOffer(sdp, 'required');
  if (!offer.ok) throw new Error(offer.error);
  const call = newCall(agentSideSrtp);
  const inside = readRelaySdp((await relay.offer(call, canonicalSdp(offer.value))).sdp);
  const agentSideKey = agentSideSrtp ? { tag: offer.value.crypto?.tag ?? '', inline: OTHER_KEY, mki: null } : null;
  const answer = await relay.answer(call, endpointSdp(offer.value, LOCAL, agentSideKey));
  return { call, offer: offer.value, inside, outside: readRelaySdp(answer.sdp), answerSdp: answer.sdp };
}

describe('a real rtpengine', () => {
  it('[3264 §8.4] keeps its inside address while the carrier holds with c=0.0.0.0', async () => {
    const { call, inside, outside } = await negotiate(offerSdp({ address: '0.0.0.0' }));
    await relay.delete(call.relayId);
    expect([inside?.address, outside?.address]).toEqual(['127.0.0.1', '127.0.0.1']);
  });

  it('[4568 §5] takes the canonical offer: plain RTP inside, one new key of the offered tag outside, RTCP on RTP+1 of an even port', async () => {
    const { call, offer, inside, outside, answerSdp } = await negotiate(offerSdp({ crypto: [`7 AES_CM_128_HMAC_SHA1_80 inline:${KEY}`] }));
    expect(inside?.crypto).toBeNull();
    expect(outside?.crypto?.tag).toBe('7');
    expect(outside?.crypto?.inline).not.toBe(KEY);
    expect(answerSdp.match(/^a=crypto/gm)).toHaveLength(1);
    expect(answerSdp).not.toContain('rtcp-mux');
    expect([outside!.rtpPort % 2, outside!.rtcpPort - outside!.rtpPort]).toEqual([0, 1]);
    expect(sessionSdp(offer, outside!, { sessionId: '1', version: 1 })).toContain('m=audio');
    expect(await relay.delete(call.relayId)).toMatchObject({
      fromCarrier: { packets: 0, mos: null },
      fromAgent: { packets: 0, mos: null },
    });
    expect(await relay.delete(call.relayId)).toBeNull();
  });

  it('passes keys through when both legs are SRTP: the carrier gets the endpoint’s, and the endpoint the carrier’s', async () => {
    const { call, inside, outside } = await negotiate(offerSdp(), true);
    expect(inside?.crypto?.inline).toBe(KEY);
    expect(outside?.crypto?.inline).toBe(OTHER_KEY);
    await relay.delete(call.relayId);
  });

  it('frees what a killed gateway left, except the calls that are resumed', async () => {
    const kept = await negotiate(offerSdp());
    await Promise.all([negotiate(offerSdp()), negotiate(offerSdp()), negotiate(offerSdp())]);
    expect(await sessions()).toHaveLength(4);
    const next = rtpengine.pool();
    await next.reconcile(new Set([kept.call.relayId]));
    expect(await sessions()).toEqual([`test:${kept.call.relayId}`]);
    expect(next.adopt(kept.call.relayId, rtpengine.name)).toBe(true);
    expect(next.adopt('other', '127.0.0.1:1')).toBe(false);
    expect(await next.delete(kept.call.relayId)).not.toBeNull();
    expect(await sessions()).toEqual([]);
    next.close();
  });

  it('leaves the sessions of other gateways alone on an rtpengine that is not its own', async () => {
    const [ours, theirs] = [rtpengine.pool({ own: null }), rtpengine.pool({ own: null, instance: 'test:2' })];
    const call = newCall();
    await theirs.offer(call, offerSdp());
    await ours.offer(call, offerSdp());
    await ours.reconcile(new Set());
    expect(await sessions()).toEqual([`test%3A2:${call.relayId}`]);
    await theirs.reconcile(new Set());
    expect(await sessions()).toEqual([]);
    ours.close();
    theirs.close();
  });

  it('reports to the gateways that share it how many sessions there are in all, once a second', async () => {
    const own = { capacity: 10, instances: ['test', 'test:2'] };
    const [ours, theirs] = [rtpengine.pool({ own }), rtpengine.pool({ own, instance: 'test:2' })];
    const calls = [newCall(), newCall(), newCall()];
    for (const call of calls) await theirs.offer(call, offerSdp());
    await ours.offer(newCall(), offerSdp());
    await until(() => ours.headroom() === 10 - 4, 'not told of the other gateway’s calls');
    for (const { relayId } of calls) await theirs.delete(relayId);
    await until(() => ours.headroom() === 10 - 1, 'not told of their end');
    await ours.reconcile(new Set());
    ours.close();
    theirs.close();
  });

  it('frees a session at once, whatever delay rtpengine is set to', async () => {
    const slow = await RunningRtpengine.start(4, 30);
    const pool = slow.pool();
    for (let time = 0; time < 3; time += 1) {
      const call = newCall();
      await pool.offer(call, offerSdp());
      expect(pool.headroom()).toBe(0);
      await pool.delete(call.relayId);
      expect(pool.headroom()).toBe(1);
    }
    pool.close();
    await slow.stop();
  });

  it('holds 100 calls in 400 ports; the next is MEDIA_UNAVAILABLE, and fits when one has ended', async () => {
    const calls = [];
    let refusal: unknown;
    while (refusal === undefined) {
      try {
        calls.push(await negotiate(offerSdp()));
      } catch (error) {
        refusal = error;
      }
    }
    expect(refusal).toBeInstanceOf(MediaUnavailableError);
    expect(calls.length).toBeGreaterThanOrEqual(95);
    expect(calls.length).toBeLessThanOrEqual(100);
    expect(relay.headroom()).toBe(100 - calls.length);
    await relay.delete(calls[0]!.call.relayId);
    await negotiate(offerSdp());
    await relay.reconcile(new Set());
    expect(await sessions()).toEqual([]);
  });

  it('gives its own reason when it refuses a command', async () => {
    await expect(node.command('query', { 'call-id': 'nobody' })).rejects.toMatchObject({ kind: 'refused', message: 'Unknown call-id' });
  });

  it('answers 500 commands at once, at most 64 of them outstanding', async () => {
    const replies = await Promise.all(Array.from({ length: 500 }, () => node.command('ping')));
    expect(replies.every((reply) => reply['result'] === 'pong')).toBe(true);
    expect(node.outstanding).toBe(0);
  });
});

/** A UDP proxy in front of rtpengine that drops the first datagrams of one direction. */
async function lossyProxy(drop: { requests: number; replies: number }) {
  const proxy = createSocket('udp4');
  const upstream = createSocket('udp4');
  const requests: string[] = [];
  let client: { port: number; address: string } | undefined;
  const left = { ...drop };
  proxy.on('message', (data, from) => {
    client = from;
    requests.push(data.toString('latin1', 0, 36));
    if (left.requests > 0) left.requests -= 1;
    else upstream.send(data, rtpengine.port, '127.0.0.1');
  });
  upstream.on('message', (data) => {
    if (left.replies > 0) left.replies -= 1;
    else if (client !== undefined) proxy.send(data, client.port, client.address);
  });
  await new Promise<void>((resolve) => proxy.bind(0, '127.0.0.1', () => resolve()));
  const behind = rtpengine.node(2_000, proxy.address().port);
  return {
    node: behind,
    requests,
    close: () => {
      behind.close();
      proxy.close();
      upstream.close();
    },
  };
}

describe('a relay over a network that loses datagrams', () => {
  it.each([
    ['requests', { requests: 2, replies: 0 }],
    ['replies', { requests: 0, replies: 2 }],
  ])('sends a command again with the same cookie when %s are lost, and rtpengine carries it out once', async (_what, drop) => {
    const proxy = await lossyProxy(drop);
    const call = newCall();
    const offer = { 'call-id': call.relayId, 'from-tag': 'carrier', sdp: offerSdp() };
    expect(await proxy.node.command('offer', offer)).toHaveProperty('sdp');
    expect(proxy.requests.length).toBe(3);
    expect(new Set(proxy.requests).size).toBe(1);
    expect(await sessions()).toEqual([call.relayId]);
    await node.command('delete', { 'call-id': call.relayId });
    proxy.close();
  });

  it('gives up in time with a typed error, and ignores a late reply', async () => {
    const proxy = await lossyProxy({ requests: 0, replies: 1_000 });
    await expect(proxy.node.command('ping')).rejects.toMatchObject({ kind: 'timeout' });
    expect(proxy.node.outstanding).toBe(0);
    proxy.close();
    await expect(proxy.node.command('ping')).rejects.toMatchObject({ kind: 'closed' });
  });
});
