import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAppMessage } from '../../src/sip-server/app-message.js';
import { FrameDecoder, parseCommand } from '../../src/sip-server/control-protocol.js';
import { sessionDescription, sessionTimerHeaders } from '../../src/gateway/call/invite.js';
import { calledNumber } from '../../src/gateway/admission/parties.js';
import { chooseCrypto, readAnswer, readOffer, readRelaySdp } from '../../src/gateway/sdp/sdp-read.js';
import { canonicalSdp, OWN_OFFER } from '../../src/gateway/sdp/sdp-write.js';
import type { MediaEncryption } from '../../src/gateway/model/records.js';
import { readCoreHeaders, parseVia } from '../../src/sip/message/core-headers.js';
import { splitList, serialize } from '../../src/sip/message/message.js';
import { parseNameAddr, tagOf, parseSipUri } from '../../src/sip/message/uri.js';
import { parseMessage } from '../../src/sip/message/parse.js';
import { StreamFramer } from '../../src/sip/message/stream-framer.js';
import { corpus } from '../support/corpus.js';
import { offerSdp } from '../support/sdp.js';

const LIMITS = { maxHeaders: 100, maxHeaderBytes: 8_000, maxHeadBytes: 65_536, maxBodyBytes: 65_536 };
// `FUZZ_RUNS=100000` makes more of them.
const numRuns = Number(process.env['FUZZ_RUNS'] ?? 1_000);
const RUNS = { numRuns };

const INVITE = [
  'INVITE sip:+15550100100@gw.example.com;user=phone SIP/2.0',
  'Via: SIP/2.0/TLS 192.0.2.1:5061;branch=z9hG4bK1;rport, SIP/2.0/UDP [2001:db8::1];branch=z9hG4bK2',
  'Max-Forwards: 70',
  'From: "A \\"quoted\\" name" <sip:a@b;x=y>;tag=1',
  'To: <sip:c@d>',
  'Call-ID: a84b4c76e66710@pc33.example.com',
  'CSeq: 314159 INVITE',
  'Contact: <sip:a@192.0.2.1;transport=tls>',
  'Content-Type: application/sdp',
  'Content-Length: 5',
  '',
  'v=0\r\n',
].join('\r\n');

const bytes = fc.uint8Array({ maxLength: 600 }).map((data) => Buffer.from(data).toString('latin1'));
/** A good text with a few bytes changed, dropped or put in. */
const mutated = (text: string): fc.Arbitrary<string> =>
  fc
    .array(fc.tuple(fc.nat(text.length), fc.nat(4), fc.string({ minLength: 0, maxLength: 6, unit: 'binary-ascii' })), {
      minLength: 1,
      maxLength: 6,
    })
    .map((edits) =>
      edits.reduce((current, [at, dropped, inserted]) => current.slice(0, at) + inserted + current.slice(at + dropped), text),
    );
const hostile = (text: string): fc.Arbitrary<string> => fc.oneof(mutated(text), bytes);

/** Limits that a stream of a few messages may pass. */
const SMALL = { maxHeadBytes: 560, maxBodyBytes: 40 };
const hostileStream = fc
  .array(
    fc.oneof(fc.constant(INVITE), fc.constantFrom('\r\n', '\r\n\r\n', '\r'), fc.constant(INVITE.replace('Content-Length: 5', 'l:\r\n 41'))),
    {
      minLength: 1,
      maxLength: 4,
    },
  )
  .chain((parts) => hostile(parts.join('')));

const MESSAGES = corpus('sip-message');

