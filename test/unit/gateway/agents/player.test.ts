import { describe, expect, it } from 'vitest';
import { Player } from '../../../../src/gateway/agents/player.js';
import { spokenBy, type SpokenText } from '../../../../src/gateway/agents/languages.js';
import { parseWav } from '../../../../src/gateway/agents/wav.js';
import type { SpeechText, TextToSpeech } from '../../../../src/gateway/agents/text-to-speech.js';
import type { AgentHost } from '../../../../src/gateway/media/leg-agent.js';
import type { PlayerSettings } from '../../../../src/gateway/model/agent.js';
import type { LegEvent } from '../../../../src/gateway/model/media.js';
import { silentLog } from '../../../../src/lib/log.js';
import { NO_SPEECH } from '../../../support/providers.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { turn } from '../../../support/turn.js';

const FRAME = 160;
const say = (text: string, loop = 1) => ({ kind: 'say', text, language: null, voice: null, loop }) as const;
const GATHER = { numDigits: null, finishOnKey: '#', timeoutMs: 100 } as const;

/** Speech is one frame and a half of its length as level. */
function newPlayer(clips: PlayerSettings['clips'], gather: PlayerSettings['gather'] = null, transferTo: string | null = null) {
  const events: LegEvent[] = [];
  const sent: number[] = [];
  const asked: SpokenText[] = [];
  const accounts: (string | undefined)[] = [];
  /** Whether it was waiting, each time that it wanted to speak. */
  const began: boolean[] = [];
  const host: AgentHost = {
    emit: (event) => events.push(event),
    sendDtmf: (event) => sent.push(event) > 0,
    speak: () => began.push(player.isWaiting) > 0,
    view: () => null,
  };
  const speech = {
    synthesize: (spoken: SpokenText, _guide: unknown, accountSid?: string) => {
      asked.push(spoken);
      accounts.push(accountSid);
      return Promise.resolve(new Int16Array(1.5 * FRAME).fill(spoken.text.length));
    },
  };
  const audio = {
    samplesAt: (accountSid: string) => {
      accounts.push(accountSid);
      return Promise.reject(new Error('the audio is neither WAV nor MP3'));
    },
  };
  const provided: SpeechText[] = [];
  const textToSpeech: TextToSpeech = {
    stream: () => Promise.reject(new Error('not streamed')),
    samples: (_services, text) => {
      provided.push(text);
      return text.text === 'broken' ? Promise.reject(new Error('elevenlabs answered 500')) : Promise.resolve(new Int16Array(FRAME).fill(7));
    },
  };
  const settings = { accountSid: 'AC1', clips, gather, transferTo, speech: NO_SPEECH.speech };
  const player = new Player(settings, { speech, textToSpeech, audio, clock: new VirtualClock() }, host, silentLog);
  const spoken = new Int16Array(FRAME);
  const frames = (count: number): number[] =>
    Array.from({ length: count }, () => {
      spoken.fill(0);
      player.frame(new Int16Array(FRAME), spoken);
      return spoken.filter((sample) => sample !== 0).length;
    });
  const finished = (): unknown[] => events.filter(({ type }) => type === 'agent-finished');
  return { player, events, sent, asked, accounts, provided, began, frames, finished };
}

