import g711 from 'alawmulaw';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AgentCall } from '../../support/agent/agent-site.js';
import { CallEnd } from '../../support/media/call-end.js';
import { TO, type OutboundSite } from '../../support/outbound-site.js';
import { TakenCall } from '../../support/outbound-trunk.js';
import { botHears, FRAMES, hearEachOther, heardBy, NUMBER, PACKETS, refused, TransferSite } from '../../support/transfer-site.js';
import { isKept } from '../../support/trunk.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

// Transfers of calls whose carrier takes no REFER: a second call of ours through the real trunk, and both parties through rtpengine alone.

let transfers: TransferSite<World>;
let site: OutboundSite<World>;
let world: World;

beforeAll(async () => {
  transfers = await TransferSite.startOn((settings) => World.start(settings));
  site = transfers.outbound;
  world = site.gateway;
});

afterAll(() => transfers.destroy());

const dialled = (): ReturnType<TransferSite<World>['dialled']> => transfers.dialled();
const joined = (): ReturnType<TransferSite<World>['joined']> => transfers.joined();
const consulting = (): ReturnType<TransferSite<World>['consulting']> => transfers.consulting();
const recordOf = (call: AgentCall): ReturnType<TransferSite<World>['recordOf']> => transfers.recordOf(call);

describe('a transfer whose REFER is refused', () => {
  it('becomes a second call: both parties hear each other, the caller’s carrier gets nothing, and the agent leaves', async () => {
    const { call, leg, end } = await joined();
    expect(leg.invite.startLine).toContain(`INVITE sip:${TO}@`);
    expect(leg.invite.header('From')).toContain(`<sip:${NUMBER}@`);
    await call.bot.message('stop');
    expect(call.peer.received.some(({ startLine }) => /^(?:INVITE|UPDATE) /.test(startLine))).toBe(false);
    // The other party hangs up: so do we.
    expect((await leg.dialog.ask('BYE')).status).toBe(200);
    expect(await call.ended()).toContain('PEER_HANGUP');
    await end.close();
    const record = await recordOf(call);
    expect(record).toMatchObject({ reason: 'PEER_HANGUP', parent_call_id: null });
    expect(record.legs).toMatchObject([{ to: TO, reason: 'CALLEE_HANGUP' }]);
    const child = await site.ended(record.legs[0]?.call_id ?? '');
    expect(child).toMatchObject({ direction: 'outbound', parent_call_id: record.call_id, to: TO, from: NUMBER, reason: 'CALLEE_HANGUP' });
    expect(child.quality.relay?.from_carrier.packets).toBeGreaterThan(PACKETS - 5);
  });

  it('ends with the caller’s BYE, too', async () => {
    const { call, leg, end } = await joined();
    await call.hangUp();
    const bye = await leg.request('BYE');
    respond(leg.peer, bye, '200 OK');
    expect(bye.header('Reason')).toContain('PEER_HANGUP');
    await end.close();
    expect(await recordOf(call)).toMatchObject({ reason: 'CALLER_HANGUP', legs: [{ to: TO, reason: 'PEER_HANGUP' }] });
  });

  it('leaves the caller with the agent, which gets the reason, when the other party is busy', async () => {
    const { call, leg } = await dialled();
    leg.respond('486 Busy Here');
    await leg.request('ACK');
    expect(await call.bot.message('transfer', 1)).toMatchObject({ transfer: { id: 't1', state: 'failed', status: 486, reason: 'BUSY' } });
    const heard = call.bot.of('media').length;
    await call.end.peer.speak(FRAMES(5_000));
    await world.until(() => call.bot.of('media').length > heard);
    await call.hangUp();
    expect(await recordOf(call)).toMatchObject({ reason: 'CALLER_HANGUP', legs: [{ reason: 'BUSY', answered_at: null }] });
  });

  it('[3325 §8] is not placed through a trunk that would get P-Asserted-Identity without being trusted', async () => {
    const setHeader = async (header: string | null): Promise<void> => {
      const updates = { type: 'outbound', sip_endpoint: site.trunk.endpoint, caller_id_header: header };
      expect((await world.api('POST', '/sip/update', { phone_number: NUMBER, updates })).status).toBe(200);
    };
    await setHeader('P-Asserted-Identity');
    const before = site.trunk.invited.length;
    const call = await transfers.talking();
    await refused(call);
    expect(await call.bot.message('transfer', 1)).toMatchObject({ transfer: { id: 't1', state: 'failed', reason: 'DIAL_NOT_ALLOWED' } });
    expect(site.trunk.invited).toHaveLength(before);
    await call.hangUp();
    await setHeader(null);
  });

  it('lets the caller hear ringback, and is cancelled when the caller hangs up', async () => {
    const { call, leg } = await dialled();
    leg.respond('180 Ringing');
    await call.end.hearsAgent();
    await call.hangUp();
    const cancel = await leg.cancelled();
    expect(cancel.header('Reason')).toContain('PEER_HANGUP');
  });

  describe('a second call with early media', () => {
    const [EARLY = 0] = g711.mulaw.encode(new Int16Array([3_000]));
    const hears = ({ end }: AgentCall, byte: number): number =>
      end.peer.received.filter(({ packet }) => packet.payload.every((one) => one === byte)).length;
    const hearsEarly = async (call: AgentCall, from: CallEnd): Promise<void> => {
      const before = hears(call, EARLY);
      const spoken = async (): Promise<number> => {
        await from.peer.speak(FRAMES(3_000));
        return hears(call, EARLY) - before;
      };
      await world.until(async () => (await spoken()) > PACKETS - 5);
    };

    it('lets the caller hear it, and the agent the caller; then both parties hear each other', async () => {
      const { call, leg } = await dialled();
      const end = (await CallEnd.open()).connect(leg.invite.body);
      leg.respond('183 Session Progress', { body: end.sdp() });
      await hearsEarly(call, end);
      await botHears(call, call.end, 7_000);
      expect(end.peer.received).toEqual([]);
      await leg.answer(end.sdp());
      await hearEachOther(call.end, end);
      await call.bot.message('stop');
      await call.hangUp();
      respond(leg.peer, await leg.request('BYE'), '200 OK');
      await end.close();
    });

    it('[3261 §13.2.2.4] lets the caller hear the first of two early dialogs, until the other one answers', async () => {
      const { call, leg } = await dialled();
      const other = new TakenCall(leg.peer, leg.invite);
      const [first, second] = [(await CallEnd.open()).connect(leg.invite.body), (await CallEnd.open()).connect(leg.invite.body)];
      leg.respond('183 Session Progress', { body: first.sdp() });
      other.respond('183 Session Progress', { body: second.sdp() });
      await hearsEarly(call, first);
      await other.answer(second.sdp());
      await hearEachOther(call.end, second);
      await call.hangUp();
      respond(other.peer, await other.request('BYE'), '200 OK');
      await Promise.all([first.close(), second.close()]);
    });

    it('makes the callee hear the briefing first, and joins the calls afterwards', async () => {
      const call = await transfers.talking();
      call.bot.send({ event: 'transfer', transfer: { id: 't1', to: TO, briefing: 'Kim wants a room for two.' } });
      const leg = await site.trunk.call();
      const end = (await CallEnd.open()).connect(leg.invite.body);
      leg.respond('183 Session Progress', { body: end.sdp() });
      await hearsEarly(call, end);
      await leg.answer(end.sdp());
      await end.hearsAgent();
      await call.bot.message('stop');
      await hearEachOther(call.end, end);
      await call.hangUp();
      respond(leg.peer, await leg.request('BYE'), '200 OK');
      await end.close();
    });
  });

  it('fails as before when the organization may not place the call', async () => {
    const call = await transfers.talking();
    await refused(call, '+819012345678');
    expect(await call.bot.message('transfer')).toMatchObject({ transfer: { id: 't1', state: 'failed', status: 603 } });
    expect(site.trunk.invited).not.toContain('+819012345678');
    await call.hangUp();
  });

  it('ends when either call is stopped through the API', async () => {
    const first = await transfers.talking();
    await world.pass(1_000);
    const { call, leg, end } = await transfers.joined(first);
    const live = (await world.api('GET', '/v1/calls?state=live&limit=10')).json['calls'] as {
      call_id: string;
      parent_call_id: string | null;
      direction: string;
    }[];
    const [newest] = live;
    const parent = live.find(({ direction }) => direction === 'inbound');
    expect(live.map(({ direction, parent_call_id: id }) => [direction, id])).toEqual([
      ['outbound', parent?.call_id],
      ['inbound', null],
    ]);
    expect((await world.api('POST', `/v1/calls/${newest?.call_id ?? ''}/stop`, {})).status).toBe(200);
    const [bye] = await Promise.all([leg.request('BYE'), call.ended()]);
    respond(leg.peer, bye, '200 OK');
    await end.close();
  });

  it('with a briefing needs no REFER: the other party hears it before both are joined', async () => {
    const call = await transfers.talking();
    call.bot.send({ event: 'transfer', transfer: { id: 't1', to: TO, briefing: 'Kim wants a room for two.' } });
    const leg = await site.trunk.call();
    const end = (await CallEnd.open()).connect(leg.invite.body);
    await leg.answer(end.sdp());
    await end.hearsAgent();
    // The agent is still there.
    expect(call.bot.of('stop')).toEqual([]);
    await call.bot.message('stop');
    await hearEachOther(call.end, end);
    expect(call.peer.received.some(({ startLine }) => startLine.startsWith('REFER '))).toBe(false);
    await call.hangUp();
    respond(leg.peer, await leg.request('BYE'), '200 OK');
    await end.close();
  });

  it('gives the caller back when the other party hangs up in the briefing; without permission there is no briefing', async () => {
    const call = await transfers.talking();
    const ask = (to: string): void =>
      call.bot.send({ event: 'transfer', transfer: { id: 't1', to, briefing: 'Kim wants a room. '.repeat(20) } });
    ask('+819012345678');
    expect(await call.bot.message('error')).toMatchObject({ error: { request: 'transfer', code: 'BRIEFING_NOT_POSSIBLE' } });
    ask(TO);
    const leg = await site.trunk.call();
    const end = (await CallEnd.open()).connect(leg.invite.body);
    await leg.answer(end.sdp());
    await end.hearsAgent();
    expect((await leg.dialog.ask('BYE')).status).toBe(200);
    const told = { transfer: { id: 't1', state: 'failed', reason: 'CALLEE_HANGUP' } };
    expect(await call.bot.message('transfer', 1)).toMatchObject(told);
    expect(call.bot.of('stop')).toEqual([]);
    await call.hangUp();
    await end.close();
  });

  describe('a transfer with a consultation', () => {
    const AGENT = Buffer.alloc(8_000, 0x90);

    it('lets the agent talk to the callee while the caller hears music; then both are joined and the agent leaves', async () => {
      const { call, leg, end } = await consulting();
      await botHears(call, end, 7_000);
      call.bot.say(AGENT);
      await end.heard(AGENT.subarray(0, 1_600));
      // The caller is not heard, and hears something else.
      const before = heardBy(call, 5_000);
      const voiced = call.end.voiced;
      await call.end.peer.speak(FRAMES(5_000));
      await world.until(() => call.end.voiced - voiced > PACKETS);
      expect(heardBy(call, 5_000)).toBe(before);
      expect(call.end.peer.received.some(({ packet }) => packet.payload.every((byte) => byte === 0x90))).toBe(false);
      call.bot.send({ event: 'transfer', transfer: { id: 't2', step: 'complete' } });
      expect(await call.bot.message('transfer', 2)).toMatchObject({ transfer: { id: 't2', state: 'accepted' } });
      await call.bot.message('stop');
      await hearEachOther(call.end, end);
      expect((await leg.dialog.ask('BYE')).status).toBe(200);
      expect(await call.ended()).toContain('PEER_HANGUP');
      await end.close();
      const record = await recordOf(call);
      expect(record.legs).toMatchObject([{ to: TO, reason: 'CALLEE_HANGUP' }]);
      expect(record.legs[0]?.answered_at).not.toBeNull();
    });

    it('may become a call of three: the agent hears both, and both hear the agent', async () => {
      const { call, leg, end } = await consulting();
      call.bot.send({ event: 'transfer', transfer: { id: 't2', step: 'conference' } });
      await call.bot.message('transfer', 2);
      await botHears(call, end, 7_000);
      await botHears(call, call.end, 5_000);
      call.bot.say(AGENT);
      await Promise.all([end.heard(AGENT.subarray(0, 1_600)), call.end.heard(AGENT.subarray(0, 1_600))]);
      await hearEachOther(call.end, end);
      await call.hangUp();
      respond(leg.peer, await leg.request('BYE'), '200 OK');
      await end.close();
    });

    it.each(['cancel', 'hang up'])('gives the caller back to the agent on %s', async (how) => {
      const { call, leg, end } = await consulting();
      if (how === 'cancel') {
        call.bot.send({ event: 'transfer', transfer: { id: 't2', step: 'cancel' } });
        respond(leg.peer, await leg.request('BYE'), '200 OK');
        expect(await call.bot.message('transfer', 2)).toMatchObject({ transfer: { id: 't2', state: 'accepted' } });
      } else {
        expect((await leg.dialog.ask('BYE')).status).toBe(200);
        const told = { transfer: { id: 't1', state: 'failed', reason: 'CALLEE_HANGUP' } };
        expect(await call.bot.message('transfer', 2)).toMatchObject(told);
      }
      await botHears(call, call.end, 5_000);
      call.bot.say(AGENT);
      await call.end.heard(AGENT.subarray(0, 1_600));
      call.bot.send({ event: 'transfer', transfer: { id: 't3', step: 'complete' } });
      expect(await call.bot.message('error')).toMatchObject({ error: { request: 'transfer', code: 'TRANSFER_NOT_ANSWERED' } });
      await call.hangUp();
      await end.close();
    });

    it('ends with the caller, and with the gateway: the other party gets BYE', async () => {
      const first = await consulting();
      await first.call.hangUp();
      respond(first.leg.peer, await first.leg.request('BYE'), '200 OK');
      await first.end.close();
      const { call, leg, end } = await consulting();
      const bots = transfers.bot.calls.all.length;
      // With its dialog, not as it was dialled.
      await isKept(world, `${leg.callId};from-tag=`);
      world.killGateway();
      await world.startGateway();
      respond(call.peer, await call.signalling.incoming('OPTIONS'), '200 OK');
      respond(leg.peer, await leg.request('BYE'), '200 OK');
      // The agent is connected again.
      await transfers.bot.calls.at(bots);
      await call.hangUp();
      await end.close();
    });
  });

  it('continues when the gateway is killed: both parties hear each other, and each may hang up', async () => {
    const { call, leg, end } = await joined();
    world.killGateway();
    // rtpengine knows nothing of it.
    await hearEachOther(call.end, end);
    await world.startGateway();
    const ping = await call.signalling.incoming('OPTIONS');
    respond(call.peer, ping, '200 OK');
    respond(leg.peer, await leg.request('OPTIONS'), '200 OK');
    await hearEachOther(call.end, end);
    expect((await leg.dialog.ask('BYE')).status).toBe(200);
    expect(await call.ended()).toContain('PEER_HANGUP');
    await end.close();
    const record = await recordOf(call);
    expect(record).toMatchObject({ reason: 'PEER_HANGUP', resumed: 1, legs: [{ to: TO, reason: 'CALLEE_HANGUP' }] });
    expect(record.legs[0]?.answered_at).not.toBeNull();
    expect(await site.ended(record.legs[0]?.call_id ?? '')).toMatchObject({ reason: 'CALLEE_HANGUP', resumed: 1 });
  });
});