describe('a random text from outside', () => {
  it('never makes the SIP parser throw, and can be written and parsed again with the same body when the parser takes it', () => {
    fc.assert(
      fc.property(hostile(INVITE), (text) => {
        const parsed = parseMessage(text, LIMITS);
        if (!parsed.ok) return;
        readCoreHeaders(parsed.value);
        const again = parseMessage(serialize(parsed.value), LIMITS);
        expect(again).toMatchObject({ ok: true, value: { body: parsed.value.body } });
      }),
      { ...RUNS, examples: MESSAGES.map((text) => [text]) },
    );
  });

  it('[3261 §18.3] gives the same items of a stream wherever the reads end', () => {
    fc.assert(
      fc.property(hostileStream, fc.array(fc.integer({ min: 1, max: 120 }), { minLength: 1, maxLength: 30 }), (stream, sizes) => {
        const whole = new StreamFramer(SMALL).push(stream);
        const framer = new StreamFramer(SMALL);
        const items = [];
        for (let at = 0, read = 0; at < stream.length; read += 1) {
          const size = sizes[read % sizes.length]!;
          items.push(...framer.push(stream.slice(at, at + size)));
          at += size;
        }
        expect(items).toEqual(whole);
      }),
      { ...RUNS, examples: MESSAGES.map((text) => [text, [7]]) },
    );
  });

  it('never makes the framer throw or give a message that was not sent', () => {
    fc.assert(
      fc.property(hostile(INVITE + INVITE), fc.integer({ min: 1, max: 200 }), (stream, size) => {
        const framer = new StreamFramer(LIMITS);
        let yielded = '';
        for (let at = 0; at < stream.length; at += size) {
          for (const item of framer.push(stream.slice(at, at + size))) if (item.type === 'message') yielded += item.text;
        }
        expect(stream.replaceAll('\r\n', '')).toContain(yielded.slice(0, 20).replaceAll('\r\n', ''));
        expect(yielded.length).toBeLessThanOrEqual(stream.length);
      }),
      { ...RUNS, examples: MESSAGES.map((text) => [text, 7]) },
    );
  });

  it.each<[string, string, (text: string) => unknown]>([
    ['a URI', 'sips:+1-212;phone-context=x@[2001:db8::1]:5061;transport=tls;lr?a=b', parseSipUri],
    ['a name-addr', '"a <b>, c" <sip:a@b;x=y>;tag=1;q=0.5', parseNameAddr],
    ['a tag', '"a;tag=no" <sip:a@b>;tag=yes', tagOf],
    ['a Via', 'SIP / 2.0 / TLS [2001:db8::1] : 5061 ; branch=z9hG4bK1 ; rport', parseVia],
    ['a list', '"a, b" <sip:x,y@z>, <sip:q@r>;p="1,2"', splitList],
    ['a called number', 'sip:%2B1-555-010-0100;npdi;rn=+1555@host', calledNumber],
    [
      'a crypto line',
      '1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj|2^31|1:4',
      (text) => chooseCrypto([text, text]),
    ],
    ['a session timer', '1800;refresher=uas', (text) => sessionTimerHeaders({ sessionExpires: text, supported: text, require: text })],
    [
      'a multipart type',
      'multipart/mixed;boundary="b1"',
      (text) =>
        sessionDescription({
          contentType: text,
          contentDisposition: text,
          contentEncoding: text,
          body: '--b1\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n--b1--',
        }),
    ],
    ['a command', '1|sip|txn|dlg;from-tag=x|route\r\nBYE sip:placeholder SIP/2.0\r\n\r\n', parseCommand],
    ['an application’s message', 'SIP/2.0 200 OK\r\nContact: sip:a@localhost;x\r\n\r\nv=0', parseAppMessage],
    ['frames', '5#hello3#abc', (text) => new FrameDecoder(1_000).push(text)],
  ])('never makes %s throw', (_what, good, parse) => {
    fc.assert(
      fc.property(hostile(good), (text) => {
        parse(text);
      }),
      RUNS,
    );
  });

  it('never makes the SDP policy throw, and gives a canonical SDP (one m= line, at most one key) when the policy takes it', () => {
    fc.assert(
      fc.property(hostile(offerSdp()), fc.constantFrom<MediaEncryption[]>('required', 'optional'), (sdp, encryption) => {
        readRelaySdp(sdp);
        readAnswer(sdp, OWN_OFFER);
        const offer = readOffer(sdp, encryption);
        if (!offer.ok) return;
        const canonical = canonicalSdp(offer.value);
        expect(canonical.match(/^m=/gm)).toHaveLength(1);
        expect(canonical.match(/^a=crypto/gm)?.length ?? 0).toBe(offer.value.crypto === null ? 0 : 1);
        expect(canonical).toMatch(/^v=0\r\n/);
        expect(canonical.split('\r\n').every((line) => /^([a-z]=[\x20-\x7e]+)?$/.test(line))).toBe(true);
        if (encryption === 'required') expect(offer.value.crypto).not.toBeNull();
      }),
      {
        ...RUNS,
        numRuns: 3_000,
        examples: corpus('sdp').flatMap((sdp): [string, MediaEncryption][] => [
          [sdp, 'required'],
          [sdp, 'optional'],
        ]),
      },
    );
  });
});
