import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MediaReader } from '../../../../../src/gateway/agents/stream/media-message.js';
import { MessageWriter } from '../../../../../src/gateway/agents/stream/messages.js';
import { STREAM } from '../../../../support/agent/stream-leg.js';

const SID = `MZ${'0'.repeat(32)}`;
const FRAME = Buffer.from(Uint8Array.from({ length: 160 }, (_, i) => (i * 37) & 0xff));

function written(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes).toString());
}

describe('a media message that the gateway writes', () => {
  it('has its frame, and consecutive numbers of any length', () => {
    const writer = new MessageWriter(SID, STREAM);
    writer.start({});
    for (let chunk = 1; chunk <= 1_200; chunk += 1) {
      const message = written(writer.media(Buffer.concat([Buffer.alloc(12), FRAME]), 12, (chunk - 1) * 20));
      if (chunk % 50 === 2) writer.mark('between');
      const sequenceNumber = String(1 + chunk + Math.floor((chunk + 47) / 50));
      const media = { track: 'inbound', chunk: String(chunk), timestamp: String((chunk - 1) * 20), payload: FRAME.toString('base64') };
      expect(message).toEqual({ event: 'media', sequenceNumber, media, streamSid: SID });
    }
  });

  it('counts each track by itself', () => {
    const writer = new MessageWriter(SID, STREAM, ['inbound', 'outbound']);
    const tracks = (['inbound', 'outbound', 'outbound'] as const).map((track) => written(writer.media(FRAME, 0, 0, track)));
    expect(tracks).toMatchObject([
      { sequenceNumber: '1', media: { track: 'inbound', chunk: '1' } },
      { sequenceNumber: '2', media: { track: 'outbound', chunk: '1' } },
      { sequenceNumber: '3', media: { track: 'outbound', chunk: '2' } },
    ]);
  });

  it('has any frame in base64', () => {
    const writer = new MessageWriter(SID, STREAM);
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 160, maxLength: 160 }), (frame) => {
        expect(written(writer.media(frame, 0, 0))).toMatchObject({ media: { payload: Buffer.from(frame).toString('base64') } });
      }),
    );
  });
});

describe('a media message of an agent', () => {
  const message = (payload: string): string => JSON.stringify({ event: 'media', streamSid: SID, media: { payload } });

  function reads(reader: MediaReader, text: string): Buffer | null {
    const bytes = Buffer.from(`{"${text}`);
    const audio = reader.read(bytes, 2, bytes.length);
    return audio === null ? null : Buffer.from(audio);
  }

  function taught(text: string, payload: string): MediaReader {
    const reader = new MediaReader();
    reader.learn(text, payload);
    return reader;
  }

  it('is parsed whole until one was learnt', () => {
    expect(reads(new MediaReader(), message('AAAA'))).toBeNull();
  });

  it('that is written like the learnt one is read from its bytes', () => {
    const reader = taught(message('AAAA'), 'AAAA');
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 400 }), (audio) => {
        expect(reads(reader, message(Buffer.from(audio).toString('base64')))).toEqual(Buffer.from(audio));
      }),
    );
  });

  it.each([
    ['another event', message('AAAA').replace('media', 'marks')],
    ['another member', message('AAAA').replace('{"payload"', '{"track":"x","payload"')],
    ['more behind it', `${message('AAAA')} `],
    ['no payload', message('')],
    ['a payload that is not base64', message('AA*A')],
    ['a payload without its padding', message('AAAAAA')],
    ['a quote in the payload', message('AAAA","x":"A')],
    ['padding within the payload', message('AA==AAAA')],
    ['only padding', message('====')],
  ])('with %s is parsed whole', (_name, text) => {
    expect(reads(taught(message('BBBB'), 'BBBB'), text)).toBeNull();
  });

  it.each([
    ['is elsewhere, too', '{"event":"media","name":"AAAA","media":{"payload":"AAAA"}}'],
    ['occurs twice', '{"event":"media","media":{"payload":"AAAA"},"media":{"payload":"AAAA"}}'],
  ])('whose payload %s is not learnt', (_name, text) => {
    const reader = taught(text, 'AAAA');
    expect(reads(reader, text)).toBeNull();
    expect(reads(reader, text.replace('AAAA', 'BBBB'))).toBeNull();
  });

  it('of a bot that writes each differently is not learnt again and again', () => {
    const reader = new MediaReader();
    const numbered = (number: number): string => message('AAAA').replace('{"event"', `{"number":${String(number)},"event"`);
    for (let number = 1; number <= 10; number += 1) reader.learn(numbered(number), 'AAAA');
    expect([3, 10].map((number) => reads(reader, numbered(number)))).toEqual([Buffer.alloc(3), null]);
  });
});
