import { twilioTokenOf } from '../../support/twilio-token.js';
import { gzipSync } from 'node:zlib';
import { mulaw } from 'alawmulaw';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import twilio from 'twilio';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import { payloadOf } from '../../support/agent/test-bot.js';
import { VoiceWebhook } from '../../support/agent/voice-webhook.js';
import { muLawNoise, muLawWav } from '../../support/media/mu-law.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

// An application as its owner would write it for Twilio, behind the whole product: its documents are made by Twilio's own library.

const SECOND = 8_000;
const { VoiceResponse } = twilio.twiml;
let site: AgentSite<World>;
let webhook: VoiceWebhook;
let token: string;
let number: string;
let attached = 0;

beforeAll(async () => {
  site = await AgentSite.startOn((all) => World.start(all), {
    TRUNKLINE_WEBHOOKS_ALLOW_PRIVATE: 'true',
    TRUNKLINE_CALLS_TRANSFER_PREFIXES: '[+1555]',
  });
  token = await twilioTokenOf(site.gateway, site.gateway.ready.org_id);
});
afterAll(() => site.stop());

beforeEach(async () => {
  webhook = await VoiceWebhook.start(token);
  number = await numberOf({ voice_url: `${webhook.url}/voice`, status_callback: `${webhook.url}/status` });
  return () => webhook.stop();
});

async function numberOf(options: object): Promise<string> {
  attached += 1;
  const phoneNumber = `+1555010${String(3_000 + attached)}`;
  const answer = await site.gateway.api('POST', '/sip/attach', {
    phone_number: phoneNumber,
    directions: ['inbound'],
    service: 'sip',
    options,
  });
  expect(answer.status, JSON.stringify(answer.json)).toBe(200);
  return phoneNumber;
}

async function talking(headers: readonly string[] = []): Promise<AgentCall> {
  const call = await site.invite({ number, headers });
  await call.answered();
  call.ack();
  return call;
}

function page(path: string, write: (response: InstanceType<typeof VoiceResponse>) => unknown): void {
  const response = new VoiceResponse();
  write(response);
  webhook.pages.set(path, response.toString());
}

const client = () => {
  const accountSid = `AC${site.gateway.ready.org_id.replaceAll('-', '')}`;
  const own = twilio(accountSid, token);
  own.api.baseUrl = site.gateway.ready.http;
  return own;
};
const callSid = async (): Promise<string> => (await webhook.at('/voice')).parameters['CallSid'] ?? '';

