import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { SpokenText } from '../../../../src/gateway/agents/languages.js';
import { EspeakSpeech, SpeechError, type Speech } from '../../../../src/gateway/agents/speech.js';
import { TestLine } from '../../../../src/gateway/agents/test-line.js';
import type { TestLineSettings, TranscriptEntry } from '../../../../src/gateway/model/agent.js';
import type { LegEvent } from '../../../../src/gateway/model/media.js';
import { silentLog, type Log } from '../../../../src/lib/log.js';
import type { AgentHost, LegView } from '../../../../src/gateway/media/leg-agent.js';
import { MediaLeg } from '../../../../src/gateway/media/leg.js';
import { SampleLegAgent } from '../../../../src/gateway/media/sample-leg-agent.js';
import { SlotClock } from '../../../../src/gateway/media/slot-clock.js';
import { rtpPacket, telephoneEvent } from '../../../support/media/packets.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const SETTINGS: TestLineSettings = { accountSid: 'AC1', firstSentence: 'Welcome.', language: 'ENG', voice: null, pronunciationGuide: [] };

const VIEW: LegView = {
  figures: {
    packetsSent: 0,
    packetsReceived: 990,
    packetsLost: 10,
    jitterMs: 2.2,
    roundTripMs: 60,
    firstAudioMs: 0,
    digitsReceived: 1,
    framesLate: 0,
    agentAudioMs: null,
    turnDelaysMs: [],
    samples: [],
  },
  codec: 'PCMU',
  carrierSuite: 'AES_CM_128_HMAC_SHA1_80',
  bufferedMs: 60,
};

/** Speech of ten frames for every text, which is loud. */
class StubSpeech implements Speech {
  readonly asked: SpokenText[] = [];
  isBroken = false;

  synthesize(spoken: SpokenText, _guide: unknown, accountSid?: string): Promise<Int16Array> {
    expect(accountSid).toBe('AC1');
    this.asked.push(spoken);
    return this.isBroken ? Promise.reject(new SpeechError('engine-failed')) : Promise.resolve(new Int16Array(1_600).fill(9_000));
  }
}

function newLine(settings: Partial<TestLineSettings> = {}, view: LegView | null = VIEW) {
  const clock = new VirtualClock();
  const speech = new StubSpeech();
  const events: LegEvent[] = [];
  const warnings: { readonly fields: object; readonly event: string }[] = [];
  const log: Log = { ...silentLog, warn: (fields, event) => warnings.push({ fields, event }) };
  const host: AgentHost = { emit: (event) => events.push(event), sendDtmf: () => false, speak: () => true, view: () => view };
  const line = new TestLine({ ...SETTINGS, ...settings }, speech, host, log, clock);
  const spoken = new Int16Array(160);
  /** Frames in real order: one, then whatever promises were waiting for. */
  const frames = async (count: number, heard = new Int16Array(160)): Promise<void> => {
    for (let i = 0; i < count; i += 1) {
      await clock.advanceAsync(20);
      line.frame(heard, spoken);
    }
  };
  const transcript = (): TranscriptEntry[] =>
    events.flatMap((event) => (event.type === 'agent-request' && event.request.type === 'transcript' ? event.request.entries : []));
  return { clock, line, speech, events, warnings, frames, transcript, spoken };
}

