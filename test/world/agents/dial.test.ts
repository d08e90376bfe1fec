import { twilioTokenOf } from '../../support/twilio-token.js';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import twilio from 'twilio';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import { TestBot } from '../../support/agent/test-bot.js';
import { VoiceWebhook } from '../../support/agent/voice-webhook.js';
import { CallEnd } from '../../support/media/call-end.js';
import { muLawNoise, muLawWav } from '../../support/media/mu-law.js';
import { OutboundSite, TO } from '../../support/outbound-site.js';
import type { TakenCall } from '../../support/outbound-trunk.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

// <Dial> by a call of ours, as Twilio has it, on a number whose carrier is known to take no REFER.

const { VoiceResponse } = twilio.twiml;
const NUMBER = '+15550100778';
let bot: TestBot;
let site: OutboundSite<World>;
let agents: AgentSite<World>;
let webhook: VoiceWebhook;
let token: string;

beforeAll(async () => {
  bot = await TestBot.start();
  site = await OutboundSite.startOn((all) => World.start(all), false, {
    TRUNKLINE_WEBHOOKS_ALLOW_PRIVATE: 'true',
    TRUNKLINE_CALLS_TRANSFER_HOSTS: '[127.0.0.1]',
  });
  agents = new AgentSite(site.gateway, bot);
  token = await twilioTokenOf(site.gateway, site.gateway.ready.org_id);
  webhook = await VoiceWebhook.start(token);
  const directions = ['inbound', { type: 'outbound', sip_endpoint: site.trunk.endpoint }];
  const options = { voice_url: `${webhook.url}/voice`, refer: false };
  const answer = await site.gateway.api('POST', '/sip/attach', { phone_number: NUMBER, directions, service: 'sip', options });
  expect(answer.status, JSON.stringify(answer.json)).toBe(200);
  await site.attach();
  await site.allow('--callers', NUMBER);
});

afterAll(async () => {
  await site.destroy();
  webhook.stop();
  await bot.stop();
});

beforeEach(() => {
  page('/dialled', (response) => {
    response.play('/after.wav');
    response.hangup();
  });
  webhook.pages.set('/after.wav', muLawWav(AFTER));
});

const AFTER = muLawNoise(1, 7);

function page(path: string, write: (response: InstanceType<typeof VoiceResponse>) => unknown): void {
  const response = new VoiceResponse();
  write(response);
  webhook.pages.set(path, response.toString());
}

async function dialled(attributes: object): Promise<{ readonly call: AgentCall; readonly leg: TakenCall }> {
  page('/voice', (response) => response.dial({ action: '/dialled', ...attributes }, TO));
  const call = await agents.invite({ number: NUMBER });
  await call.answered();
  call.ack();
  return { call, leg: await site.trunk.call() };
}

const parameters = async (): Promise<Readonly<Record<string, string>>> => (await webhook.at('/dialled')).parameters;