describe('a voice webhook', () => {
  it('gets signed requests with the parameters of the call, gathers digits, and hangs up at the end of the document', async () => {
    const played = muLawNoise(1, 1);
    webhook.pages.set('/hello.wav', muLawWav(played));
    page('/voice', (response) => {
      response.gather({ numDigits: 2, action: '/menu', timeout: 20 }).play('/hello.wav');
      response.say('Nobody pressed anything.');
    });
    page('/menu', (response) => response.pause({ length: 1 }));
    const call = await talking(['X-Order: 4711']);
    await call.end.heard(played);
    await call.end.peer.press(4);
    await call.end.peer.press(2);
    expect(await webhook.at('/menu')).toMatchObject({
      method: 'POST',
      isSigned: true,
      parameters: { Digits: '42', CallStatus: 'in-progress' },
    });
    expect(await webhook.at('/voice')).toMatchObject({
      isSigned: true,
      parameters: {
        CallStatus: 'ringing',
        From: '+15550100999',
        To: number,
        Direction: 'inbound',
        ApiVersion: '2010-04-01',
        'SipHeader_x-order': '4711',
      },
    });
    expect(await call.ended()).toContain('AGENT_HANGUP');
    expect(await webhook.at('/status')).toMatchObject({
      isSigned: true,
      parameters: { CallStatus: 'completed', CallDuration: expect.stringMatching(/^\d+$/) as string },
    });
  });

  it('writes a transcript whose times continue from one verb, and one document, to the next', async () => {
    page('/voice', (response) => {
      response.say('One.');
      response.pause({ length: 2 });
      response.gather({ numDigits: 1, action: '/menu', timeout: 20 }).say('Two.');
    });
    page('/menu', (response) => {
      response.gather({ numDigits: 1, timeout: 3 }).say('Three.');
      response.say('Four.');
    });
    const call = await talking();
    await site.gateway.pass(5_000);
    await call.end.peer.press(7);
    await call.ended();
    const { call_id: id } = await site.gateway.record(call.signalling.callId);
    const { json } = await site.gateway.api('GET', `/v1/calls/${String(id)}`);
    const { transcript } = (json as { call: { transcript: readonly { readonly text: string; readonly at_ms: number }[] } }).call;
    expect(transcript.map(({ text }) => text)).toEqual(['One.', 'Two.', '7', 'Three.', 'Four.']);
    const times = transcript.map(({ at_ms: atMs }) => atMs);
    expect(times).toEqual(times.toSorted((one, other) => one - other));
    expect(times[1]).toBeGreaterThanOrEqual(2_000);
    expect(times[4]).toBeGreaterThanOrEqual(times[3]! + 3_000);
  });

  it.each([
    ['ISO-8859-1', { 'content-type': 'text/xml; charset=ISO-8859-1' }, (text: string) => Buffer.from(text, 'latin1')],
    ['gzip', { 'content-type': 'text/xml', 'content-encoding': 'gzip' }, (text: string) => gzipSync(text)],
  ])('may answer in %s', async (_how, headers, encoded) => {
    webhook.pages.set('/voice', encoded('<Response><Say>Grüße</Say><Hangup/></Response>'));
    webhook.headers.set('/voice', headers);
    const call = await talking();
    expect(await call.ended()).toContain('AGENT_HANGUP');
    const { call_id: id } = await site.gateway.record(call.signalling.callId);
    const { json } = await site.gateway.api('GET', `/v1/calls/${String(id)}`);
    expect(json).toMatchObject({ call: { transcript: [{ speaker: 'agent', text: 'Grüße' }] } });
  });

  it('gets the cookies that it set in the same call, and those of no other call', async () => {
    const { cookies } = webhook;
    cookies.set('/voice', ['state=greeting; Path=/; HttpOnly', 'seen=1']);
    cookies.set('/second', ['state=menu', 'seen=; Max-Age=0']);
    page('/voice', (response) => response.redirect('/second'));
    page('/second', (response) => response.redirect('/third'));
    page('/third', (response) => response.hangup());
    for (const turn of [0, 1]) {
      const call = await talking();
      expect(await call.ended()).toContain('AGENT_HANGUP');
      const sent = await Promise.all(['/voice', '/second', '/third'].map(async (path) => (await webhook.at(path, turn)).cookie));
      expect(sent).toEqual([null, 'state=greeting; seen=1', 'state=menu']);
    }
  });

  it('continues after a gather without digits, and follows a redirect', async () => {
    page('/voice', (response) => {
      response.gather({ timeout: 1, action: '/never' });
      response.redirect('/next?step=2');
    });
    page('/next', (response) => response.hangup());
    const call = await talking();
    expect(await call.ended()).toContain('AGENT_HANGUP');
    expect(webhook.requests.all.map(({ path }) => path)).not.toContain('/never');
    expect((await webhook.at('/next')).isSigned).toBe(true);
  });

  it.each([
    ['rejected', 603, 'AGENT_DECLINED'],
    ['busy', 486, 'AGENT_BUSY'],
  ] as const)('refuses a call without a 200 when the reason is %s', async (reason, status, code) => {
    page('/voice', (response) => response.reject({ reason }));
    const call = await site.invite({ number });
    const final = await call.signalling.final();
    expect([final.status, final.text.includes(code)]).toEqual([status, true]);
    await call.close();
  });

  it('connects a bot, and continues with the next verb when the bot closes', async () => {
    page('/voice', (response) => {
      response.connect().stream({ url: site.bot.url }).parameter({ name: 'FirstName', value: 'Ada' });
      response.redirect('/after');
    });
    page('/after', (response) => response.hangup());
    const before = site.bot.calls.all.length;
    const call = await talking();
    const bot = await site.bot.calls.at(before);
    const start = (await bot.message('start')) as unknown as { start: { customParameters: object; callSid: string } };
    expect(start.start.customParameters).toEqual({ FirstName: 'Ada' });
    expect(start.start.callSid).toBe(await callSid());
    bot.socket.close(1_000);
    await webhook.at('/after');
    expect(await call.ended()).toContain('AGENT_HANGUP');
  });

  it('copies both sides of a call to a stream beside the verbs, and gets the events of the stream', async () => {
    const played = muLawNoise(1, 7);
    webhook.pages.set('/hello.wav', muLawWav(played));
    page('/voice', (response) => {
      const stream = { url: site.bot.url, name: 'copy', track: 'both_tracks' as const, statusCallback: '/stream' };
      response.start().stream(stream).parameter({ name: 'who', value: 'Ada' });
      response.play('/hello.wav');
      response.pause({ length: 60 });
    });
    const before = site.bot.calls.all.length;
    const call = await talking();
    const copy = await site.bot.calls.at(before);
    const start = (await copy.message('start')) as unknown as { start: { tracks: string[]; customParameters: object; streamSid: string } };
    expect([start.start.tracks, start.start.customParameters]).toEqual([['inbound', 'outbound'], { who: 'Ada' }]);
    const trackOf = (track: string): Buffer =>
      Buffer.concat(
        copy
          .of('media')
          .filter(({ media }) => (media as { track: string }).track === track)
          .map(payloadOf),
      );
    await site.gateway.until(() => trackOf('outbound').includes(played));
    const [level] = mulaw.encode(new Int16Array([2_000]));
    await call.end.peer.speak(new Int16Array(SECOND / 2).fill(2_000));
    await site.gateway.until(() => trackOf('inbound').filter((byte) => byte === level).length === SECOND / 2);
    const { streamSid } = start.start;
    const about = { StreamSid: streamSid, StreamName: 'copy', CallSid: await callSid() };
    expect(await webhook.at('/stream')).toMatchObject({ isSigned: true, parameters: { ...about, StreamEvent: 'stream-started' } });
    const stop = new VoiceResponse();
    stop.stop().stream({ name: 'copy' });
    stop.pause({ length: 60 });
    await client()
      .calls(await callSid())
      .update({ twiml: stop.toString() });
    await copy.message('stop');
    expect(await webhook.at('/stream', 1)).toMatchObject({ isSigned: true, parameters: { ...about, StreamEvent: 'stream-stopped' } });
    await call.hangUp();
    expect(webhook.requests.all.filter(({ path }) => path === '/stream').length).toBe(2);
  });

  it('gets the event of a stream that cannot be connected, and those of a stream of Connect that starts and stops', async () => {
    page('/voice', (response) => {
      response.start().stream({ url: 'ws://127.0.0.1:9/none', statusCallback: `${webhook.url}/failed` });
      response.connect().stream({ url: site.bot.url, statusCallback: '/stream' });
      response.hangup();
    });
    const before = site.bot.calls.all.length;
    const call = await talking();
    expect((await webhook.at('/failed')).parameters).toMatchObject({
      StreamEvent: 'stream-error',
      StreamError: expect.stringContaining('ECONNREFUSED') as string,
    });
    const bot = await site.bot.calls.at(before);
    await bot.message('start');
    expect((await webhook.at('/stream')).parameters).toMatchObject({ StreamEvent: 'stream-started', StreamSid: bot.streamSid });
    bot.socket.close(1_000);
    expect((await webhook.at('/stream', 1)).parameters).toMatchObject({ StreamEvent: 'stream-stopped', StreamSid: bot.streamSid });
    expect(await call.ended()).toContain('AGENT_HANGUP');
  });

  it('gets a status callback, with a sequence number, at each moment that it asked for', async () => {
    const events = ['initiated', 'ringing', 'answered', 'completed'];
    number = await numberOf({
      voice_url: `${webhook.url}/voice`,
      status_callback: `${webhook.url}/status`,
      status_callback_events: events,
    });
    // Ringing begins when the webhook takes its time.
    page('/voice', (response) => response.hangup());
    const call = await talking();
    expect(await call.ended()).toContain('AGENT_HANGUP');
    const seen = await webhook.requests.until((all) => {
      const found = all.filter(({ path }) => path === '/status');
      return found.some(({ parameters }) => parameters['CallStatus'] === 'completed') ? found : undefined;
    });
    const order = [...seen].sort((a, b) => Number(a.parameters['SequenceNumber']) - Number(b.parameters['SequenceNumber']));
    expect(order.map(({ parameters }) => parameters['SequenceNumber'])).toEqual(order.map((_one, index) => String(index)));
    expect(order.map(({ parameters }) => parameters['CallStatus']).filter((status) => status !== 'ringing')).toEqual([
      'initiated',
      'in-progress',
      'completed',
    ]);
    expect(seen.every(({ isSigned }) => isSigned)).toBe(true);
  });

  it('runs the fallback when the first URL fails, and refuses the call when both fail', async () => {
    number = await numberOf({ voice_url: `${webhook.url}/missing`, voice_fallback_url: `${webhook.url}/fallback` });
    page('/fallback', (response) => response.hangup());
    const call = await talking();
    expect(await call.ended()).toContain('AGENT_HANGUP');
    expect((await webhook.at('/fallback')).parameters).toMatchObject({ ErrorUrl: `${webhook.url}/missing`, ErrorCode: '11200' });
    webhook.pages.delete('/fallback');
    const refused = await site.invite({ number });
    const final = await refused.signalling.final();
    expect([final.status, final.text.includes('AGENT_UNAVAILABLE')]).toEqual([480, true]);
    await refused.close();
  });

  it('transfers by Dial, and continues when the carrier refuses', async () => {
    page('/voice', (response) => {
      response.dial({ action: '/dialled' }, '+15550100777');
    });
    page('/dialled', (response) => response.hangup());
    const call = await talking();
    const refer = await call.signalling.incoming('REFER');
    expect(refer.header('Refer-To')).toContain('+15550100777');
    respond(call.peer, refer, '486 Busy Here');
    expect((await webhook.at('/dialled')).parameters).toMatchObject({ DialCallStatus: 'busy' });
    expect(await call.ended()).toContain('AGENT_HANGUP');
  });

  it('continues in another process after kill -9, where the verb in progress begins again', async () => {
    const played = muLawNoise(1, 3);
    webhook.pages.set('/again.wav', muLawWav(played));
    page('/voice', (response) => {
      response.redirect('/menu');
    });
    page('/menu', (response) => {
      response.gather({ numDigits: 1, action: '/chosen', timeout: 60 }).play({ loop: 0 }, '/again.wav');
    });
    page('/chosen', (response) => response.hangup());
    const call = await talking();
    await call.end.heard(played);
    const before = webhook.requests.all.length;
    site.gateway.killGateway();
    await site.gateway.startGateway();
    const heard = call.end.voiced;
    await call.end.peer.until(() => call.end.voiced > heard + 100);
    await call.end.peer.press(5);
    expect((await webhook.at('/chosen')).parameters).toMatchObject({ Digits: '5' });
    // The audio is fetched again, no document.
    expect(webhook.requests.all.slice(before).map(({ path }) => path)).toEqual(['/again.wav', '/chosen']);
    expect(await call.ended()).toContain('AGENT_HANGUP');
  });

  it.each([
    ['cannot be carried out', '<Response><Record/></Response>', 'text/xml', '<Record> is not supported.'],
    [
      'is JSON',
      '{"detail":"Not Found"}',
      'application/json',
      'The document is no XML: it begins with "{"detail":"Not Found"}". Its Content-Type is application/json.',
    ],
    ['is HTML', '<!DOCTYPE html><html></html>', 'text/html', 'The document is HTML, not TwiML. Its Content-Type is text/html.'],
    ['is empty', '', 'application/xml', 'The document is empty.'],
  ])('whose document %s ends the call, and the record has the reason', async (_how, body, type, error) => {
    page('/voice', (response) => response.redirect('/bad'));
    webhook.pages.set('/bad', body);
    webhook.headers.set('/bad', { 'content-type': type });
    const refused = await site.invite({ number });
    expect((await refused.signalling.final()).status).toBe(480);
    await refused.close();
    expect(await site.gateway.record(refused.signalling.callId)).toMatchObject({ agent_error: error });
  });
});

