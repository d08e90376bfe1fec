import { beforeAll, describe, expect, it } from 'vitest';
import { CallEnd } from '../../support/media/call-end.js';
import { FROM, OutboundSite } from '../../support/outbound-site.js';
import { TakenCall } from '../../support/outbound-trunk.js';
import { offerSdp } from '../../support/sdp.js';
import type { WireMessage } from '../../support/sip-peer.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

let site: OutboundSite<World>;

beforeAll(async () => {
  site = await OutboundSite.startOn((settings) => World.start(settings));
  return () => site.destroy();
});

const cseqOf = (message: WireMessage): number => Number.parseInt(message.header('CSeq') ?? '', 10);
const reliable = (rseq: number): string[] => ['Require: 100rel', `RSeq: ${String(rseq)}`];

/** A reliable response, and its PRACK, which gets 200. */
async function ring(call: TakenCall, status: string, rseq: number, parts: { body?: string; tag?: string } = {}): Promise<WireMessage> {
  call.respond(status, { ...parts, extra: reliable(rseq) });
  const prack = await call.request('PRACK');
  respond(call.peer, prack, '200 OK');
  return prack;
}

/** Both sides hear each other; the callee hangs up. */
async function talk(end: CallEnd, call: TakenCall, callId: string): Promise<void> {
  await end.hearsAgent();
  expect((await call.dialog.ask('BYE')).status).toBe(200);
  expect(await site.ended(callId)).toMatchObject({ reason: 'CALLEE_HANGUP', sip_status: 200 });
  await end.close();
}

describe('[3262 §4] a reliable provisional response', () => {
  it('gets a PRACK with the right RAck, and the trace has both', async () => {
    const { callId, call } = await site.placed();
    expect(call.invite.header('Supported')).toMatch(/\b100rel\b/);
    const end = (await CallEnd.open()).connect(call.invite.body);
    const first = await ring(call, '180 Ringing', 7);
    expect(first.header('RAck')).toBe(`7 ${call.invite.header('CSeq') ?? ''}`);
    expect([cseqOf(first), first.header('To')]).toEqual([cseqOf(call.invite) + 1, `${call.invite.header('To') ?? ''};tag=${call.tag}`]);
    const second = await ring(call, '183 Session Progress', 8, { body: end.sdp() });
    expect([second.header('RAck'), cseqOf(second)]).toEqual([`8 ${call.invite.header('CSeq') ?? ''}`, cseqOf(call.invite) + 2]);
    const ack = await call.answer('');
    expect(cseqOf(ack)).toBe(cseqOf(call.invite));
    await talk(end, call, callId);
    const { json } = await site.gateway.api('GET', `/v1/calls/${callId}/trace`);
    expect(JSON.stringify(json)).toMatch(/PRACK sip:.*RAck: 7 /);
  });

  it('gets a PRACK in each of its early dialogs, and the dialog that answers is the call', async () => {
    const { callId, call } = await site.placed();
    const end = (await CallEnd.open()).connect(call.invite.body);
    const tagOf = (message: WireMessage): string | undefined => message.header('To')?.split(';tag=')[1];
    expect(tagOf(await ring(call, '183 Session Progress', 20, { body: offerSdp({ payloads: '0 101', port: 9_998 }) }))).toBe(call.tag);
    expect(tagOf(await ring(call, '180 Ringing', 500, { tag: 'fork' }))).toBe('fork');
    expect(tagOf(await ring(call, '180 Ringing', 21))).toBe(call.tag);
    expect(tagOf(await ring(call, '180 Ringing', 501, { tag: 'fork' }))).toBe('fork');
    const ack = await call.answer(end.sdp());
    expect(tagOf(ack)).toBe(call.tag);
    await talk(end, call, callId);
  });

  it('[3261 §9.1] leaves the call open to a CANCEL', async () => {
    const { callId, call } = await site.placed();
    await ring(call, '180 Ringing', 1);
    await site.gateway.api('POST', `/v1/calls/${callId}/stop`, {});
    await call.cancelled();
    expect(await site.ended(callId)).toMatchObject({ reason: 'API_STOPPED', answered_at: null });
  });

  it('[3311 §5.2] may precede an UPDATE: with an offer it gets 491, without one 200', async () => {
    const { callId, call } = await site.placed();
    const end = (await CallEnd.open()).connect(call.invite.body);
    await ring(call, '183 Session Progress', 1, { body: end.sdp() });
    const { dialog } = call;
    const offered = await dialog.ask('UPDATE', { body: end.sdp() });
    expect(offered.status).toBe(491);
    const refreshed = await dialog.ask('UPDATE');
    expect([refreshed.status, refreshed.header('Contact')]).toEqual([200, call.invite.header('Contact')]);
    await call.answer('');
    await end.hearsAgent();
    expect((await dialog.ask('BYE')).status).toBe(200);
    await site.ended(callId);
    await end.close();
  });
});

describe('[4028 §7.3] an answer of 422', () => {
  it('makes the gateway send INVITE with the required interval, once', async () => {
    const { callId, call } = await site.placed();
    call.respond('422 Session Interval Too Small', { extra: ['Min-SE: 3600'] });
    await call.request('ACK');
    const again = new TakenCall(call.peer, await call.request('INVITE'));
    expect([again.invite.header('Session-Expires'), again.invite.header('Min-SE')]).toEqual(['3600', '3600']);
    expect([cseqOf(again.invite), again.invite.header('From')]).toEqual([cseqOf(call.invite) + 1, call.invite.header('From')]);
    again.respond('422 Session Interval Too Small', { extra: ['Min-SE: 7200'] });
    await again.request('ACK');
    expect(await site.ended(callId)).toMatchObject({ reason: 'TRUNK_REFUSED', sip_status: 422 });
  });
});