describe('a player', () => {
  it('speaks as soon as the audio of its clip is there, and waits until then', async () => {
    const { player, began, frames } = newPlayer([say('a'), say('bb')]);
    expect(player.isWaiting).toBe(true);
    await player.connect();
    player.start();
    await turn();
    expect([began, player.isWaiting]).toEqual([[false], false]);
    expect(frames(4)).toEqual([FRAME, FRAME, FRAME, 0]);
    expect(player.isWaiting).toBe(false);
  });

  it('plays clip after clip without a gap, and finishes once', async () => {
    const { player, frames, finished, events } = newPlayer([say('a'), say('bb'), { kind: 'pause', ms: 20 }]);
    await player.connect();
    await turn();
    player.start();
    expect(frames(3)).toEqual([FRAME, FRAME, FRAME]);
    expect(finished()).toEqual([]);
    expect(frames(3)).toEqual([0, 0, 0]);
    expect(finished()).toEqual([{ type: 'agent-finished', digits: '', finishedOnKey: '' }]);
    const said = events.flatMap((event) =>
      event.type === 'agent-request' && event.request.type === 'transcript' ? event.request.entries : [],
    );
    expect(said.map(({ text }) => text)).toEqual(['a', 'bb']);
  });

  it('synthesizes the clip that it plays and the next two only', async () => {
    const { player, frames, asked, finished } = newPlayer(['a', 'b', 'c', 'd', 'e'].map((text) => say(text)));
    const texts = (): string[] => asked.map(({ text }) => text);
    await player.connect();
    await turn();
    player.start();
    expect(texts()).toEqual(['a', 'b', 'c']);
    frames(2);
    expect(texts()).toEqual(['a', 'b', 'c', 'd']);
    await turn();
    frames(3);
    await turn();
    frames(4);
    expect([texts(), finished().length]).toEqual([['a', 'b', 'c', 'd', 'e'], 1]);
  });

  it('speaks with the voice of the named provider, and by the speech program when that fails', async () => {
    const { player, frames, provided, asked, events } = newPlayer([
      { ...say('fine'), voice: 'ElevenLabs.anna', language: 'de-DE' },
      { ...say('broken'), voice: 'Deepgram.aura-2-thalia-en' },
      { ...say('plain'), voice: 'alice' },
    ]);
    await player.connect();
    await turn();
    player.start();
    expect(frames(4)).toEqual([FRAME, FRAME, FRAME, FRAME]);
    expect(provided.map(({ text, language, voice }) => [text, language, voice.provider, voice.voice])).toEqual([
      ['fine', 'de-DE', 'elevenlabs', 'anna'],
      ['broken', 'en-US', 'deepgram', 'aura-2-thalia-en'],
    ]);
    expect(asked.map(({ text }) => text).sort()).toEqual(['broken', 'plain']);
    expect(events).toContainEqual({ type: 'agent-note', kind: 'other', text: 'say: elevenlabs answered 500', isFailure: true });
  });

  it('transfers the caller at the end, and finishes when that fails', async () => {
    const { player, frames, finished, events } = newPlayer([say('a')], null, '+15550100777');
    await player.connect();
    await turn();
    player.start();
    frames(3);
    const transfers = events.filter((event) => event.type === 'agent-request' && event.request.type === 'transfer');
    expect(transfers).toEqual([
      { type: 'agent-request', request: { type: 'transfer', requestId: expect.any(String) as string, to: '+15550100777' } },
    ]);
    player.notify({ type: 'transfer-progress', requestId: 'player', state: 'accepted', status: null });
    expect(finished()).toEqual([]);
    player.notify({ type: 'transfer-progress', requestId: 'player', state: 'failed', status: 486 });
    expect(finished().length).toBe(1);
  });

  it('waits for audio that is not ready, and skips audio that it cannot get', async () => {
    const { player, frames, finished, events } = newPlayer([{ kind: 'audio', url: 'https://cdn.example/a.wav', loop: 0 }]);
    await player.connect();
    player.start();
    expect([frames(2), finished()]).toEqual([[0, 0], []]);
    await turn();
    frames(1);
    expect(finished().length).toBe(1);
    expect(events).toContainEqual({ type: 'agent-note', kind: 'other', text: 'audio: the audio is neither WAV nor MP3', isFailure: true });
  });

  it('synthesizes audio in the turn of its account', async () => {
    const { player, accounts } = newPlayer([say('a'), { kind: 'audio', url: 'https://cdn.example/a.wav', loop: 1 }]);
    await player.connect();
    expect(accounts).toEqual(['AC1', 'AC1']);
  });

  it('repeats a clip, endlessly where it is set so', async () => {
    const { player, frames, finished } = newPlayer([say('a', 0)]);
    await player.connect();
    await turn();
    player.start();
    expect(frames(50).every((samples) => samples === FRAME)).toBe(true);
    expect(finished()).toEqual([]);
  });

  it('sends digits to the caller', async () => {
    const { player, frames, sent, finished } = newPlayer([{ kind: 'digits', digits: '1w#' }]);
    await player.connect();
    await turn();
    player.start();
    frames(1);
    expect(sent).toEqual([1, 11]);
    expect(finished()).toEqual([]);
    frames(60);
    expect(finished().length).toBe(1);
  });

  it('gathers until the last digit, the finishing digit, or silence', async () => {
    const all = newPlayer([say('a')], { ...GATHER, numDigits: 2 });
    all.player.digit(4);
    all.player.digit(10);
    expect(all.finished()).toEqual([{ type: 'agent-finished', digits: '4*', finishedOnKey: '' }]);
    const key = newPlayer([], GATHER);
    key.player.digit(7);
    key.player.digit(11);
    expect(key.finished()).toEqual([{ type: 'agent-finished', digits: '7', finishedOnKey: '#' }]);
    const quiet = newPlayer([say('a', 0)], GATHER);
    await quiet.player.connect();
    await turn();
    quiet.player.start();
    quiet.frames(10);
    // The first digit ends the clip, and each one begins the wait anew.
    quiet.player.digit(1);
    expect(quiet.frames(4)).toEqual([0, 0, 0, 0]);
    quiet.player.digit(2);
    quiet.frames(4);
    expect(quiet.finished()).toEqual([]);
    quiet.frames(1);
    expect(quiet.finished()).toEqual([{ type: 'agent-finished', digits: '12', finishedOnKey: '' }]);
    quiet.player.digit(3);
    expect(quiet.finished().length).toBe(1);
  });
});

