import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import { TestBot } from '../../support/agent/test-bot.js';
import { FakeDeepgramSession } from '../../support/provider/fake-deepgram.js';
import type { FakeOpenAiSession } from '../../support/provider/fake-openai.js';
import { type FakeServer, startSessions } from '../../support/provider/fake-server.js';
import { startFakeOpenAi } from '../../support/provider/openai-server.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

// What answers in place of an agent that its provider refuses, or that is gone in a call.

let refusal: number | null = null;
let first: FakeServer<FakeOpenAiSession>;
let second: FakeServer<FakeDeepgramSession>;
let site: AgentSite<World>;
const numbers = { agent: '' };

afterEach(() => (refusal = null));

function withStandIn(settings: () => Readonly<Record<string, string>>): void {
  beforeAll(async () => {
    first = await startFakeOpenAi({ refusal: () => refusal });
    second = await startSessions((end, upgrade) => new FakeDeepgramSession(end, upgrade));
    site = await AgentSite.startOn((all) => World.start(all), settings());
    const provider = { name: 'openai-realtime', url: `ws://127.0.0.1:${String(first.port)}/v1/realtime`, api_key: 'sk-own' };
    numbers.agent = await site.numberOf({ prompt: 'You are the front desk.', provider, transfer_list: ['+15550100301'] });
  });
  afterAll(async () => {
    await site.stop();
    await first.stop();
    await second.stop();
  });
}

/** The second provider, with the operator's key, answers where the first one does not. */
function withSecondProvider(): void {
  withStandIn(() => ({
    TRUNKLINE_AGENTS_ON_FAILURE: 'second-provider',
    TRUNKLINE_AGENTS_SECOND_PROVIDER: 'deepgram',
    TRUNKLINE_DEEPGRAM_API_KEY: 'dg-operator',
    TRUNKLINE_DEEPGRAM_URL: `ws://127.0.0.1:${String(second.port)}/v1/agent/converse`,
  }));
  beforeAll(async () => {
    expect((await site.gateway.cli('org', 'enable-operator-keys', site.gateway.ready.org_id)).code).toBe(0);
  });
}

async function called(): Promise<AgentCall> {
  const call = await site.invite({ number: numbers.agent });
  await call.answered();
  call.ack();
  return call;
}

/** A call whose agent was heard and whose provider then takes the key away. */
async function lost(): Promise<AgentCall> {
  const before = first.sessions.all.length;
  const call = await called();
  const session = await first.sessions.at(before);
  const greeting = Buffer.alloc(1_600, 0x22);
  session.utter((await session.responses.at(0)).id, greeting, 'Good day.');
  await call.end.heard(greeting);
  session.error('invalid_api_key');
  return call;
}

const recordOf = async ({ signalling }: AgentCall): Promise<Readonly<Record<string, unknown>>> => {
  const { call_id: id } = await site.gateway.record(signalling.callId);
  const { json } = await site.gateway.api('GET', `/v1/calls/${String(id)}`);
  return (json as { call: Readonly<Record<string, unknown>> }).call;
};
/** The call while it is in progress. */
const liveOf = async ({ signalling }: AgentCall): Promise<Readonly<Record<string, unknown>>> => {
  const { json } = await site.gateway.api('GET', '/v1/calls?state=live');
  const listed = (json as { calls: readonly Readonly<Record<string, unknown>>[] }).calls.find(
    ({ sip_call_id: id }) => id === signalling.callId,
  );
  const shown = await site.gateway.api('GET', `/v1/calls/${String(listed?.['call_id'])}`);
  expect((shown.json as { call: object }).call).toMatchObject({ agent_error: listed?.['agent_error'] });
  return listed ?? {};
};
const textsOf = (record: Readonly<Record<string, unknown>>): string[] =>
  (record['transcript'] as readonly { readonly text: string }[]).map(({ text }) => text);