describe('[4028] the session timer of a call', () => {
  it.each(['INVITE', 'UPDATE'])('is negotiated again by an %s of the trunk; an interval that is too short gets 422', async (method) => {
    const { callId, call } = await site.placed();
    expect(call.invite.header('Supported')).toMatch(/\btimer\b/);
    const end = (await CallEnd.open()).connect(call.invite.body);
    call.respond('200 OK', { body: end.sdp(), extra: ['Require: timer', 'Session-Expires: 1800;refresher=uas'] });
    await call.request('ACK');
    await end.hearsAgent();
    const { dialog } = call;
    const ask = async (value: string): Promise<(number | string | undefined)[]> => {
      const extra = ['Supported: timer', `Session-Expires: ${value}`];
      const answer = await dialog.ask(method, { extra, body: method === 'INVITE' ? end.sdp() : '' });
      return [answer.status, answer.header('Session-Expires'), answer.header('Min-SE')];
    };
    expect(await ask('600;refresher=uas')).toEqual([200, '600;refresher=uas', undefined]);
    expect(await ask('600')).toEqual([200, '600;refresher=uac', undefined]);
    expect(await ask('89;refresher=uac')).toEqual([422, undefined, '90']);
    expect((await dialog.ask('BYE')).status).toBe(200);
    await site.ended(callId);
    await end.close();
  });
});

describe('[3261 §22] a challenge', () => {
  beforeAll(async () => {
    const updates = { type: 'outbound', sip_endpoint: site.trunk.endpoint, username: 'acme', password: 'secret' };
    await site.gateway.api('POST', '/sip/update', { phone_number: FROM, updates });
  });

  const challenge = (call: TakenCall, request: WireMessage, nonce: string): void =>
    respond(call.peer, request, '407 Proxy Authentication Required', {
      tag: call.tag,
      extra: [`Proxy-Authenticate: Digest realm="carrier", qop="auth", algorithm=SHA-256, nonce="${nonce}"`],
    });

  it('[4028 §7.4] to the refresh of a session gets an answer', async () => {
    const { callId, call } = await site.placed();
    const end = (await CallEnd.open()).connect(call.invite.body);
    call.respond('200 OK', { body: end.sdp(), extra: ['Allow: INVITE, ACK, BYE, UPDATE', 'Session-Expires: 5;refresher=uac'] });
    await call.request('ACK');
    const update = await call.request('UPDATE');
    expect([update.header('Session-Expires'), update.body]).toEqual(['5;refresher=uac', '']);
    challenge(call, update, 'u1');
    const again = await call.request('UPDATE');
    expect(again.header('Proxy-Authorization')).toMatch(/uri="sip:[^"]*", .*nonce="u1"|nonce="u1".*uri="sip:/);
    expect(cseqOf(again)).toBe(cseqOf(update) + 1);
    respond(call.peer, again, '200 OK', { extra: ['Session-Expires: 5;refresher=uac'] });
    // The next one, in time.
    respond(call.peer, await call.request('UPDATE'), '200 OK');
    await talk(end, call, callId);
  });

  it('[4028 §7.4] to the re-INVITE that refreshes a session without UPDATE gets an answer', async () => {
    const { callId, call } = await site.placed();
    const end = (await CallEnd.open()).connect(call.invite.body);
    const timer = 'Session-Expires: 5;refresher=uac';
    call.respond('200 OK', { body: end.sdp(), extra: ['Allow: INVITE, ACK, BYE', timer] });
    await call.request('ACK');
    const refresh = await call.request('INVITE');
    expect([refresh.header('Session-Expires'), refresh.body]).toEqual(['5;refresher=uac', call.invite.body]);
    challenge(call, refresh, 'r1');
    await call.request('ACK');
    const again = await call.request('INVITE');
    expect(again.header('Proxy-Authorization')).toMatch(/nonce="r1"/);
    expect([again.header('Session-Expires'), again.body]).toEqual(['5;refresher=uac', call.invite.body]);
    respond(call.peer, again, '200 OK', { body: end.sdp(), extra: [timer] });
    expect((await call.request('ACK')).header('Proxy-Authorization')).toBe(again.header('Proxy-Authorization'));
    await talk(end, call, callId);
  });

  it('to a PRACK gets an answer, and an INVITE that is challenged afterwards has a higher CSeq', async () => {
    const { callId, call } = await site.placed();
    call.respond('180 Ringing', { extra: reliable(1) });
    const prack = await call.request('PRACK');
    challenge(call, prack, 'p1');
    const again = await call.request('PRACK');
    expect([again.header('RAck'), cseqOf(again)]).toEqual([prack.header('RAck'), cseqOf(prack) + 1]);
    expect(again.header('Proxy-Authorization')).toMatch(/nonce="p1"/);
    respond(call.peer, again, '200 OK');
    challenge(call, call.invite, 'i1');
    await call.request('ACK');
    const second = new TakenCall(call.peer, await call.request('INVITE'));
    expect(cseqOf(second.invite)).toBeGreaterThan(cseqOf(again));
    expect(second.invite.header('Proxy-Authorization')).toMatch(/nonce="i1"/);
    second.respond('486 Busy Here');
    await second.request('ACK');
    expect(await site.ended(callId)).toMatchObject({ reason: 'BUSY', sip_status: 486 });
  });
});
