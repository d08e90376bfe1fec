import fc from 'fast-check';
import { Client } from 'rtpengine-client';
import { expect, it } from 'vitest';
import { bencode } from '../../../../src/gateway/relay/bencode.js';
import { offerCommand } from '../../../../src/gateway/relay/flags.js';

const COOKIE = 'c'.repeat(36);
const decoded = (value: object): unknown => Client.decodeMessage(Buffer.from(`${COOKIE} ${bencode(value)}`)).data;

it('writes an offer that the codec of rtpengine-client reads', () => {
  const offer = offerCommand(
    { callId: 'trunkline-1', offerer: 'carrier', sdp: 'v=0\r\ns=Größe\r\n', endsSrtp: true },
    { interfaces: { outside: 'out', inside: 'in' }, isSecure: false },
  );
  expect(decoded(offer)).toEqual(offer);
});

it('writes what the codec of rtpengine-client reads, of any text and number', () => {
  const text = fc.string({ unit: 'grapheme' });
  const value = fc.oneof(text, fc.integer(), fc.array(text), fc.dictionary(fc.stringMatching(/^[a-z-]{1,20}$/), text));
  fc.assert(
    fc.property(fc.dictionary(fc.stringMatching(/^[a-z-]{1,20}$/), value), (command) => {
      expect(decoded(command)).toEqual({ ...command });
    }),
  );
});
