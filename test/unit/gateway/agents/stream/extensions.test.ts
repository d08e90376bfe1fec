import { audioPacket } from '../../../../support/audio-packet.js';
import { describe, expect, it } from 'vitest';
import { markNames, media, openStream, SILENCE } from '../../../../support/agent/stream-leg.js';

describe('voice activity', () => {
  const configured = async (configure: object) => {
    const opened = openStream();
    await opened.talk();
    opened.bot.says({ event: 'configure', configure });
    let timestamp = 0;
    const caller = (frames: number, byte: number): void => {
      for (let i = 0; i < frames; i += 1) {
        opened.agent.hear(audioPacket('PCMU', 1, timestamp, Buffer.alloc(160, byte), 0, 160, opened.clock.nowMs()));
        timestamp += 160;
        opened.frames(1);
      }
    };
    return { ...opened, caller };
  };
  const LOUD = 0x80;

  it('is reported to an agent that asked for it, with the times of the first word and of the end of the last', async () => {
    const { bot, caller } = await configured({ speech_events: true, end_of_speech_ms: 200 });
    caller(50, SILENCE);
    caller(50, LOUD);
    caller(50, SILENCE);
    expect(bot.of('speech_started', 'speech_stopped').map(({ event, speech }) => [event, speech])).toEqual([
      ['speech_started', { timestamp: '1000' }],
      ['speech_stopped', { timestamp: '2000' }],
    ]);
  });

  it('clears the queue on barge-in and returns the marks, without a report where only that was asked for', async () => {
    const { bot, caller, said } = await configured({ barge_in: true });
    bot.says(media(Buffer.alloc(160_000, 1)));
    bot.says({ event: 'mark', mark: { name: 'said' } });
    caller(4, LOUD);
    expect(markNames(bot)).toEqual([]);
    caller(3, LOUD);
    expect(markNames(bot)).toEqual(['said']);
    expect(said.at(-1)).toEqual(Buffer.alloc(160, SILENCE));
    expect(bot.of('speech_started', 'speech_stopped')).toEqual([]);
  });

  it('uses the agent’s own threshold, and can be switched off again', async () => {
    const { bot, caller } = await configured({ speech_events: true });
    caller(10, LOUD);
    caller(5, SILENCE);
    expect(bot.of('speech_stopped')).toHaveLength(1);
    bot.says({ event: 'configure', configure: { speech_events: false } });
    caller(50, LOUD);
    expect(bot.of('speech_started')).toHaveLength(1);
  });
});