describe('on_failure second-provider', () => {
  withSecondProvider();

  it.each([
    [401, 'the key is wrong'],
    [429, 'too many sessions or requests'],
  ])('answers a call that the first provider refuses with %i, and the record has the cause', async (status, cause) => {
    refusal = status;
    const before = second.sessions.all.length;
    const call = await called();
    const session = await second.sessions.at(before);
    expect(session.config?.agent.think.prompt).toContain('You are the front desk.');
    const greeting = Buffer.alloc(1_600, 0x33);
    session.say(greeting);
    await call.end.heard(greeting);
    await call.hangUp();
    const record = await recordOf(call);
    expect(record).toMatchObject({ reason: 'CALLER_HANGUP' });
    expect(record['agent_error']).toContain(`HTTP ${String(status)} (${cause})`);
    expect(session.errors).toEqual([]);
  });

  it('continues a call that the first provider left, with the conversation so far', async () => {
    const before = second.sessions.all.length;
    const call = await lost();
    const session = await second.sessions.at(before);
    await session.messages.at(1);
    expect(session.config?.agent.context?.messages).toEqual([{ type: 'History', role: 'assistant', content: 'Good day.' }]);
    expect(session.of('InjectUserMessage')).toHaveLength(1);
    session.text('Sorry, where were we?');
    const answer = Buffer.alloc(1_600, 0x44);
    session.say(answer);
    session.done();
    await call.end.heard(answer);
    await site.gateway.until(() => session.audio.length > 1_600);
    await call.hangUp();
    const record = await recordOf(call);
    expect(record).toMatchObject({
      reason: 'CALLER_HANGUP',
      agent_error: expect.stringContaining('invalid_api_key (the key is wrong)') as string,
    });
    expect(textsOf(record)).toEqual(['Good day.', 'Sorry, where were we?']);
    const times = (record['transcript'] as readonly { readonly at_ms: number }[]).map(({ at_ms: atMs }) => atMs);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(session.errors).toEqual([]);
  });
});

describe('a session between the 200 and the ACK', () => {
  withSecondProvider();

  /** A call that was answered, whose provider has spoken; its ACK has not gone out. */
  async function answered(): Promise<{ readonly call: AgentCall; readonly session: FakeOpenAiSession }> {
    const before = first.sessions.all.length;
    const call = await site.invite({ number: numbers.agent });
    await call.answered();
    const session = await first.sessions.at(before);
    session.utter((await session.responses.at(0)).id, Buffer.alloc(1_600, 0x11), 'Never heard.');
    return { call, session };
  }

  it('that ends is replaced by another one of the same provider, whose greeting alone the caller hears', async () => {
    const { call, session } = await answered();
    const before = first.sessions.all.length;
    session.close(1_011, 'Internal error');
    const next = await first.sessions.at(before);
    const greeting = Buffer.alloc(1_600, 0x22);
    next.utter((await next.responses.at(0)).id, greeting, 'Good day.');
    call.ack();
    await call.end.heard(greeting);
    expect(call.end.peer.received.some(({ packet }) => packet.payload.includes(0x11))).toBe(false);
    await call.end.peer.speak(new Int16Array(1_600).fill(2_000));
    await site.gateway.until(() => next.audio.length > 1_600);
    const live = await liveOf(call);
    expect(live).toMatchObject({
      state: 'in_progress',
      agent_error: expect.stringContaining('closed the connection with 1011 (Internal error); another session begins') as string,
    });
    await call.hangUp();
    const record = await recordOf(call);
    expect(record).toMatchObject({ reason: 'CALLER_HANGUP', agent_error: live['agent_error'], transcript_state: 'complete' });
    expect(textsOf(record)).toEqual(['Good day.']);
    expect([...session.errors, ...next.errors]).toEqual([]);
  });

  it('that ends for good is replaced by one of the second provider, before or after the ACK', async () => {
    for (const isFirst of [true, false]) {
      const { call, session } = await answered();
      const before = second.sessions.all.length;
      session.error('invalid_api_key');
      if (isFirst) call.ack();
      const next = await second.sessions.at(before);
      if (!isFirst) call.ack();
      const greeting = Buffer.alloc(1_600, 0x33);
      next.text('Good day.');
      next.say(greeting);
      next.done();
      await call.end.heard(greeting);
      await call.hangUp();
      const record = await recordOf(call);
      expect(record).toMatchObject({
        reason: 'CALLER_HANGUP',
        agent_error: expect.stringContaining('invalid_api_key (the key is wrong)') as string,
      });
      expect([textsOf(record), next.errors]).toEqual([['Good day.'], []]);
    }
  });
});

