import { twilioTokenOf } from '../../support/twilio-token.js';
import twilio from 'twilio';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { VoiceWebhook } from '../../support/agent/voice-webhook.js';
import { voiceLikeNoise } from '../../support/media/audio.js';
import { CallEnd } from '../../support/media/call-end.js';
import { muLawNoise, muLawWav } from '../../support/media/mu-law.js';
import { FROM, OutboundSite, TO } from '../../support/outbound-site.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

// Calls that an application places with Twilio's own library, unmodified, through a carrier of the test's.

const { VoiceResponse } = twilio.twiml;
const BEEP = Int16Array.from({ length: 4_000 }, (_, n) => Math.round(8_000 * Math.sin((2 * Math.PI * 1_000 * n) / 8_000)));
const EVENTS = ['initiated', 'ringing', 'answered', 'completed'];
let site: OutboundSite<World>;
let webhook: VoiceWebhook;
let token: string;
let accountSid: string;

beforeAll(async () => {
  site = await OutboundSite.startOn((all) => World.start(all), true, { TRUNKLINE_WEBHOOKS_ALLOW_PRIVATE: 'true' });
  token = await twilioTokenOf(site.gateway, site.gateway.ready.org_id);
  accountSid = `AC${site.gateway.ready.org_id.replaceAll('-', '')}`;
});
afterAll(() => site.destroy());

beforeEach(async () => {
  webhook = await VoiceWebhook.start(token);
  return () => webhook.stop();
});

function client() {
  const own = twilio(accountSid, token);
  own.api.baseUrl = site.gateway.ready.http;
  return own;
}

const callIdOf = (sid: string): string => sid.slice(2).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');

/** The status callbacks until the last one, as they were counted. */
async function statuses(): Promise<Readonly<Record<string, string>>[]> {
  const seen = await webhook.requests.until((all) => {
    const found = all.filter(({ path }) => path === '/status');
    const last = found.find(({ parameters }) => !['initiated', 'ringing', 'in-progress'].includes(parameters['CallStatus'] ?? ''));
    return last !== undefined && found.length > Number(last.parameters['SequenceNumber']) ? found : undefined;
  });
  expect(seen.every(({ isSigned }) => isSigned)).toBe(true);
  return seen.map(({ parameters }) => parameters).sort((a, b) => Number(a['SequenceNumber']) - Number(b['SequenceNumber']));
}

