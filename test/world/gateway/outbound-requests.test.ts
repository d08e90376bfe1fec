import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type BotCall, TestBot } from '../../support/agent/test-bot.js';
import { CallEnd } from '../../support/media/call-end.js';
import { FROM, OutboundSite, TO } from '../../support/outbound-site.js';
import type { TakenCall } from '../../support/outbound-trunk.js';
import type { WireMessage } from '../../support/sip-peer.js';
import { botHears } from '../../support/transfer-site.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

// Requests of ours in a call that we placed, which the trunk does not take at once.

let site: OutboundSite<World>;
let world: World;
let bot: TestBot;
let agent: BotCall;
let callId: string;
let call: TakenCall;
let end: CallEnd;

beforeEach(async () => {
  bot = await TestBot.start();
  site = await OutboundSite.startOn((settings) => World.start(settings, { relays: 2 }), false, {
    TRUNKLINE_AGENTS_URL: bot.url,
    TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true',
  });
  world = site.gateway;
  const directions = [{ type: 'outbound', sip_endpoint: site.trunk.endpoint, username: 'acme', password: 'p4ss' }];
  expect((await site.gateway.api('POST', '/sip/attach', { phone_number: FROM, directions, service: 'sip' })).status).toBe(200);
  await site.allow();
  ({ callId, call } = await site.placed());
  end = (await CallEnd.open()).connect(call.invite.body);
  await call.answer(end.sdp());
  agent = await bot.calls.at(0);
  await agent.message('start');
});

afterEach(async () => {
  await end.close();
  await site.destroy();
  await bot.stop();
});

/** A second of what nobody else says. */
const SAID = Buffer.alloc(8_000, 0x23);

const cseqOf = (message: WireMessage): number => Number.parseInt(message.header('CSeq') ?? '', 10);
const nonceOf = (message: WireMessage): string | undefined => /nonce="([^"]*)"/.exec(message.header('Proxy-Authorization') ?? '')?.[1];

function challenge(request: WireMessage, nonce: string): void {
  respond(call.peer, request, '407 Proxy Authentication Required', {
    extra: [`Proxy-Authenticate: Digest realm="carrier", qop="auth", algorithm=SHA-256, nonce="${nonce}"`],
  });
}

/** The rtpengine of the call dies: the re-INVITE that it gets. */
async function reinvited(): Promise<WireMessage> {
  world.rtpengines.find(({ sessions }) => sessions.size > 0)?.kill();
  return call.request('INVITE');
}

function nothingLeft(): void {
  expect(world.rtpengines.map(({ sessions }) => sessions.size)).toEqual([0, 0]);
}

/** The callee follows the re-INVITE to the other rtpengine: the agent and they hear each other. Then nothing is left. */
async function follows(reinvite: WireMessage): Promise<void> {
  end.connect(reinvite.body);
  respond(call.peer, reinvite, '200 OK', { body: end.sdp() });
  const ack = await call.request('ACK');
  expect([cseqOf(ack), nonceOf(ack)]).toEqual([cseqOf(reinvite), nonceOf(reinvite)]);
  await botHears({ bot: agent }, end, 7_000);
  agent.say(SAID);
  await end.heard(SAID.subarray(0, 1_600));
  expect((await call.dialog.ask('BYE')).status).toBe(200);
  expect(await site.ended(callId)).toMatchObject({ reason: 'CALLEE_HANGUP', sip_status: 200 });
  nothingLeft();
}

describe('a re-INVITE that the gateway sends', () => {
  it('[3261 §14.1] is sent again with the next CSeq when it crosses one of the trunk and gets 491', async () => {
    const reinvite = await reinvited();
    respond(call.peer, reinvite, '491 Request Pending');
    await call.request('ACK');
    const again = await call.request('INVITE');
    expect([again.body, cseqOf(again)]).toEqual([reinvite.body, cseqOf(reinvite) + 1]);
    await follows(again);
  });

  it('[3261 §13.2.2.4] [3261 §22.3] is sent again with credentials when it is challenged, and its ACK has them', async () => {
    const reinvite = await reinvited();
    challenge(reinvite, 'r1');
    await call.request('ACK');
    const again = await call.request('INVITE');
    expect([again.body, cseqOf(again), nonceOf(again)]).toEqual([reinvite.body, cseqOf(reinvite) + 1, 'r1']);
    await follows(again);
  });
});