describe('an extension of Media Streams', () => {
  it('by hangup waits until the queue was played and heard, or not', async () => {
    const { bot, asked, talk, frames } = openStream();
    await talk();
    bot.says(media(Buffer.alloc(1_600, 1)));
    bot.says({ event: 'hangup' });
    frames(10 + 9);
    expect(asked).toEqual([]);
    frames(1);
    expect(asked).toEqual([{ type: 'agent-hangup' }]);
    bot.says({ event: 'hangup', hangup: { after: 'now' } });
    expect(asked).toHaveLength(2);
  });

  it('by hangup gives the BYE headers that the number allows, and is refused with others', async () => {
    const { bot, asked, talk } = openStream({ settings: { headersFromAgent: ['X-*'] } });
    await talk();
    const hangUp = (sip_headers: object): void => bot.says({ event: 'hangup', hangup: { after: 'now', sip_headers } });
    hangUp({ Subject: 'x' });
    hangUp({ 'X-A': 'a\r\nVia: b' });
    expect(bot.of('error')).toMatchObject([
      { error: { request: 'hangup', code: 'SIP_HEADER_NOT_ALLOWED' } },
      { error: { request: 'hangup', code: 'BAD_MESSAGE' } },
    ]);
    expect(asked).toEqual([]);
    hangUp({ 'X-A': 'a' });
    expect(asked).toEqual([{ type: 'agent-hangup', sipHeaders: { 'X-A': 'a' } }]);
  });

  it('by dtmf sends digits to the caller, and is refused with too many', async () => {
    const { bot, pressed, talk } = openStream();
    await talk();
    bot.says({ event: 'dtmf', dtmf: { digits: '1*d', duration_ms: 100 } });
    expect(pressed).toEqual([
      [1, 100],
      [10, 100],
      [15, 100],
    ]);
    bot.says({ event: 'dtmf', dtmf: { digits: '123' } });
    expect(bot.of('error')).toMatchObject([{ error: { request: 'dtmf', code: 'DTMF_NOT_SENT' } }]);
  });

  it('by transfer, transcript, analysis or tool goes to the call, whose answers come back', async () => {
    const { agent, bot, asked, clock, talk } = openStream();
    await talk();
    clock.advance(1_234);
    bot.says({ event: 'transfer', transfer: { id: 't', to: '+15550009999' } });
    bot.says({
      event: 'transcript',
      transcript: {
        entries: [
          { speaker: 'agent', text: 'Hi' },
          { speaker: 'caller', text: 'Hello', at_ms: 5 },
        ],
      },
    });
    bot.says({ event: 'analysis', analysis: { data: { email: 'a@example.com' } } });
    bot.says({ event: 'tool', tool: { id: '1', name: 'weather', input: { city: 'Paris' } } });
    expect(asked.map((event) => (event.type === 'agent-request' ? event.request : event))).toEqual([
      { type: 'transfer', requestId: 't', to: '+15550009999' },
      {
        type: 'transcript',
        entries: [
          { speaker: 'agent', text: 'Hi', at_ms: 1_234 },
          { speaker: 'caller', text: 'Hello', at_ms: 5 },
        ],
      },
      { type: 'analysis', requestId: null, analysis: { email: 'a@example.com' } },
      { type: 'tool', requestId: '1', name: 'weather', input: { city: 'Paris' } },
    ]);
    agent.notify({ type: 'tool-result', requestId: '1', result: { sky: 'blue' }, httpStatus: 200 });
    agent.notify({ type: 'transfer-progress', requestId: 't', state: 'failed', status: 486 });
    agent.notify({ type: 'refused', requestId: null, request: 'analysis', code: 'ANALYSIS_UNKNOWN', message: 'no' });
    expect(bot.messages.slice(2)).toMatchObject([
      { event: 'tool_result', tool: { id: '1', result: { sky: 'blue' }, httpStatus: 200 } },
      { event: 'transfer', transfer: { id: 't', state: 'failed', status: 486 } },
      { event: 'error', error: { request: 'analysis', id: null, code: 'ANALYSIS_UNKNOWN' } },
    ]);
  });

  it('that cannot be read is refused with the cause', async () => {
    const { bot, talk } = openStream();
    await talk();
    bot.says({ event: 'dtmf', dtmf: { digits: 'xyz' } });
    bot.says({ event: 'configure', configure: { barge: true } });
    expect(bot.of('error')).toMatchObject([
      { error: { request: 'dtmf', code: 'BAD_MESSAGE', message: expect.stringContaining('dtmf.digits') as string } },
      { error: { request: 'configure', code: 'BAD_MESSAGE' } },
    ]);
  });
});

it('may have null for a field that it omits, and the nulls in its data are its own', async () => {
  const { asked, bot, notes, talk } = openStream();
  await talk();
  bot.says({ event: 'configure', streamSid: null, configure: { speech_events: null, barge_in: true } });
  bot.says({ event: 'transcript', transcript: { entries: [{ speaker: 'agent', text: 'Hello.', at_ms: null }] } });
  bot.says({ event: 'analysis', analysis: { id: null, data: { email: null } } });
  bot.says({ event: 'tool', tool: { id: 't', name: 'book', input: { day: null } } });
  bot.says({ event: 'hangup', hangup: null });
  expect(notes.filter((note) => note.includes('ignored'))).toEqual([]);
  expect(asked.map((event) => (event.type === 'agent-request' ? event.request : event))).toMatchObject([
    { type: 'transcript', entries: [{ text: 'Hello.', at_ms: 0 }] },
    { type: 'analysis', requestId: null, analysis: { email: null } },
    { type: 'tool', requestId: 't', input: { day: null } },
  ]);
  bot.says({ event: 'mark', mark: { name: null } });
  expect(notes.filter((note) => note.includes('ignored'))).toHaveLength(1);
});
