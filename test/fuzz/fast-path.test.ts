import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseFast } from '../../src/sip/message/fast-path-parser.js';
import type { Peer } from '../../src/sip/message/reception.js';
import { contentLength, plainLength } from '../../src/sip/message/stream-framer.js';
import { corpus } from '../support/corpus.js';
import { isQuick, PEER, PEERS, PLAIN, RECEPTION, RESPONSE, text } from '../support/two-readers.js';

/** Bits that make a difference to a reader of SIP. */
const bits = fc.oneof(
  fc.constantFrom('\r\n', '\r', '\n', '\0', ' ', '\t', ':', ';', ',', '<', '>', '"', '\\', '=', '@', '?', '%', '\r\n ', '\r\n\t', '\xa0'),
  fc.constantFrom(
    'Via: SIP/2.0/TLS b;branch=z9hG4bKx\r\n',
    'l: 5\r\n',
    'v: SIP/2.0/UDP c\r\n',
    'CONTENT-LENGTH: 5\r\n',
    'To: <sip:x@y>\r\n',
  ),
  fc.constantFrom(
    'Content-Length: 6\r\n',
    'Max-Forwards: 999\r\n',
    'via: x\r\n',
    'tag=',
    ';tag=',
    'branch=',
    ';BRANCH=x',
    'sips:',
    'tel:',
    'SIP/2.0',
  ),
  fc.constantFrom('a', '0', 'Z', '[::1]', '65536', ';branch="a;b"'),
);
const change = fc.record({ at: fc.nat(700), cut: fc.nat(12), insert: bits });
/** A plain message, with a few changes. */
const changed = fc
  .tuple(fc.constantFrom(PLAIN, RESPONSE), fc.array(change, { maxLength: 3 }))
  .map(([lines, changes]) =>
    changes.reduce((whole, { at, cut, insert }) => whole.slice(0, at) + insert + whole.slice(at + cut), text(lines)),
  );
const RUNS = { numRuns: 5_000 };
const CORPUS = corpus('sip-message');

describe('the fast parser', () => {
  it('reads a plain request', () => {
    expect(parseFast(text(PLAIN), PEER, RECEPTION)?.core).toMatchObject({
      fromTag: 'from1',
      toTag: undefined,
      cseq: { number: 1, method: 'INVITE' },
    });
    expect(parseFast(text(RESPONSE), PEER, RECEPTION)?.message).toMatchObject({ kind: 'response', status: 200, reason: 'OK' });
  });

  it.each(['\n', '\r', '\0'])('leaves a status line with %j in it to the full parser', (bad) => {
    const [, ...others] = RESPONSE;
    expect(parseFast(text([`SIP/2.0 200 O${bad}K`, ...others]), PEER, RECEPTION)).toBeUndefined();
  });

  it('reads what the full parser reads, or nothing', () => {
    fc.assert(
      fc.property(changed, fc.constantFrom(...PEERS), (whole, peer) => {
        isQuick(whole, peer);
      }),
      { ...RUNS, examples: CORPUS.flatMap((whole) => PEERS.map((peer): [string, Peer] => [whole, peer])) },
    );
  });

  it('finds the length that the full search finds, or none', () => {
    fc.assert(
      fc.property(changed, (whole) => {
        const head = whole.slice(0, whole.indexOf('\r\n\r\n') + 4);
        const length = plainLength(head);
        if (length !== undefined) expect(length).toBe(contentLength(head));
      }),
      { ...RUNS, examples: CORPUS.map((whole): [string] => [whole]) },
    );
  });
});
