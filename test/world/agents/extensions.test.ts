import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mulaw } from 'alawmulaw';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import type { BotMessage } from '../../support/agent/test-bot.js';
import type { CallEnd } from '../../support/media/call-end.js';
import { voiceLikeNoise } from '../../support/media/audio.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

// What a bot may do beyond Twilio's messages, behind the whole product.

const SECOND = 8_000;
const TARGET = '+15550100300';
let site: AgentSite<World>;
let number: string;
let toolServer: Server;
/** What voice activity detection takes for speech. */
const SPEECH = voiceLikeNoise(1.6 * SECOND, 70);
const toolRequests: { readonly key: string; readonly body: unknown }[] = [];

beforeAll(async () => {
  toolServer = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      toolRequests.push({ key: request.headers['x-key'] as string, body: JSON.parse(body) as unknown });
      response.setHeader('content-type', 'application/json').end('{"booking":{"id":"B-7"},"internal":true}');
    });
  });
  await new Promise<void>((resolve) => toolServer.listen(0, '127.0.0.1', resolve));
  site = await AgentSite.startOn((all) => World.start(all), { TRUNKLINE_TOOLS_ALLOW_PRIVATE: 'true' });
  const url = `http://127.0.0.1:${String((toolServer.address() as AddressInfo).port)}/book`;
  number = await site.numberOf({
    stream: { url: site.bot.url },
    analysis_schema: { name: 'string', guests: 'integer' },
    tools: [
      {
        name: 'book',
        description: 'Books a table.',
        url,
        headers: { 'X-Key': 'tool-key' },
        body: { day: '{{input.day}}' },
        input_schema: { type: 'object', required: ['day'], properties: { day: 'YYYY-MM-DD' } },
        response: { id: '$.booking.id' },
      },
    ],
    transfer_list: [TARGET],
  });
});
afterAll(async () => {
  await site.stop();
  await new Promise((resolve) => toolServer.close(resolve));
});

const talking = (): Promise<AgentCall> => site.talking({ number });
const lastOf = ({ peer }: CallEnd, packets: number): Buffer[] => peer.received.slice(-packets).map(({ packet }) => packet.payload);
const timeOf = ({ speech: told }: BotMessage): number => Number((told as { timestamp: string }).timestamp);
const recordOf = ({ signalling }: AgentCall): Promise<Readonly<Record<string, unknown>>> => site.gateway.record(signalling.callId);

describe('the configure message of a bot', () => {
  it('with speech_events gets the bot a message when the caller begins to speak and when they stop', async () => {
    const call = await talking();
    const { bot, end } = call;
    bot.send({ event: 'configure', configure: { speech_events: true, end_of_speech_ms: 400 } });
    const silence = new Int16Array(SECOND);
    await end.peer.speak(silence.subarray(0, SECOND / 2));
    await end.peer.speak(SPEECH);
    await end.peer.speak(silence);
    // All of it, and the silence after it.
    const whole = Buffer.from(mulaw.encode(SPEECH));
    const begins = (): number => bot.heard.indexOf(whole);
    await bot.messages.until(() => (begins() >= 0 && bot.heard.length >= begins() + whole.length + (SECOND * 3) / 4) || undefined);
    const started = await bot.message('speech_started');
    const stopped = await bot.messages.until(() => bot.of('speech_stopped').at(-1));
    // In the time of the caller's audio.
    const beganMs = begins() / 8;
    expect(Math.abs(timeOf(started) - beganMs)).toBeLessThan(200);
    expect(Math.abs(timeOf(stopped) - (beganMs + whole.length / 8))).toBeLessThan(300);
    expect(timeOf(stopped)).toBeGreaterThan(timeOf(started));
    await call.hangUp();
  });

  it('with barge_in makes the caller’s first word stop the bot, whose marks come back', async () => {
    const call = await talking();
    const { bot, end } = call;
    bot.send({ event: 'configure', configure: { barge_in: true } });
    bot.say(Buffer.from(mulaw.encode(voiceLikeNoise(20 * SECOND, 71))));
    bot.send({ event: 'mark', mark: { name: 'unheard' } });
    await end.peer.until(() => end.voiced > 20);
    await end.peer.speak(SPEECH);
    expect(await bot.message('mark')).toMatchObject({ mark: { name: 'unheard' } });
    // Silence comes before the 20 s of speech are over.
    const isSilent = (): boolean => {
      const voiced = end.voiced;
      return end.peer.received.length - voiced > 0 && lastOf(end, 10).every((payload) => payload.every((byte) => byte === 0xff));
    };
    await end.peer.until(isSilent);
    expect(end.voiced).toBeLessThan(20 * 50);
    expect(bot.of('speech_started')).toEqual([]);
    await call.hangUp();
  });
});

describe('the hangup message of a bot', () => {
  it('ends the call with BYE after the caller has heard the speech before it', async () => {
    const call = await talking();
    const farewell = Buffer.from(mulaw.encode(voiceLikeNoise(SECOND, 72)));
    call.bot.say(farewell);
    call.bot.send({ event: 'hangup' });
    const bye = await call.signalling.incoming('BYE');
    // Its last packet may be behind the BYE: they come by different ways.
    const heard = (): Buffer => Buffer.concat(call.end.peer.received.map(({ packet }) => packet.payload));
    await site.gateway.until(() => heard().includes(farewell));
    expect(bye.header('Reason')).toContain('text="AGENT_HANGUP"');
    respond(call.peer, bye, '200 OK');
    expect(await call.bot.closed.at(0)).toBe(1_000);
    expect(call.bot.messages.all.at(-1)).toMatchObject({ event: 'stop' });
    await call.close();
  });
});

