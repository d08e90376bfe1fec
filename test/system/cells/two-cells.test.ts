import { describe, expect, it } from 'vitest';
import type { RunningGateway } from '../../support/gateway.js';
import { areWhole, cellOfAnswer, cellOfCall, CELLS, connectionOf, inCell } from '../../support/cells.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import type { NgProxy } from '../../support/ng-proxy.js';
import { freePorts } from '../../support/ports.js';
import { parseExposition } from '../../support/prometheus-text.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer, WireMessage } from '../../support/sip-peer.js';
import { UdpPeer } from '../../support/udp-peer.js';
import { addressed, type WirePeer } from '../../support/wire-peer.js';
import { withProxiedGateway } from '../../support/with-gateway.js';
import { respond } from '../../support/sip-message.js';

const NUMBER = '+15550100100';
const GATEWAYS = ['gateway', 'gateway-2'];
const [udpPort = 0] = await freePorts(1);

let gateway: RunningGateway;
let proxy: NgProxy;
/** The carrier's only connection, unless a test opens others. */
let peer: SipPeer;

withProxiedGateway((site) => ({ gateway, proxy, peer } = site), {
  TRUNKLINE_GATEWAY_WORKERS: String(CELLS),
  TRUNKLINE_SIP_UDP_PORT: String(udpPort),
  TRUNKLINE_SIP_RINGING_AFTER_MS: '50',
});

interface Answered {
  readonly call: HandMadeCall;
  readonly ok: WireMessage;
}

const callIn = (cell: number, over: WirePeer = peer): Promise<HandMadeCall> =>
  inCell(
    cell,
    () => new HandMadeCall(over, NUMBER),
    ({ callId }) => callId,
  );

async function answeredIn(cell: number, over: WirePeer = peer): Promise<Answered> {
  const call = await callIn(cell, over);
  return { call, ok: await call.answered(offerSdp()) };
}

/** Calls in progress, by gateway. */
async function inProgress(): Promise<number[]> {
  const { sum } = parseExposition(await (await fetch(`${gateway.ready.http}/metrics`)).text());
  return GATEWAYS.map((process) => sum('trunkline_calls_in_progress', { process }) ?? 0);
}

async function endsAt(cell: number, { call, ok }: Answered): Promise<void> {
  await call.hangUp(ok);
  expect(await gateway.record(call.callId)).toMatchObject({ reason: 'CALLER_HANGUP' });
  expect(cellOfAnswer(ok)).toBe(cell);
}

/** What the API ends gets a BYE from the gateway. */
async function stop({ call }: Answered): Promise<void> {
  const { calls } = (await gateway.api('GET', '/v1/calls?state=live')).json as {
    readonly calls: { call_id: string; sip_call_id: string }[];
  };
  const id = calls.find(({ sip_call_id: callId }) => callId === call.callId)?.call_id ?? '';
  expect((await gateway.api('POST', `/v1/calls/${id}/stop`)).status).toBe(200);
}