describe('the voice for a text', () => {
  it.each([
    [null, null, 'en-us'],
    ['en-GB', null, 'en-gb'],
    ['de-AT', null, 'de'],
    ['de-DE', 'woman', 'de+f3'],
    ['pt-PT', 'man', 'pt'],
    ['es-ES', null, 'es'],
    ['es-MX', 'alice', 'es-419+f3'],
    ['cmn-CN', null, 'cmn'],
    ['zh-HK', null, 'cmn'],
    ['xx', 'Polly.Joanna', 'en-us'],
    ['de-DE', 'fr+f3', 'fr+f3'],
  ])('in %s with the voice %s is %s', (language, voice, expected) => {
    expect(spokenBy('x', language, voice).voice).toBe(expected);
  });
});

describe('a WAV file', () => {
  /** @param guid of an extensible format */
  const wav = (tag: number, channels: number, bits: number, data: readonly number[], guid: readonly number[] = []): Uint8Array => {
    const format = Buffer.alloc(guid.length === 0 ? 16 : 40);
    format.writeUInt16LE(tag, 0);
    format.writeUInt16LE(channels, 2);
    format.writeUInt32LE(8_000, 4);
    format.writeUInt16LE(bits, 14);
    if (guid.length > 0) format.set([22, 0, bits, 0, 4, 0, 0, 0, ...guid], 16);
    const head = Buffer.alloc(20);
    head.write('RIFF', 0, 'latin1');
    head.write('WAVEfmt ', 8, 'latin1');
    head.writeUInt32LE(format.length, 16);
    const dataHead = Buffer.from('data\0\0\0\0', 'latin1');
    dataHead.writeUInt32LE(data.length, 4);
    return Buffer.concat([head, format, dataHead, Buffer.from(data)]);
  };
  /** KSDATAFORMAT_SUBTYPE_PCM is 00000001-0000-0010-8000-00aa00389b71. */
  const guid = (tag: number): readonly number[] => [tag, 0, ...Buffer.from('000000001000800000aa00389b71', 'hex')];

  it.each([
    ['PCM, 16 bits', wav(1, 1, 16, [0x34, 0x12, 0xff, 0xff]), [0x1234, -1]],
    ['PCM, 8 bits', wav(1, 1, 8, [128, 255, 0]), [0, 127 << 8, -32_768]],
    ['two channels', wav(1, 2, 16, [0x02, 0, 0x04, 0, 0x10, 0, 0x20, 0]), [3, 24]],
    ['µ-law', wav(7, 1, 8, [0xff, 0x80, 0x00]), [0, 32_124, -32_124]],
    ['A-law', wav(6, 1, 8, [0xd5]), [8]],
    ['PCM, 24 bits', wav(1, 1, 24, [0x99, 0x34, 0x12, 0, 0xff, 0xff]), [0x1234, -1]],
    ['PCM, 32 bits', wav(1, 1, 32, [0x99, 0x99, 0x34, 0x12]), [0x1234]],
    ['PCM, with an extensible format', wav(0xfffe, 1, 16, [0x34, 0x12], guid(1)), [0x1234]],
    ['PCM of 24 bits, with an extensible format', wav(0xfffe, 1, 24, [0x99, 0x34, 0x12], guid(1)), [0x1234]],
    ['µ-law, with an extensible format', wav(0xfffe, 1, 8, [0x80], guid(7)), [32_124]],
  ])('in the form %s is read', (_what, bytes, expected) => {
    const read = parseWav(bytes);
    expect(read.ok && [...read.value.samples]).toEqual(expected);
  });

  it.each([
    wav(3, 1, 32, [0, 0, 0, 0]),
    wav(1, 3, 16, [0, 0]),
    wav(7, 1, 16, [0]),
    wav(0xfffe, 1, 32, [0, 0, 0, 0], guid(3)),
    wav(0xfffe, 1, 16, [0, 0], [...guid(1).slice(0, -1), 0]),
    wav(0xfffe, 1, 16, [0, 0]),
  ])('in another form is refused: %#', (bytes) => {
    expect(parseWav(bytes)).toEqual({ ok: false, error: 'unsupported-format' });
  });
});