describe('the transfer message of a bot', () => {
  it('[3515 §2.4.4] makes the gateway send REFER; the bot gets its acceptance, and NOTIFY with 200 ends the call', async () => {
    const call = await talking();
    call.bot.send({ event: 'transfer', transfer: { id: 'no', to: '+15550100301' } });
    expect(await call.bot.message('error')).toMatchObject({ error: { request: 'transfer', id: 'no', code: 'TRANSFER_NOT_ALLOWED' } });
    call.bot.send({ event: 'transfer', transfer: { id: 't1', to: TARGET } });
    const refer = await call.signalling.incoming('REFER');
    expect(refer.header('Refer-To')).toContain(TARGET);
    respond(call.peer, refer, '202 Accepted');
    expect(await call.bot.message('transfer')).toMatchObject({ transfer: { id: 't1', state: 'accepted', status: 202 } });
    const headers = ['Event: refer', 'Subscription-State: terminated;reason=noresource', 'Content-Type: message/sipfrag;version=2.0'];
    expect((await call.signalling.request('NOTIFY', call.ok, 'SIP/2.0 200 OK\r\n', headers)).status).toBe(200);
    expect(await call.ended()).toContain('text="TRANSFERRED"');
    expect(await call.bot.closed.at(0)).toBe(1_000);
    expect(await recordOf(call)).toMatchObject({ reason: 'TRANSFERRED' });
  });
});

describe('a bot that sends a transcript or an analysis, or runs a tool', () => {
  it('finds both in the record, the transcript during the call too; an analysis that the schema does not allow gets an error', async () => {
    const call = await talking();
    const entries = [
      { speaker: 'agent', text: 'Good day.', at_ms: 100 },
      { speaker: 'caller', text: 'A table for two.', at_ms: 900 },
    ];
    call.bot.send({ event: 'transcript', transcript: { entries } });
    call.bot.send({ event: 'analysis', analysis: { id: 'a1', data: { name: 'Jane', guests: 2, mood: 'fine' } } });
    const { error } = (await call.bot.message('error')) as unknown as { error: { id: string; code: string; message: string } };
    expect([error.id, error.code, error.message]).toEqual(['a1', 'ANALYSIS_INVALID', expect.stringContaining('mood')]);
    const live = (await site.gateway.api('GET', '/v1/calls?state=live')).json['calls'] as { call_id: string; sip_call_id: string }[];
    const liveId = live.find(({ sip_call_id: sipCallId }) => sipCallId === call.signalling.callId)?.call_id;
    const now = await site.gateway.api('GET', `/v1/calls/${String(liveId)}`);
    expect(now.json).toMatchObject({ call: { state: 'in_progress', transcript: entries } });
    await call.hangUp();
    const { call_id: id } = await recordOf(call);
    const { json } = await site.gateway.api('GET', `/v1/calls/${String(id)}`);
    expect(json).toMatchObject({ call: { transcript: entries, analysis: { name: 'Jane', guests: 2 } } });
    expect(json).toMatchObject({ call: { analysis_rejected: { mood: 'fine' } } });
  });

  it('gets the result of a tool that the gateway calls with headers that the bot never sees', async () => {
    const call = await talking();
    expect(JSON.stringify(call.bot.start)).not.toContain('tool-key');
    call.bot.send({ event: 'tool', tool: { id: 'x', name: 'book', input: {} } });
    expect(await call.bot.message('error')).toMatchObject({ error: { request: 'tool', id: 'x', code: 'TOOL_BAD_INPUT' } });
    call.bot.send({ event: 'tool', tool: { id: 'y', name: 'book', input: { day: '2026-12-24' } } });
    expect(await call.bot.message('tool_result')).toMatchObject({ tool: { id: 'y', result: { id: 'B-7' }, httpStatus: 200 } });
    expect(toolRequests).toEqual([{ key: 'tool-key', body: { day: '2026-12-24' } }]);
    await call.hangUp();
  });
});

it('an agent with the model turbo gets no tools, no transfers and no DTMF, whatever its settings say', async () => {
  const turbo = await site.numberOf({
    model: 'turbo',
    stream: { url: site.bot.url },
    tools: [{ name: 'book', description: '', url: 'http://127.0.0.1:9/book' }],
    transfer_list: [TARGET],
  });
  const call = await site.talking({ number: turbo });
  const told = call.bot.start as unknown as { start: { customParameters: Record<string, string> } };
  expect([
    told.start.customParameters['model'],
    Object.keys(told.start.customParameters).filter((name) => /^t(ools|ransfer)/.test(name)),
  ]).toEqual(['turbo', []]);
  call.bot.send({ event: 'tool', tool: { id: 't1', name: 'book', input: {} } });
  call.bot.send({ event: 'transfer', transfer: { id: 't2', to: TARGET } });
  call.bot.send({ event: 'dtmf', dtmf: { digits: '1' } });
  const refused: unknown[] = [];
  for (let index = 0; index < 3; index += 1) {
    const { error } = (await call.bot.message('error', index)) as unknown as { error: { request: string; code: string } };
    refused.push([error.request, error.code]);
  }
  expect(refused).toHaveLength(3);
  for (const request of ['tool', 'transfer', 'dtmf']) expect(refused).toContainEqual([request, 'NOT_IN_TURBO']);
  await call.hangUp();
});
