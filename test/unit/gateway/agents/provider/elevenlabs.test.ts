import { describe, expect, it } from 'vitest';
import type { ProviderSettings } from '../../../../../src/gateway/model/provider-settings.js';
import { AgentUnavailableError } from '../../../../../src/gateway/ports/ports.js';
import { FakeElevenLabsSession, type FakeElevenLabsOptions } from '../../../../support/provider/fake-elevenlabs.js';
import { openProvider } from '../../../../support/provider/provider-leg.js';

const loud = (ms: number, byte = 0x10): Buffer => Buffer.alloc(8 * ms, byte);
const open = (settings: Partial<ProviderSettings> = {}, options: FakeElevenLabsOptions = {}) =>
  openProvider((end, request) => new FakeElevenLabsSession(end, request, options), {
    provider: 'elevenlabs',
    url: 'wss://api.elevenlabs.io/v1/convai/conversation',
    model: 'agent_1',
    ...settings,
  });
const talking = async (settings: Partial<ProviderSettings> = {}, options: FakeElevenLabsOptions = {}) => {
  const leg = open(settings, options);
  await leg.talk();
  return leg;
};

describe('an agent at ElevenLabs', () => {
  it('sends what it overrides, and the call is answered once the formats are known', async () => {
    const leg = open({ voice: 'v1', language: 'GER', firstSentence: 'Guten Tag.' });
    await leg.connect();
    const override = leg.session.config?.conversation_config_override;
    expect(override?.agent?.prompt?.prompt).toContain('You are the front desk.');
    expect(override).toMatchObject({ agent: { first_message: 'Guten Tag.', language: 'de' }, tts: { voice_id: 'v1' } });
    expect(leg.session.errors).toEqual([]);
  });

  it('leaves the agent its own prompt and first message, and waits when it is to', async () => {
    const own = await talking({ prompt: '' });
    expect(own.session.config?.conversation_config_override?.agent).toEqual({ language: 'en' });
    const waiting = await talking({ firstSentence: 'Hello.', waitsForGreeting: true });
    expect(waiting.session.config?.conversation_config_override?.agent?.first_message).toBe('');
  });

  it.each([
    [{ refusal: { code: 3_000, reason: 'no such agent' } }, 'closed the connection with 3000 (no such agent)'],
    [{ output: 'pcm_44100' }, 'audio formats are not supported (ulaw_8000, pcm_44100)'],
  ])('refuses the call on %j', async (options: FakeElevenLabsOptions, cause) => {
    const leg = open({}, options);
    await expect(leg.connect()).rejects.toBeInstanceOf(AgentUnavailableError);
    expect(leg.notes.join()).toContain(cause);
  });

  it('without an agent there connects nothing', async () => {
    const leg = open({ model: '' });
    await expect(leg.connect()).rejects.toThrow('there is no agent for elevenlabs');
    expect(leg.sessions).toEqual([]);
  });

  it.each(['pcm_8000', 'pcm_16000', 'pcm_24000', 'ulaw_8000'])('hears and is heard in %s, on a leg with A-law', async (format) => {
    const leg = await talking({ codec: 'PCMA' }, { input: format, output: format });
    const bytesPerMs = { pcm_8000: 16, pcm_16000: 32, pcm_24000: 48, ulaw_8000: 8 }[format] ?? 0;
    leg.frames(30, 0x10);
    expect(leg.session.audio.length).toBeGreaterThan(bytesPerMs * 300);
    leg.session.say(Buffer.alloc(bytesPerMs * 200, 0x20));
    const heard = leg.frames(15);
    expect(new Set(heard).size).toBeGreaterThan(1);
    expect(leg.session.errors).toEqual([]);
  });

  it('stops at an interruption, plays nothing of it after that, and the transcript has what the provider says was heard', async () => {
    const leg = await talking();
    leg.session.text('One two three four five.');
    const id = leg.session.say(loud(2_000, 0x33));
    leg.frames(20);
    leg.session.interrupt(id);
    leg.session.late(loud(400, 0x33), id);
    leg.frames(1);
    expect(leg.frames(10).includes(0x33)).toBe(false);
    leg.session.correct('One two three four five.', 'One two');
    leg.session.callerSaid('Stop.');
    leg.session.text('Yes?');
    leg.session.say(loud(100, 0x44));
    expect(leg.frames(10).includes(0x44)).toBe(true);
    expect(leg.requests().flatMap((request) => (request.type === 'transcript' ? (request.correction ?? []) : []))).toEqual(['One two']);
    leg.agent.close();
    expect(leg.transcript().map(({ speaker, text, interrupted }) => [speaker, text.split(' ')[0], interrupted])).toEqual([
      ['agent', 'One', true],
      ['caller', 'Stop.', undefined],
      ['agent', 'Yes?', undefined],
    ]);
  });

  it('runs tools that are set up there, and answers its pings', async () => {
    const leg = await talking();
    leg.session.ping(7);
    leg.session.call('c1', 'book', { day: 'Monday' });
    leg.session.call('c2', 'transfer_call', { to: '+15550100300' });
    leg.frames(1);
    expect(leg.session.of('pong')).toEqual([{ type: 'pong', event_id: 7 }]);
    expect(leg.requests()).toEqual([
      { type: 'tool', requestId: 'c1', name: 'book', input: { day: 'Monday' } },
      { type: 'transfer', requestId: 'c2', to: '+15550100300' },
    ]);
    leg.agent.notify({ type: 'tool-result', requestId: 'c1', result: { slot: 1 }, httpStatus: 200 });
    leg.agent.notify({ type: 'refused', requestId: 'c2', request: 'transfer', code: 'TRANSFER_NOT_ALLOWED', message: 'No.' });
    expect(leg.session.of('client_tool_result').map(({ tool_call_id: id, is_error: isError }) => [id, isError])).toEqual([
      ['c1', false],
      ['c2', true],
    ]);
    expect(leg.session.errors).toEqual([]);
  });

  it('the agent that ends the call is heard to its end; a connection that breaks is made anew with the conversation so far', async () => {
    const leg = await talking();
    leg.session.text('Good day.');
    leg.session.say(loud(100, 0x22));
    leg.frames(10);
    leg.session.callerSaid('Hello?');
    leg.frames(2);
    leg.session.close(1_011, 'duration');
    leg.clock.advance(50);
    expect(leg.sessions).toHaveLength(2);
    leg.frames(2);
    expect(leg.session.config?.conversation_config_override?.agent?.first_message).toBe('');
    expect(leg.session.of('contextual_update')[0]?.text).toContain('You: Good day.\nCaller: Hello?');
    leg.session.text('Goodbye.');
    leg.session.say(loud(400, 0x55));
    leg.session.close(1_000);
    leg.frames(5);
    expect(leg.hasHungUp()).toBe(false);
    leg.frames(40);
    expect([leg.hasHungUp(), leg.isLost()]).toEqual([true, false]);
    expect(leg.transcript().at(-1)).toEqual({ speaker: 'agent', text: 'Goodbye.', at_ms: expect.any(Number) as number });
  });

  it('takes what it does not know', async () => {
    const leg = await talking();
    leg.session.surprise();
    leg.session.text('Hi.');
    leg.session.say(loud(40, 0x66));
    expect(leg.frames(5).includes(0x66)).toBe(true);
  });
});