describe('on_failure sentence', () => {
  const SENTENCE = 'Please try again later.';
  withStandIn(() => ({ TRUNKLINE_AGENTS_ON_FAILURE: 'sentence', TRUNKLINE_AGENTS_FAILURE_SENTENCE: SENTENCE }));

  it('speaks the sentence in place of an agent that is refused, and then ends the call', async () => {
    refusal = 401;
    const call = await called();
    await call.end.hearsAgent();
    expect(await call.ended()).toContain('AGENT_HANGUP');
    expect(textsOf(await recordOf(call))).toEqual([SENTENCE]);
  });

  it('speaks the sentence when the agent is lost in the call', async () => {
    const call = await lost();
    expect(await call.ended()).toContain('AGENT_HANGUP');
    expect(textsOf(await recordOf(call))).toEqual(['Good day.', SENTENCE]);
  });
});

describe('on_failure transfer', () => {
  withStandIn(() => ({
    TRUNKLINE_AGENTS_ON_FAILURE: 'transfer',
    TRUNKLINE_AGENTS_FAILURE_SENTENCE: 'One moment.',
    TRUNKLINE_AGENTS_FAILURE_TRANSFER: '+15550100399',
  }));

  it.each([
    ['is refused', () => ((refusal = 429), called())],
    ['is lost in the call', () => lost()],
  ])('transfers the caller when the agent %s, and hangs up when the carrier declines', async (_what, begin) => {
    const call = await begin();
    const refer = await call.signalling.incoming('REFER');
    expect(refer.header('Refer-To')).toContain('+15550100399');
    respond(call.peer, refer, '603 Decline');
    expect(await call.ended()).toContain('AGENT_HANGUP');
  });
});

describe('on_failure test-line', () => {
  withStandIn(() => ({ TRUNKLINE_AGENTS_ON_FAILURE: 'test-line' }));
  const port = 45_678;
  const url = `ws://127.0.0.1:${String(port)}/`;
  let number: string;
  beforeAll(async () => {
    number = await site.numberOf({ stream: { url } });
  });

  /** What the call in progress has in its trace. */
  async function traced(sipCallId: string): Promise<string> {
    const { json } = await site.gateway.api('GET', '/v1/calls?state=live');
    const call = (json['calls'] as { call_id: string; sip_call_id: string }[]).find(({ sip_call_id: id }) => id === sipCallId);
    return call === undefined ? '' : JSON.stringify((await site.gateway.api('GET', `/v1/calls/${call.call_id}/trace`)).json);
  }

  async function startBot(): Promise<TestBot> {
    const bot = await TestBot.start({ port });
    onTestFinished(() => bot.stop());
    return bot;
  }

  it('greets the caller whose bot is not there, and the next caller gets the bot that is back', async () => {
    const call = await site.invite({ number });
    await call.answered();
    call.ack();
    await call.end.hearsAgent();
    await call.hangUp();
    const bot = await startBot();
    const next = await site.talking({ number }, bot);
    await next.bot.message('media');
    await next.hangUp();
  });

  it('[3261 §9.2] does not greet a caller who cancels once the bot is connected: they get 487, and the bot gets no message', async () => {
    const bot = await startBot();
    const { rtpengine } = site.gateway;
    rtpengine.hold('answer');
    const call = await site.invite({ number });
    const left = await bot.calls.at(0);
    // The bot's side of the connection is open before the gateway's, which gives an attempt up without a close frame.
    await site.gateway.until(async () => (await traced(call.signalling.callId)).includes(`connected to ${url}`));
    await site.gateway.until(() => rtpengine.heldCount === 1);
    call.signalling.cancel();
    expect((await call.signalling.final()).status).toBe(487);
    rtpengine.goOn();
    expect(await left.closed.at(0)).toBe(1_000);
    expect(left.messages.all).toEqual([]);
    await call.close();
    expect(await site.gateway.record(call.signalling.callId)).toMatchObject({ reason: 'CALLER_CANCELLED' });
  });
});