describe('the test line', () => {
  it('transcribes what it says as it begins, and the digits pressed, with the time since the start', async () => {
    const { clock, line, frames, transcript, events } = newLine();
    await clock.advanceAsync(5_000);
    line.start();
    await frames(30);
    line.digit(1);
    await frames(30);
    line.digit(11);
    await frames(40);
    expect(transcript()).toEqual([
      { speaker: 'agent', text: 'Welcome.', at_ms: 20 },
      { speaker: 'caller', text: '1', at_ms: 600 },
      { speaker: 'agent', text: 'You pressed one.', at_ms: 620 },
      { speaker: 'caller', text: '#', at_ms: 1_200 },
      { speaker: 'agent', text: 'Goodbye.', at_ms: 1_220 },
    ]);
    expect(events.filter(({ type }) => type === 'agent-hangup')).toHaveLength(1);
  });

  it('does not transcribe what was interrupted before it was heard, nor what could not be spoken', async () => {
    const { line, speech, frames, transcript, warnings } = newLine();
    line.start();
    line.digit(2);
    await frames(30);
    speech.isBroken = true;
    line.digit(3);
    await frames(30);
    expect(transcript().map(({ text }) => text)).toEqual(['2', 'You pressed two.', '3']);
    expect(warnings).toHaveLength(1);
  });

  it('transcribes a digit before the start at 0 ms', async () => {
    const { clock, line, transcript } = newLine();
    await clock.advanceAsync(500);
    line.digit(4);
    expect(transcript()).toEqual([{ speaker: 'caller', text: '4', at_ms: 0 }]);
  });

  it('speaks the figures of the call on *, then echoes again', async () => {
    const { line, frames, transcript, spoken } = newLine();
    line.start();
    await frames(100);
    line.digit(10);
    await frames(30);
    // R of 1 % loss and 60 / 2 + 60 + 10 ms: 93.2 - 3.64 - 2.4.
    expect(transcript().at(-1)!.text).toBe(
      'Here are the figures of this call. Packets lost: 1 percent, jitter: 2 milliseconds, voice quality: 4.3 out of 5, codec: P C M U, cipher: AES 128, the echo takes 70 milliseconds.',
    );
    await frames(1, new Int16Array(160).fill(77));
    expect(spoken).toEqual(new Int16Array(160).fill(77));
  });

  it('reads * back where there is no leg to report on', async () => {
    const { line, frames, transcript } = newLine({}, null);
    line.start();
    line.digit(10);
    await frames(5);
    expect(transcript().at(-1)!.text).toBe('You pressed star.');
  });

  it('speaks with the configured voice, but words of another language with a voice of that one', async () => {
    const { line, frames, speech, warnings } = newLine({ language: 'JPN', voice: 'ja+f3', firstSentence: 'もしもし。' });
    line.start();
    await frames(25);
    expect(speech.asked[0]).toEqual({ text: 'もしもし。', language: 'JPN', voice: 'ja+f3' });
    expect(speech.asked.find(({ text }) => text === 'Goodbye.')).toEqual({ text: 'Goodbye.', language: 'ENG' });
    expect(warnings).toEqual([]);
  });

  it('synthesizes the answers to digits only after half a second, so a call that ends before costs its greeting alone', async () => {
    const { line, frames, speech } = newLine();
    line.start();
    await frames(24);
    expect(speech.asked).toHaveLength(1);
    await frames(1);
    expect(speech.asked).toHaveLength(12);
  });

  it('uses the language’s own voice for an unknown one, with one warning', async () => {
    const { line, speech, warnings, frames } = newLine({ voice: 'robot' });
    line.start();
    line.digit(1);
    await frames(20);
    expect(speech.asked.every(({ voice }) => voice === undefined)).toBe(true);
    expect(warnings).toEqual([{ fields: { voice: 'robot', hint: "the language's own voice speaks" }, event: 'agent.voice.unknown' }]);
  });

  it('speaks nothing more once it is closed', async () => {
    const { line, frames, events } = newLine();
    line.start();
    await frames(1);
    line.close();
    const before = events.length;
    line.digit(11);
    await frames(20);
    expect(events).toHaveLength(before);
  });
});