describe('<Dial> that the gateway carries out with a call of its own', () => {
  it('joins both calls; when the other party hangs up, the document continues and the caller hears it', async () => {
    const { call, leg } = await dialled({});
    expect(call.peer.received.some(({ startLine }) => startLine.startsWith('REFER '))).toBe(false);
    const end = (await CallEnd.open()).connect(leg.invite.body);
    await leg.answer(end.sdp());
    const speech = new Int16Array(25 * 160).fill(5_000);
    await call.end.peer.speak(speech);
    await end.peer.until(() => end.voiced > 20);
    expect((await leg.dialog.ask('BYE')).status).toBe(200);
    const told = await parameters();
    expect(told).toMatchObject({ DialCallStatus: 'completed', DialCallSid: expect.stringMatching(/^CA[\da-f]{32}$/) as string });
    expect(Number(told['DialCallDuration'])).toBeLessThan(10);
    await call.end.heard(AFTER);
    expect(await call.ended()).toContain('AGENT_HANGUP');
    await end.close();
    const record = await site.gateway.record(call.signalling.callId);
    expect(record).toMatchObject({ reason: 'AGENT_HANGUP', legs: [{ to: TO, reason: 'CALLEE_HANGUP' }] });
  });

  it.each([
    ['486 Busy Here', 'busy'],
    ['480 Temporarily Unavailable', 'no-answer'],
    ['404 Not Found', 'failed'],
  ])('reports an answer of %s as %s', async (status, said) => {
    webhook.requests.all.splice(0);
    const { call, leg } = await dialled({});
    leg.respond(status);
    await leg.request('ACK');
    expect(await parameters()).toMatchObject({ DialCallStatus: said, DialCallSid: expect.stringMatching(/^CA/) as string });
    expect(await call.ended()).toContain('AGENT_HANGUP');
  });

  it('gives up after its timeout, and ends a joined call at its timeLimit', async () => {
    webhook.requests.all.splice(0);
    const first = await dialled({ timeout: 5 });
    first.leg.respond('180 Ringing');
    const cancel = await first.leg.cancelled();
    expect(cancel.header('Reason')).toContain('NO_ANSWER');
    expect(await parameters()).toMatchObject({ DialCallStatus: 'no-answer' });
    expect(await first.call.ended()).toContain('AGENT_HANGUP');
    webhook.requests.all.splice(0);
    const { call, leg } = await dialled({ timeLimit: 1 });
    const end = (await CallEnd.open()).connect(leg.invite.body);
    await leg.answer(end.sdp());
    const bye = await leg.request('BYE');
    expect(bye.header('Reason')).toContain('MAX_DURATION');
    respond(leg.peer, bye, '200 OK');
    expect(await parameters()).toMatchObject({ DialCallStatus: 'completed' });
    expect(await call.ended()).toContain('AGENT_HANGUP');
    await end.close();
  });

  it.each([
    ['?X-Ticket=a%20b&User-to-User=00c8%3Bencoding=hex&x-plus=1+2', ['a b', '00c8;encoding=hex', '1+2']],
    ['', [undefined, undefined, undefined]],
  ])('sends the headers behind the URI of <Sip>, %j, as Twilio does', async (headers, sent) => {
    page('/voice', (response) => response.dial({ action: '/dialled' }).sip(`sip:${TO}@127.0.0.1${headers}`));
    const options = { voice_url: `${webhook.url}/voice`, refer: true };
    await site.gateway.api('POST', '/sip/update', { phone_number: NUMBER, updates: { type: 'inbound', options } });
    const call = await agents.invite({ number: NUMBER });
    await call.answered();
    call.ack();
    const refer = await call.signalling.incoming('REFER');
    expect(['X-Ticket', 'User-to-User', 'X-Plus'].map((name) => refer.header(name))).toEqual(sent);
    respond(call.peer, refer, '603 Decline');
    expect(await call.ended()).toContain('AGENT_HANGUP');
    await site.gateway.api('POST', '/sip/update', {
      phone_number: NUMBER,
      updates: { type: 'inbound', options: { ...options, refer: false } },
    });
  });

  it('calls from the callerId only when the operator has verified it', async () => {
    webhook.requests.all.splice(0);
    page('/voice', (response) => response.dial({ action: '/dialled', callerId: '+15550100555' }, TO));
    const call = await agents.invite({ number: NUMBER });
    await call.answered();
    call.ack();
    expect(await parameters()).toMatchObject({ DialCallStatus: 'failed' });
    expect(await call.ended()).toContain('AGENT_HANGUP');
    await site.allow('--callers', `${NUMBER},+15550100555`);
    const { call: other, leg } = await dialled({ callerId: '+15550100555' });
    expect(leg.invite.header('From')).toContain('<sip:+15550100555@');
    await other.hangUp();
    leg.respond('100 Trying');
    await leg.cancelled();
  });
});