describe('a call that is placed through Twilio’s API', () => {
  it('plays its TwiML once answered, is redirected and ended, and sends status callbacks', async () => {
    const played = [muLawNoise(0.5, 21), muLawNoise(0.5, 22)] as const;
    webhook.pages.set('/one.wav', muLawWav(played[0]));
    webhook.pages.set('/two.wav', muLawWav(played[1]));
    const first = new VoiceResponse();
    first.play({ loop: 0 }, '/one.wav');
    webhook.pages.set('/voice', first.toString());
    const api = client();
    const created = await api.calls.create({
      to: TO,
      from: FROM,
      url: `${webhook.url}/voice`,
      sendDigits: 'w12',
      statusCallback: `${webhook.url}/status`,
      statusCallbackEvent: EVENTS,
    });
    expect([created.status, created.direction, created.to, created.from]).toEqual(['queued', 'outbound-api', TO, FROM]);
    const call = await site.trunk.call();
    expect((await api.calls(created.sid).fetch()).status).toBe('ringing');
    call.respond('180 Ringing');
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp());
    await end.heard(played[0]);
    expect(await webhook.at('/voice')).toMatchObject({
      method: 'POST',
      isSigned: true,
      parameters: { CallSid: created.sid, CallStatus: 'in-progress', Direction: 'outbound-api', From: FROM, To: TO },
    });
    const read = await api.calls(created.sid).fetch();
    expect([read.status, read.direction]).toEqual(['in-progress', 'outbound-api']);
    const next = new VoiceResponse();
    next.play({ loop: 0 }, `${webhook.url}/two.wav`);
    await api.calls(created.sid).update({ twiml: next.toString() });
    await end.heard(played[1]);
    const digits = end.peer.received.filter(({ packet }) => packet.header.payloadType === 101).map(({ packet }) => packet.payload[0]);
    expect([...new Set(digits)]).toEqual([1, 2]);
    const ending = api.calls(created.sid).update({ status: 'completed' });
    respond(call.peer, await call.request('BYE'), '200 OK');
    expect((await ending).status).toBe('completed');
    const seen = await statuses();
    expect(seen.map(({ CallStatus }) => CallStatus)).toEqual(['initiated', 'ringing', 'in-progress', 'completed']);
    expect(seen.map(({ Direction }) => Direction)).toEqual(EVENTS.map(() => 'outbound-api'));
    expect(await site.ended(callIdOf(created.sid))).toMatchObject({ reason: 'AGENT_HANGUP', direction: 'outbound' });
    expect((await api.calls.list({ to: TO, limit: 1 })).map(({ sid, status }) => [sid, status])).toEqual([[created.sid, 'completed']]);
    await end.close();
  });

  it('[3264 §6.1] sends digits with the type that the answer gives telephone-event', async () => {
    const { sid } = await client().calls.create({
      to: TO,
      from: FROM,
      twiml: '<Response><Pause length="60"/></Response>',
      sendDigits: '12',
    });
    const call = await site.trunk.call();
    const end = (await CallEnd.open({ telephoneEventPayloadType: 96 })).connect(call.invite.body);
    await call.answer(end.sdp());
    const digits = (): unknown[] =>
      end.peer.received.filter(({ packet }) => packet.header.payloadType === 96).map(({ packet }) => packet.payload[0]);
    await end.peer.until(() => digits().includes(2));
    expect([...new Set(digits())]).toEqual([1, 2]);
    expect((await call.dialog.ask('BYE')).status).toBe(200);
    await site.ended(callIdOf(sid));
    await end.close();
  });

  it('runs a document given in place of a URL, and the fallback when the URL fails', async () => {
    const played = muLawNoise(0.5, 23);
    webhook.pages.set('/one.wav', muLawWav(played));
    const document = `<Response><Play>${webhook.url}/one.wav</Play></Response>`;
    webhook.pages.set('/fallback', document);
    for (const begin of [{ twiml: document }, { url: `${webhook.url}/missing`, fallbackUrl: `${webhook.url}/fallback` }]) {
      const { sid } = await client().calls.create({ to: TO, from: FROM, ...begin });
      const call = await site.trunk.call();
      const end = (await CallEnd.open()).connect(call.invite.body);
      await call.answer(end.sdp());
      await end.heard(played);
      // The end of the document hangs up.
      respond(call.peer, await call.request('BYE'), '200 OK');
      expect(await site.ended(callIdOf(sid))).toMatchObject({ reason: 'AGENT_HANGUP' });
      await end.close();
    }
    expect((await webhook.at('/fallback')).parameters).toMatchObject({ ErrorUrl: `${webhook.url}/missing` });
  });

  it.each([
    ['Enable', 'a person', [voiceLikeNoise(4_800, 3)], 'human', 'human'],
    ['Enable', 'a machine', [voiceLikeNoise(28_000, 4)], 'machine_start', 'machine_start'],
    ['DetectMessageEnd', 'a machine', [voiceLikeNoise(28_000, 4), new Int16Array(4_000), BEEP], 'machine_end_beep', 'machine_start'],
  ])('with MachineDetection %s waits until it is known who answered: %s', async (machineDetection, _who, greeting, answeredBy, shown) => {
    const played = muLawNoise(0.5, 24);
    webhook.pages.set('/one.wav', muLawWav(played));
    webhook.pages.set('/voice', '<Response><Play>/one.wav</Play></Response>');
    const { sid } = await client().calls.create({
      to: TO,
      from: FROM,
      url: `${webhook.url}/voice`,
      machineDetection,
      statusCallback: `${webhook.url}/status`,
    });
    const call = await site.trunk.call();
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp());
    expect(webhook.requests.all.filter(({ path }) => path === '/voice')).toEqual([]);
    for (const part of greeting) await end.peer.speak(part);
    expect((await webhook.at('/voice')).parameters).toMatchObject({ AnsweredBy: answeredBy, CallStatus: 'in-progress' });
    await end.heard(played);
    respond(call.peer, await call.request('BYE'), '200 OK');
    expect((await statuses()).at(-1)).toMatchObject({ CallStatus: 'completed', AnsweredBy: answeredBy });
    expect((await client().calls(sid).fetch()).answeredBy).toBe(shown);
    await end.close();
  });

  it.each([
    ['Enable', [], 'unknown'],
    ['DetectMessageEnd', [voiceLikeNoise(60_000, 4)], 'machine_end_other'],
  ])(
    'begins after MachineDetectionTimeout even when nothing was detected, with MachineDetection %s',
    async (machineDetection, greeting, answeredBy) => {
      webhook.pages.set('/voice', '<Response><Hangup/></Response>');
      const { sid } = await client().calls.create({
        to: TO,
        from: FROM,
        url: `${webhook.url}/voice`,
        machineDetection,
        machineDetectionTimeout: greeting.length === 0 ? 3 : 6,
      });
      const call = await site.trunk.call();
      const end = (await CallEnd.open()).connect(call.invite.body);
      await call.answer(end.sdp());
      for (const part of greeting) await end.peer.speak(part);
      expect((await webhook.at('/voice')).parameters).toMatchObject({ AnsweredBy: answeredBy });
      respond(call.peer, await call.request('BYE'), '200 OK');
      await site.ended(callIdOf(sid));
      await end.close();
    },
  );

  it.each([
    ['AsyncAmd is not supported', { asyncAmd: 'true' }],
    ['must be true or false', { asyncAmd: 'yes' }],
    ['must be from 3 to 59', { machineDetectionTimeout: 60 }],
  ])('is refused in Twilio’s form with "%s" when a parameter of the detection is wrong', async (message, more) => {
    const given = { to: TO, from: FROM, twiml: '<Response/>', machineDetection: 'Enable', ...more };
    await expect(client().calls.create(given)).rejects.toMatchObject({
      status: 400,
      code: 20_001,
      message: expect.stringContaining(message) as string,
      moreInfo: 'https://www.twilio.com/docs/errors/20001',
    });
  });

  it.each([
    ['busy', '486 Busy Here'],
    ['no-answer', '480 Temporarily Unavailable'],
    ['failed', '404 Not Found'],
  ])('has the status %s when nobody answers it', async (status, answer) => {
    const { sid } = await client().calls.create({ to: TO, from: FROM, twiml: '<Response/>', statusCallback: `${webhook.url}/status` });
    const call = await site.trunk.call();
    call.respond(answer);
    await call.request('ACK');
    expect((await statuses()).map(({ CallStatus, CallDuration }) => [CallStatus, CallDuration])).toEqual([[status, '0']]);
    expect((await client().calls(sid).fetch()).status).toBe(status);
  });

  it('gets the status canceled when it is ended while it rings, and no-answer after its Timeout', async () => {
    const api = client();
    const stopped = await api.calls.create({ to: TO, from: FROM, twiml: '<Response/>' });
    const first = await site.trunk.call();
    first.respond('180 Ringing');
    expect((await api.calls(stopped.sid).update({ status: 'canceled' })).status).toBe('canceled');
    await first.cancelled();
    await site.ended(callIdOf(stopped.sid));
    expect((await api.calls(stopped.sid).fetch()).status).toBe('canceled');
    const unanswered = await api.calls.create({ to: TO, from: FROM, twiml: '<Response/>', timeout: 1 });
    const second = await site.trunk.call();
    second.respond('180 Ringing');
    await second.cancelled();
    await site.ended(callIdOf(unanswered.sid));
    expect((await api.calls(unanswered.sid).fetch()).status).toBe('no-answer');
  });

  it('ends after its TimeLimit', async () => {
    const { sid } = await client().calls.create({ to: TO, from: FROM, twiml: '<Response><Pause length="60"/></Response>', timeLimit: 1 });
    const call = await site.trunk.call();
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp());
    respond(call.peer, await call.request('BYE'), '200 OK');
    expect(await site.ended(callIdOf(sid))).toMatchObject({ reason: 'MAX_DURATION' });
    await end.close();
  });

  it('continues in another process after kill -9, with its cookies and its status callback', async () => {
    const played = muLawNoise(0.5, 24);
    webhook.pages.set('/again.wav', muLawWav(played));
    webhook.cookies.set('/voice', ['state=menu']);
    webhook.pages.set('/voice', '<Response><Gather numDigits="1" action="/key"><Play loop="0">/again.wav</Play></Gather></Response>');
    webhook.pages.set('/key', '<Response/>');
    const { sid } = await client().calls.create({
      to: TO,
      from: FROM,
      url: `${webhook.url}/voice`,
      statusCallback: `${webhook.url}/status`,
    });
    const call = await site.trunk.call();
    const end = (await CallEnd.open()).connect(call.invite.body);
    await call.answer(end.sdp());
    await end.heard(played);
    site.gateway.killGateway();
    await site.gateway.startGateway();
    const { voiced } = end;
    await end.peer.until(() => end.voiced > voiced + 100);
    await end.peer.press(5);
    expect(await webhook.at('/key')).toMatchObject({ cookie: 'state=menu', parameters: { Digits: '5', CallSid: sid } });
    respond(call.peer, await call.request('BYE'), '200 OK');
    expect((await statuses()).map(({ CallStatus }) => CallStatus)).toEqual(['completed']);
    await end.close();
  });

  it.each([
    ['no To', { to: '' }, 21_201],
    ['a To that is no number', { to: 'sip:a@b.example' }, 21_211],
    ['a From that is no number', { from: 'acme' }, 21_212],
    ['a From that is not verified', { from: '+15550100998' }, 21_210],
    ['a To that the operator has not allowed', { to: '+33123456789' }, 21_215],
    ['neither Url nor Twiml', { twiml: undefined }, 21_205],
    ['a document that cannot be read', { twiml: '<Response><Say>' }, 12_100],
    ['a recording', { record: true }, 20_001],
    ['an application', { twiml: undefined, applicationSid: 'AP1' }, 20_001],
    ['a Url that is none', { twiml: undefined, url: 'nowhere' }, 21_205],
    ['a StatusCallback that is none', { statusCallback: 'nowhere' }, 21_609],
    ['an unknown event', { statusCallback: 'http://127.0.0.1:1/', statusCallbackEvent: ['sung'] }, 20_001],
  ])('is refused with Twilio’s code for %s', async (_what, fields, code) => {
    const options = { to: TO, from: FROM, twiml: '<Response/>', ...fields } as Parameters<ReturnType<typeof client>['calls']['create']>[0];
    await expect(client().calls.create(options)).rejects.toMatchObject({ status: 400, code });
  });
});