describe('a REFER that the gateway sends', () => {
  const transfer = (id: string, to = TO): void => agent.send({ event: 'transfer', transfer: { id, to } });
  const told = async (count: number): Promise<unknown> => (await agent.message('transfer', count))['transfer'];
  const refers = (): number => call.peer.received.filter(({ startLine }) => startLine.startsWith('REFER ')).length;

  it('counts as a call: the do-not-call list and the limits apply, the agent gets 403, and the gateway sends nothing', async () => {
    const listed = '+4930123457';
    expect((await site.gateway.api('POST', '/v1/do-not-call', { phone_numbers: [listed] })).status).toBe(200);
    transfer('t1', listed);
    expect(await told(0)).toMatchObject({ id: 't1', state: 'failed', status: 403 });
    await site.allow('--max-calls-per-day', '0');
    transfer('t2');
    expect(await told(1)).toMatchObject({ id: 't2', state: 'failed', status: 403 });
    expect(refers()).toBe(0);
  });

  it('takes no slot since it ends a call; it costs nothing when it fails, and the cost of a call when it succeeds', async () => {
    const fragment = ['Event: refer', 'Content-Type: message/sipfrag;version=2.0', 'Subscription-State: terminated;reason=noresource'];
    const { dialog } = call;
    // Two hours for the call, two for the transfer.
    await site.allow('--max-concurrent-calls', '1', '--max-cost-per-day', '4.8');
    for (const [index, id] of ['t1', 't2'].entries()) {
      transfer(id);
      respond(call.peer, await call.request('REFER'), '202 Accepted');
      expect(await told(2 * index)).toMatchObject({ id, state: 'accepted' });
      if (id === 't2') break;
      expect((await dialog.ask('NOTIFY', { extra: fragment, body: 'SIP/2.0 486 Busy Here\r\n' })).status).toBe(200);
      expect(await told(1)).toMatchObject({ id, state: 'failed', status: 486 });
    }
    expect((await dialog.ask('NOTIFY', { extra: fragment, body: 'SIP/2.0 200 OK\r\n' })).status).toBe(200);
    respond(call.peer, await call.request('BYE'), '200 OK');
    await site.ended(callId);
    const next = await site.place();
    expect(await site.ended(String(next.json['call_id']))).toMatchObject({ reason: 'DIAL_NOT_ALLOWED' });
    expect(JSON.stringify((await site.gateway.api('GET', '/v1/calls')).json)).not.toContain('in_progress');
  });

  it('[3515 §2.4.2] [3261 §22.3] is sent again with credentials when it is challenged, and the call is transferred', async () => {
    agent.send({ event: 'transfer', transfer: { id: 't1', to: TO } });
    const refer = await call.request('REFER');
    challenge(refer, 'f1');
    const again = await call.request('REFER');
    expect([again.header('Refer-To'), cseqOf(again), nonceOf(again)]).toEqual([refer.header('Refer-To'), cseqOf(refer) + 1, 'f1']);
    respond(call.peer, again, '202 Accepted');
    expect(await agent.message('transfer')).toMatchObject({ transfer: { id: 't1', state: 'accepted', status: 202 } });
    const extra = ['Event: refer', 'Subscription-State: terminated;reason=noresource', 'Content-Type: message/sipfrag;version=2.0'];
    expect((await call.dialog.ask('NOTIFY', { extra, body: 'SIP/2.0 200 OK\r\n' })).status).toBe(200);
    const bye = await call.request('BYE');
    expect(bye.header('Reason')).toContain('TRANSFERRED');
    challenge(bye, 'f2');
    const last = await call.request('BYE');
    expect(nonceOf(last)).toBe('f2');
    respond(call.peer, last, '200 OK');
    expect(await site.ended(callId)).toMatchObject({ reason: 'TRANSFERRED', sip_status: 200 });
    nothingLeft();
  });
});
