import { alaw, mulaw } from 'alawmulaw';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AudioCodec } from '../../../src/rtp/codec/g711.js';
import { findPhrase } from '../../../src/loadtest/test-caller/correlation.js';
import { AgentSite } from '../../support/agent/agent-site.js';
import { World } from '../world.js';

// Raw formats: binary messages in both directions, JSON beside them.

let site: AgentSite<World>;

/** A tone that rises or falls, so low that half a sample of 8 kHz, by which a filter is late, changes little. */
const sweep = (samples: number, fromHz: number, toHz: number): Int16Array =>
  Int16Array.from(
    { length: samples },
    (_, n) => 8_000 * Math.sin((2 * Math.PI * n * (fromHz + ((toHz - fromHz) * n) / (2 * samples))) / 8_000),
  );
const SPEECH = sweep(4_000, 150, 500);
const ANSWER = sweep(4_800, 520, 180);

beforeAll(async () => {
  site = await AgentSite.startOn((all) => World.start(all));
});
afterAll(() => site.stop());

const bytesOf = (samples: Int16Array): Buffer => Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);

function samplesOf(bytes: Buffer): Int16Array {
  return Int16Array.from({ length: bytes.length >> 1 }, (_, index) => bytes.readInt16LE(2 * index));
}

/** Each sample twice: enough of 16 kHz for what lies below 4 kHz, whose images the product filters away. */
const doubled = (samples: Int16Array): Int16Array => Int16Array.from({ length: 2 * samples.length }, (_, n) => samples[n >> 1] ?? 0);
/** Every second sample is one of the caller's, the others lie between. */
const halved = (samples: Int16Array): Int16Array => samples.filter((_, n) => n % 2 === 1);

interface Wire {
  readonly encoding: string;
  readonly rate: number;
  readonly frameBytes: number;
  readonly encode: (samples: Int16Array) => Buffer;
  readonly decode: (bytes: Buffer) => Int16Array;
}

const WIRES: Readonly<Record<string, Wire>> = {
  pcmu: {
    encoding: 'audio/x-mulaw',
    rate: 8_000,
    frameBytes: 160,
    encode: (s) => Buffer.from(mulaw.encode(s)),
    decode: (b) => mulaw.decode(b),
  },
  pcma: {
    encoding: 'audio/x-alaw',
    rate: 8_000,
    frameBytes: 160,
    encode: (s) => Buffer.from(alaw.encode(s)),
    decode: (b) => alaw.decode(b),
  },
  'pcm16-8000': { encoding: 'audio/l16', rate: 8_000, frameBytes: 320, encode: bytesOf, decode: samplesOf },
  'pcm16-16000': {
    encoding: 'audio/l16',
    rate: 16_000,
    frameBytes: 640,
    encode: (s) => bytesOf(doubled(s)),
    decode: (b) => halved(samplesOf(b)),
  },
};

describe('a bot with binary messages', () => {
  it.each<[string, AudioCodec]>([
    ['pcmu', 'PCMA'],
    ['pcma', 'PCMU'],
    ['pcm16-8000', 'PCMU'],
    ['pcm16-16000', 'PCMA'],
  ])('of %s hears a caller with %s, and the caller hears the bot', async (format, codec) => {
    const wire = WIRES[format]!;
    const number = await site.numberOf({ stream: { url: site.bot.url, format } });
    const call = await site.talking({ number, codec });
    const { bot, end } = call;
    const { start } = bot.start as unknown as { start: { mediaFormat: object } };
    expect(start.mediaFormat).toEqual({ encoding: wire.encoding, sampleRate: wire.rate, channels: 1 });
    const said = wire.encode(ANSWER);
    // In pieces that keep to no frame; samples stay whole.
    for (let at = 0; at < said.length; at += 1_000) bot.socket.send(said.subarray(at, at + 1_000));
    bot.send({ event: 'mark', mark: { name: 'said' } });
    const score = (): number => findPhrase(wire.decode(Buffer.concat(bot.binary.all)), SPEECH)?.score ?? 0;
    await end.peer.speak(SPEECH);
    await site.gateway.until(() => score() > 0.98);
    await bot.message('mark');
    await site.gateway.until(() => (findPhrase(end.peer.said, ANSWER)?.score ?? 0) > 0.98);
    expect(new Set(bot.binary.all.map(({ length }) => length))).toEqual(new Set([wire.frameBytes]));
    expect(bot.of('media')).toEqual([]);
    await call.hangUp();
  });
});