describe('two cells of one `trunkline up`', () => {
  it('share the calls of a carrier with one connection, each by its Call-ID', async () => {
    const all = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const call = new HandMadeCall(peer, NUMBER);
        return { call, ok: await call.answered(offerSdp()) };
      }),
    );
    const shares = [1, 2].map((cell) => all.filter(({ call }) => cellOfCall(call.callId) === cell).length);
    expect(Math.min(...shares)).toBeGreaterThan(0);
    await expect.poll(inProgress).toEqual(shares);
    for (const one of all) await endsAt(cellOfCall(one.call.callId), one);
    await expect.poll(inProgress).toEqual([0, 0]);
    expect(peer.closed).toBe(false);
  });

  it('answer the pings of a connection whose calls are in the other cell', async () => {
    const one = await answeredIn(1);
    const other = await answeredIn(2);
    peer.raw('\r\n\r\n');
    await peer.next('pong', ({ startLine }) => startLine === 'PONG');
    await endsAt(1, one);
    await endsAt(2, other);
  });

  describe.each([1, 2])('a call in cell %i', (cell) => {
    it.each([1, 2])('gets re-INVITE and BYE by a connection of cell %i, and sends its own there', async (owner) => {
      const answered = await answeredIn(cell);
      const { call, ok } = answered;
      // The ACK came before it, over the same connection: over another one the re-INVITE could overtake it, and would get 491.
      expect((await call.request('OPTIONS', ok)).status).toBe(200);
      const other = await connectionOf(gateway, owner);
      call.over(other);
      const again = await call.request('INVITE', ok, offerSdp());
      expect([again.status, again.header('To')]).toEqual([200, ok.header('To')]);
      call.ack(again);
      expect((await call.request('OPTIONS', ok)).status).toBe(200);
      await stop(answered);
      respond(other, await call.incoming('BYE'), '200 OK');
      expect(await gateway.record(call.callId)).toMatchObject({ reason: 'API_STOPPED', sip_status: 200 });

      const second = await answeredIn(cell, other);
      second.call.over(peer);
      await endsAt(cell, second);
      other.close();
    });

    it.each([1, 2])('that rings gets its CANCEL by a connection of cell %i', async (owner) => {
      proxy.holding = 'answer';
      const [first, other] = [await connectionOf(gateway, 3 - owner), await connectionOf(gateway, owner)];
      const call = await callIn(cell, first);
      call.invite(offerSdp());
      await first.next('180', ({ status }) => status === 180);
      call.cancel(other);
      expect((await other.next('200 to CANCEL', ({ status }) => status >= 200)).status).toBe(200);
      expect((await call.final()).status).toBe(487);
      proxy.release();
      expect(await gateway.record(call.callId)).toMatchObject({ reason: 'CALLER_CANCELLED', sip_status: 487 });
      for (const each of [first, other]) each.close();
    });

    it('over UDP gets requests and BYE from both sides', async () => {
      const udp = await UdpPeer.open(udpPort);
      const answered = await answeredIn(cell, udp);
      const again = await answered.call.request('INVITE', answered.ok, offerSdp());
      expect(again.status).toBe(200);
      answered.call.ack(again);
      await endsAt(cell, answered);
      const second = await answeredIn(cell, udp);
      await stop(second);
      respond(udp, await second.call.incoming('BYE'), '200 OK');
      expect(await gateway.record(second.call.callId)).toMatchObject({ reason: 'API_STOPPED' });
      udp.close();
    });

    it('is answered by the other gateway when its own is gone', async () => {
      const name = GATEWAYS[cell - 1] ?? '';
      process.kill(await gateway.pidOf(name), 'SIGSTOP');
      process.kill(await gateway.pidOf(name), 'SIGKILL');
      await gateway.logged(cell === 1 ? 'sip-server' : 'sip-server-2', 'sip_server.application.gone');
      const call = await callIn(cell);
      const ok = await call.answered(offerSdp());
      expect(cellOfAnswer(ok)).toBe(3 - cell);
      await areWhole(gateway);
      // Its tag says where it is, whatever its Call-ID.
      for (const owner of [1, 2]) {
        const other = await connectionOf(gateway, owner);
        call.over(other);
        expect((await call.request('OPTIONS', ok)).status).toBe(200);
        call.over(peer);
        other.close();
      }
      await call.hangUp(ok);
      await expect.poll(() => gateway.record(call.callId).catch(() => null)).toMatchObject({ reason: 'CALLER_HANGUP' });
    });
  });

  it('answer a request outside any call with 481, whichever cell gets it', async () => {
    for (const cell of [1, 2]) {
      const call = new HandMadeCall(peer, NUMBER);
      const to = `<sip:${NUMBER}@127.0.0.1>;tag=${cell === 1 ? 'nobody' : '2.nobody'}`;
      expect((await call.request('BYE', addressed(to))).status).toBe(481);
    }
  });
});