describe('the test line on a leg', () => {
  it.each([0, 3, 9, 16])('echoes with the delay that it states, packets arriving %i ms into a frame', async (phaseMs) => {
    const clock = new VirtualClock();
    const events: LegEvent[] = [];
    const sent: { readonly atMs: number; readonly value: number }[] = [];
    let isEcho = false;
    const host: AgentHost = { emit: (event) => events.push(event), sendDtmf: () => false, speak: () => true, view: () => leg.view() };
    const agent = new SampleLegAgent(new TestLine(SETTINGS, new StubSpeech(), host, silentLog, clock));
    const leg = new MediaLeg(
      { codec: 'PCMU', payloadType: 0, telephoneEventPayloadType: 101, srtp: null, carrierSuite: null },
      {
        clock,
        random32: () => 1,
        transport: {
          sendRtp: (buffer, length) => {
            if (isEcho && length === 172) sent.push({ atMs: clock.nowMs(), value: buffer[20]! });
          },
          sendRtcp: () => undefined,
        },
        mediaTimeoutMs: 60_000,
        onEvent: () => undefined,
        agent: () => agent,
      },
    );
    new SlotClock(clock).add(leg);
    leg.start();
    await clock.advanceAsync(phaseMs);
    const arrivedMs = new Map<number, number>();
    const packet = (i: number) => rtpPacket({ sequenceNumber: i, rtpTimestamp: i * 160, payload: Buffer.alloc(160, i % 120) });
    for (let i = 0; i < 300; i += 1) {
      isEcho = i > 200;
      arrivedMs.set(i % 120, clock.nowMs());
      const delays = sent.splice(0).map(({ atMs, value }) => atMs - (arrivedMs.get(value) ?? Infinity));
      for (const delay of delays) expect(delay).toBe(delays[0]);
      leg.receiveRtp(packet(i));
      await clock.advanceAsync(20);
    }
    const delayMs = sent.map(({ atMs, value }) => atMs - arrivedMs.get(value)!)[0]!;
    // A key in place of audio for 100 ms.
    for (let i = 300; i < 305; i += 1) {
      leg.receiveRtp(rtpPacket({ sequenceNumber: i, rtpTimestamp: 48_000, payloadType: 101, payload: telephoneEvent(10, 800, i === 304) }));
      await clock.advanceAsync(20);
    }
    await clock.advanceAsync(100);
    const said = events.findLast((event) => event.type === 'agent-request');
    const text = said?.type === 'agent-request' && said.request.type === 'transcript' ? said.request.entries[0]!.text : '';
    const saidMs = Number(/the echo takes (\d+) milliseconds/.exec(text)![1]);
    expect(Math.abs(saidMs - delayMs)).toBeLessThanOrEqual(10);
  });
});

describe('two test lines', () => {
  const directory = mkdtempSync(join(tmpdir(), 'test-line-'));
  afterAll(() => rmSync(directory, { recursive: true }));

  it('have each phrase synthesized once for both, and once more for another voice', async () => {
    const count = join(directory, 'count');
    const command = join(directory, 'counted');
    writeFileSync(count, '');
    writeFileSync(command, `#!/bin/sh\necho x >> ${count}; exec espeak-ng "$@"\n`);
    chmodSync(command, 0o755);
    const speech = new EspeakSpeech({ command });
    const host: AgentHost = { emit: () => undefined, sendDtmf: () => false, speak: () => true, view: () => null };
    const synthesized = async (voice: string | null): Promise<number> => {
      const line = new TestLine({ ...SETTINGS, voice }, speech, host, silentLog, new VirtualClock());
      await line.connect();
      line.start();
      const frame = new Int16Array(160);
      for (let frames = 0; frames < 25; frames += 1) line.frame(frame, frame);
      // The last that it prepares: all others are done then, two at a time and in order.
      await Promise.all(
        ['Goodbye.', 'Welcome.', 'You pressed nine.'].map((text) =>
          speech.synthesize(voice === null ? { text, language: 'ENG' } : { text, language: 'ENG', voice }, [], SETTINGS.accountSid),
        ),
      );
      return readFileSync(count, 'utf8').length / 2;
    };
    expect(await synthesized(null)).toBe(12);
    expect(await synthesized(null)).toBe(12);
    expect(await synthesized('en-gb')).toBe(24);
  });
});