describe('an update of a call', () => {
  const wait = `<Pause length="60"/>`;
  const endless = `<Play loop="0">/one.wav</Play>`;

  /** Each verb, while it is in progress. */
  it.each([
    ['Say', `<Say loop="0">Please hold the line.</Say>`],
    ['Play', endless],
    ['Play digits', `<Play digits="${'1w2w'.repeat(16)}"/>`],
    ['Pause', wait],
    ['Gather', `<Gather timeout="60">${endless}</Gather>`],
    ['Start', `<Start><Stream url="BOT"/></Start>${wait}`],
    ['Connect Stream', `<Connect action="/never"><Stream url="BOT"/></Connect>`],
    ['Dial', `<Dial action="/never">+15550100777</Dial>`],
    ['Redirect', `<Redirect>/slow</Redirect>`],
  ])('by Twiml, and then by Url, replaces %s', async (verb, document) => {
    const played = [muLawNoise(0.5, 11), muLawNoise(0.5, 12)] as const;
    webhook.pages.set('/one.wav', muLawWav(muLawNoise(0.5, 13)));
    webhook.pages.set('/first.wav', muLawWav(played[0]));
    webhook.pages.set('/second.wav', muLawWav(played[1]));
    webhook.pages.set('/never', '<Response/>');
    webhook.silent.add('/slow');
    const response = `<Response>${document.replaceAll('BOT', site.bot.url)}</Response>`;
    webhook.pages.set('/voice', `<Response><Pause length="1"/><Redirect>/verb</Redirect></Response>`);
    webhook.pages.set('/verb', response);
    webhook.pages.set('/second', `<Response><Play loop="0">/second.wav</Play></Response>`);
    const bots = site.bot.calls.all.length;
    const call = await talking();
    const sid = await callSid();
    await webhook.at('/verb');
    /** Until the verb is in progress. */
    const inProgress = async (index: number): Promise<void> => {
      if (verb === 'Redirect') await webhook.at('/slow', index);
      if (verb === 'Dial') await call.signalling.incoming('REFER');
      if (document.includes('BOT')) await (await site.bot.calls.at(bots + index)).message('start');
      if (document.includes('.wav')) await webhook.at('/one.wav', index);
    };
    await inProgress(0);
    const api = client().calls(sid);
    expect((await api.update({ twiml: `<Response><Play loop="0">${webhook.url}/first.wav</Play></Response>` })).status).toBe('in-progress');
    await call.end.heard(played[0]);
    // A second REFER would have to wait for the first one.
    if (verb !== 'Dial') {
      await api.update({ twiml: response.replaceAll('>/', `>${webhook.url}/`) });
      await inProgress(1);
    }
    await api.update({ url: `${webhook.url}/second`, method: 'GET' });
    await call.end.heard(played[1]);
    expect((await webhook.at('/second')).method).toBe('GET');
    expect(webhook.requests.all.map(({ path }) => path)).not.toContain('/never');
    await call.hangUp();
  });

  it('ignores connection overrides in URLs: it does not sign them, and the trace says that they have no effect', async () => {
    page('/voice', (response) => response.redirect('/second#rc=2&rp=all'));
    page('/second', (response) => response.redirect('/third#rc=2'));
    page('/third', (response) => response.hangup());
    const call = await talking();
    expect(await call.ended()).toContain('AGENT_HANGUP');
    for (const path of ['/second', '/third']) expect(await webhook.at(path)).toMatchObject({ isSigned: true });
    const { call_id: id } = await site.gateway.record(call.signalling.callId);
    const trace = JSON.stringify((await site.gateway.api('GET', `/v1/calls/${String(id)}/trace`)).json);
    expect(trace.split('connection overrides have no effect here')).toHaveLength(2);
  });

  it('skips unknown verbs and attributes, with a warning each in the trace', async () => {
    webhook.pages.set('/voice', '<Response><Whistle/><Pause length="1" volume="3"/><Hangup/></Response>');
    const call = await talking();
    const sid = await callSid();
    expect(await call.ended()).toContain('AGENT_HANGUP');
    await webhook.at('/status');
    const id = sid.slice(2).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    const trace = JSON.stringify((await site.gateway.api('GET', `/v1/calls/${id}/trace`)).json);
    expect(trace).toContain('<Whistle> is no verb that is supported: it is skipped.');
    expect(trace).toContain('The attribute volume of <Pause> has no effect here.');
  });
});

