import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AgentCall } from '../../support/agent/agent-site.js';
import { CallEnd } from '../../support/media/call-end.js';
import { FROM, TO } from '../../support/outbound-site.js';
import { NUMBER, TransferSite } from '../../support/transfer-site.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

// Headers that pass between a carrier and an agent, as a number lets them.

let site: TransferSite<World>;
let world: World;

beforeEach(async () => {
  site = await TransferSite.startOn((settings) => World.start(settings));
  world = site.outbound.gateway;
  await site.outbound.attach();
  await site.outbound.allow('--callers', `${NUMBER},${FROM}`);
});

afterEach(async () => {
  await site.destroy();
});

async function update(phone_number: string, updates: object): Promise<void> {
  const { status, json } = await world.api('POST', '/sip/update', { phone_number, updates });
  expect(status, JSON.stringify(json)).toBe(200);
}

const INVITED = ['User-to-User: 00c8;encoding=hex', 'X-Ticket: 4711', 'Call-Info: <https://crm.example/1>;purpose=info', 'Subject: hello'];

async function told(call: AgentCall): Promise<unknown> {
  const start = (await call.bot.message('start')) as unknown as { start: { customParameters: { sip_headers: string } } };
  const { headers, user_to_user } = JSON.parse(start.start.customParameters.sip_headers) as Record<string, unknown>;
  return { headers, user_to_user };
}

describe('the headers of an INVITE', () => {
  it('reach the agent: User-to-User, X- headers and Call-Info', async () => {
    const call = await site.agents.talking({ number: NUMBER, headers: INVITED });
    const headers = { 'x-ticket': '4711', 'call-info': '<https://crm.example/1>;purpose=info' };
    expect(await told(call)).toEqual({ headers, user_to_user: '00c8;encoding=hex' });
    await call.hangUp();
    expect((await site.recordOf(call)).caller).toMatchObject({ headers, user_to_user: '00c8;encoding=hex' });
  });

  it('reach the agent as headers_to_agent lists them', async () => {
    await update(NUMBER, { type: 'inbound', options: { headers_to_agent: ['Subject'] } });
    const call = await site.agents.talking({ number: NUMBER, headers: INVITED });
    expect(await told(call)).toEqual({ headers: { subject: 'hello' }, user_to_user: null });
    await call.hangUp();
    expect((await site.recordOf(call)).caller.headers).toEqual({ subject: 'hello', 'x-ticket': '4711' });
  });
});

describe('headers that a bot sets', () => {
  it('[7433] are in the REFER, and behind its Refer-To for the target', async () => {
    const call = await site.talking();
    call.bot.send({ event: 'transfer', transfer: { to: TO, sip_headers: { 'User-to-User': '00c8;encoding=hex', 'X-Ticket': 'a & b' } } });
    const refer = await call.signalling.incoming('REFER');
    expect([refer.header('User-to-User'), refer.header('X-Ticket')]).toEqual(['00c8;encoding=hex', 'a & b']);
    expect(refer.header('Refer-To')).toMatch(/;user=phone\?User-to-User=00c8%3Bencoding%3Dhex&X-Ticket=a%20%26%20b>$/);
    respond(call.peer, refer, '603 Decline');
    // The carrier takes no REFER: they are in our INVITE.
    const leg = await site.outbound.trunk.call();
    expect([leg.invite.header('User-to-User'), leg.invite.header('X-Ticket')]).toEqual(['00c8;encoding=hex', 'a & b']);
    leg.respond('486 Busy Here');
    await call.hangUp();
  });

  it('are in the BYE', async () => {
    const call = await site.talking();
    call.bot.send({ event: 'hangup', hangup: { sip_headers: { 'X-Outcome': 'solved' } } });
    const bye = await call.signalling.incoming('BYE');
    respond(call.peer, bye, '200 OK');
    expect([bye.header('X-Outcome'), bye.header('Reason')]).toEqual(['solved', expect.stringContaining('AGENT_HANGUP')]);
    await call.close();
  });

  it.each([
    ['transfer', { to: TO, sip_headers: { Subject: 'x' } }, 'SIP_HEADER_NOT_ALLOWED'],
    ['hangup', { after: 'now', sip_headers: { Subject: 'x' } }, 'SIP_HEADER_NOT_ALLOWED'],
    ['transfer', { to: TO, sip_headers: { Via: 'x' } }, 'SIP_HEADER_NOT_ALLOWED'],
    ['hangup', { sip_headers: { 'X-Trunkline-Public-Only': 'x' } }, 'SIP_HEADER_NOT_ALLOWED'],
  ])('are refused to its %s %j with %s, and the call goes on', async (event, message, code) => {
    const call = await site.talking();
    call.bot.send({ event, [event]: message });
    expect(await call.bot.message('error')).toMatchObject({ error: { request: event, code } });
    await world.pass(1_000);
    expect(call.peer.received.some(({ startLine }) => /^(REFER|BYE) /.test(startLine))).toBe(false);
    await call.hangUp();
  });

  it('are not in our INVITE where the trunk has another list, and the trace says so', async () => {
    await update(NUMBER, { type: 'inbound', options: { refer: false } });
    await update(NUMBER, { type: 'outbound', sip_endpoint: site.outbound.trunk.endpoint, headers_from_agent: ['User-to-User'] });
    const call = await site.talking();
    call.bot.send({ event: 'transfer', transfer: { id: 't1', to: TO, sip_headers: { 'X-Ticket': '1' } } });
    expect(await call.bot.message('transfer', 1)).toMatchObject({ transfer: { state: 'failed', reason: 'DIAL_NOT_ALLOWED' } });
    await call.hangUp();
    const { call_id: callId } = await site.recordOf(call);
    const { json } = await world.api('GET', `/v1/calls/${callId}/trace`);
    expect(JSON.stringify(json)).toContain('The header X-Ticket is not in headers_from_agent');
  });
});

describe('headers of POST /v1/calls', () => {
  it('are in the INVITE', async () => {
    const { callId, call } = await site.outbound.placed({ sip_headers: { 'X-Ticket': '4711', 'User-to-User': '00c8' } });
    expect([call.invite.header('X-Ticket'), call.invite.header('User-to-User')]).toEqual(['4711', '00c8']);
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp());
    const bot = await site.bot.calls.at(0);
    await bot.message('start');
    bot.send({ event: 'hangup', hangup: { after: 'now', sip_headers: { 'X-Outcome': 'done' } } });
    const bye = await call.request('BYE');
    expect(bye.header('X-Outcome')).toBe('done');
    respond(call.peer, bye, '200 OK');
    await end.close();
    expect(await site.outbound.ended(callId)).toMatchObject({ reason: 'AGENT_HANGUP' });
  });

  it.each([
    [{ Subject: 'x' }, 'sip_headers.Subject'],
    [{ 'X-Trunkline-Trunk-Tls': 'e30=' }, 'sip_headers.X-Trunkline-Trunk-Tls'],
    [{ 'X-A': 'a\r\nVia: b' }, 'sip_headers.X-A'],
  ])('get 400 as %j', async (headers, path) => {
    const { status, json } = await site.outbound.place({ sip_headers: headers });
    expect([status, json]).toMatchObject([400, { errors: [{ error: 'VALIDATION', path }] }]);
  });

  it('are refused to a list at attach that names one of the stack', async () => {
    const updates = { type: 'inbound', options: { headers_from_agent: ['X-*', 'Via'] } };
    const { status, json } = await world.api('POST', '/sip/update', { phone_number: NUMBER, updates });
    expect([status, json]).toMatchObject([400, { errors: [{ path: 'updates.options.headers_from_agent[1]' }] }]);
  });
});
