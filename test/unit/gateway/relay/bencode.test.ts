import fc from 'fast-check';
import BaseClient from 'rtpengine-client/lib/BaseClient.js';
import { describe, expect, it } from 'vitest';
import { bdecode, bencode } from '../../../../src/gateway/relay/bencode.js';
import { offerCommand } from '../../../../src/gateway/relay/flags.js';

const COOKIE = 'c'.repeat(36);
const theirs = (text: string): unknown => BaseClient.decodeMessage(Buffer.from(`${COOKIE} ${text}`)).data;
const read = (text: string): unknown => bdecode(Buffer.from(`${COOKIE} ${text}`), COOKIE.length + 1);

const text = fc.string({ unit: 'grapheme' });
const value = fc.oneof(text, fc.integer(), fc.array(text), fc.dictionary(fc.stringMatching(/^[a-z-]{1,20}$/), text));
const command = fc.dictionary(fc.stringMatching(/^[a-z-]{1,20}$/), value);

describe('bencode', () => {
  it('writes an offer that the codec of rtpengine-client reads', () => {
    const offer = offerCommand(
      { callId: 'trunkline-1', offerer: 'carrier', sdp: 'v=0\r\ns=Größe\r\n', endsSrtp: true },
      { interfaces: { outside: 'out', inside: 'in' }, isSecure: false },
    );
    expect(theirs(bencode(offer))).toEqual(offer);
  });

  it('writes what the codec of rtpengine-client reads, of any text and number', () => {
    fc.assert(
      fc.property(command, (given) => {
        expect(theirs(bencode(given))).toEqual({ ...given });
      }),
    );
  });
});

describe('bdecode', () => {
  it('reads what it writes', () => {
    fc.assert(
      fc.property(command, (given) => {
        expect(read(bencode(given))).toEqual({ ...given });
      }),
    );
  });

  it('reads the figures of a call as the codec of rtpengine-client does', () => {
    const reply =
      'd7:createdi1700000000e4:SSRCd9:100000001d15:cumulative lossi0eee4:tagsd7:carrierd6:mediasld7:streamsldeeeeee6:result2:oke';
    expect(read(reply)).toEqual(theirs(reply));
    expect(read(reply)).toMatchObject({ result: 'ok', tags: { carrier: { medias: [{ streams: [{}] }] } } });
  });

  it.each([
    ['nothing', ''],
    ['a string alone', '2:ok'],
    ['a list', 'l2:oke'],
    ['bytes behind it', 'd6:result2:okex'],
    ['no end', 'd6:result2:ok'],
    ['a string that is longer than the datagram', 'd6:result20:oke'],
    ['a negative length', 'd6:result-2:oke'],
    ['a length that is not a number', 'd6:resultx:oke'],
    ['a number without an end', 'd6:resulti5'],
    ['a nesting of a thousand lists', `d1:x${'l'.repeat(1_000)}${'e'.repeat(1_001)}`],
  ])('refuses %s', (_what, given) => {
    expect(() => read(given)).toThrow(Error);
  });

  it('treats a name such as __proto__ as nothing but a name', () => {
    expect(Object.keys(read('d9:__proto__d1:x1:yee') as object)).toEqual(['__proto__']);
    expect(({} as { x?: string }).x).toBeUndefined();
  });
});