describe('Twilio’s own library', () => {
  it('reads, lists, redirects and ends a call', async () => {
    page('/voice', (response) => response.pause({ length: 60 }));
    const played = muLawNoise(1, 2);
    webhook.pages.set('/other.wav', muLawWav(played));
    const call = await talking();
    const sid = await callSid();
    const api = client();
    const read = await api.calls(sid).fetch();
    expect([read.status, read.from, read.to, read.direction, read.startTime instanceof Date]).toEqual([
      'in-progress',
      '+15550100999',
      number,
      'inbound',
      true,
    ]);
    expect((await api.calls.list({ to: number, limit: 5 })).map((one) => one.sid)).toEqual([sid]);
    page('/other', (response) => {
      response.play('/other.wav');
      response.pause({ length: 60 });
    });
    await api.calls(sid).update({ url: `${webhook.url}/other` });
    await call.end.heard(played);
    const said = new VoiceResponse();
    said.gather({ numDigits: 1, action: `${webhook.url}/key`, timeout: 30 });
    page('/key', (response) => response.pause({ length: 60 }));
    await api.calls(sid).update({ twiml: said.toString() });
    await call.end.peer.until(() => true);
    await call.end.peer.press(7);
    expect((await webhook.at('/key')).parameters).toMatchObject({ Digits: '7' });
    const ending = api.calls(sid).update({ status: 'completed' });
    expect(await call.ended()).toContain('AGENT_HANGUP');
    expect((await ending).status).toBe('completed');
    await webhook.at('/status');
    const ended = await api.calls(sid).fetch();
    expect([ended.status, Number(ended.duration) >= 0, ended.endTime instanceof Date]).toEqual(['completed', true, true]);
  });

  it('gets Twilio’s errors for a wrong token and an unknown call, and pages of calls', async () => {
    const wrong = twilio(`AC${site.gateway.ready.org_id.replaceAll('-', '')}`, 'x'.repeat(32));
    wrong.api.baseUrl = site.gateway.ready.http;
    await expect(wrong.calls('CA00000000000000000000000000000000').fetch()).rejects.toMatchObject({ status: 401, code: 20_003 });
    await expect(client().calls('CA00000000000000000000000000000000').fetch()).rejects.toMatchObject({ status: 404, code: 20_404 });
    const all = await client().calls.list({ pageSize: 2, limit: 5 });
    expect(new Set(all.map(({ sid }) => sid)).size).toBe(all.length);
    expect(all.length).toBeGreaterThan(2);
    expect(
      (
        await client()
          .api.v2010.accounts(`AC${site.gateway.ready.org_id.replaceAll('-', '')}`)
          .fetch()
      ).status,
    ).toBe('active');
  });
});
