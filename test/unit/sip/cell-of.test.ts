import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cellAmong, cellPrefix } from '../../../src/lib/cells.js';
import { newTag, prefixTags } from '../../../src/lib/ids.js';
import { cellOf, transactionOf } from '../../../src/sip/message/cell-of.js';

const COUNT = 5;

interface Parts {
  readonly method?: string;
  readonly callId?: string;
  readonly to?: string;
  readonly branch?: string;
  readonly body?: string;
}

function request({ method = 'INVITE', callId = 'a@b', to = '<sip:b@c>', branch = 'z9hG4bKx', body = '' }: Parts = {}): string {
  return [
    `${method} sip:b@c SIP/2.0`,
    `Via: SIP/2.0/TLS a:5061;branch=${branch}`,
    'From: <sip:a@b>;tag=1.theirs',
    `To: ${to}`,
    `Call-ID: ${callId}`,
    `CSeq: 1 ${method}`,
    `Content-Length: ${String(body.length)}`,
    '',
    body,
  ].join('\r\n');
}

const response = (via: string): string =>
  `SIP/2.0 200 OK\r\nVia: ${via}\r\nTo: <sip:b@c>;tag=3.x\r\nCall-ID: a@b\r\nCSeq: 1 INVITE\r\n\r\n`;

/** What a process of this cell writes. */
function tagOfCell(cell: number): string {
  prefixTags(cellPrefix(cell));
  try {
    return newTag();
  } finally {
    prefixTags('');
  }
}

const callIds = fc.stringMatching(/^[\w.!%*+~-]{1,40}@[\w.-]{1,20}$/);
const counts = fc.integer({ min: 1, max: 64 });

describe('the cell of a message', () => {
  it('is an existing one, and the same for an INVITE, its CANCEL and everything with its Call-ID', () => {
    fc.assert(
      fc.property(callIds, counts, fc.string(), (callId, count, body) => {
        const { cell, newCallId } = cellOf(request({ callId }), count);
        expect(cell).toBeGreaterThanOrEqual(1);
        expect(cell).toBeLessThanOrEqual(count);
        expect(newCallId).toBe(callId);
        for (const method of ['CANCEL', 'OPTIONS', 'INVITE'])
          expect(cellOf(request({ method, callId, to: '"B" <sip:b@c;tag=9.no>', branch: '2.other', body }), count)).toEqual({
            cell,
            newCallId,
          });
      }),
    );
  });

  it('is that of our To tag and of the branch of our Via, whatever the Call-ID', () => {
    fc.assert(
      fc.property(callIds, counts, fc.nat(63), (callId, count, at) => {
        const cell = (at % count) + 1;
        const tag = tagOfCell(cell);
        expect(cellOf(request({ callId, to: `<sip:b@c>;tag=${tag}` }), count)).toEqual({ cell, newCallId: null });
        expect(cellOf(request({ callId, to: `"x" <sip:b@c> ; x=">" ;TAG = ${tag};y` }), count)).toEqual({ cell, newCallId: null });
        expect(cellOf(response(`SIP/2.0/TLS us:5061;branch=z9hG4bK${tag};rport=1, SIP/2.0/TLS they;branch=z9hG4bK7.x`), count)).toEqual({
          cell,
          newCallId: null,
        });
      }),
    );
  });

  it('distributes calls evenly, regardless of serial numbers in their Call-IDs', () => {
    for (const callIdOf of [
      (n: number) => `${String(n)}@10.0.0.1`,
      (n: number) => `call-${String(2 * n)}`,
      (n: number) => `${n.toString(16)}0`,
    ]) {
      const shares = Array.from({ length: COUNT }, () => 0);
      for (let call = 0; call < 10_000; call += 1) {
        const at = cellOf(request({ callId: callIdOf(call) }), COUNT).cell - 1;
        shares[at] = (shares[at] ?? 0) + 1;
      }
      for (const share of shares) expect(Math.abs(share - 10_000 / COUNT)).toBeLessThan(200);
    }
  });

  it('is the first one where a tag names none, so that calls survive the start of a second cell', () => {
    const tag = tagOfCell(1);
    expect(tag).not.toContain('.');
    for (const count of [1, 2, 64]) expect(cellOf(request({ to: `<sip:b@c>;tag=${tag}` }), count).cell).toBe(1);
    for (const foreign of ['as1.2', 'a.x', '-.x', '1a.x', '1-.x', '0.x', '123.x', '.', '7', '12'])
      expect(cellOf(request({ to: `<sip:b@c>;tag=${foreign}` }), 3)).toEqual({ cell: 1, newCallId: null });
    for (const none of ['<sip:b@c>;tag=', '<sip:b@c>;tag=;x=2.y', '"tag" <sip:b@c;tag=2.y>'])
      expect(cellOf(request({ to: none }), 3)).toEqual(cellOf(request(), 3));
    // The branch is missing, and the address looks like a number.
    expect(cellOf(response('SIP/2.0/TLS 123.0.0.1'), 3)).toEqual({ cell: 1, newCallId: null });
  });

  it.each([1, 2, 9, 10, 19, 35, 64])('is number %i where a tag begins with it', (cell) => {
    const to = cell === 1 ? 'x' : `${String(cell)}.x`;
    expect(cellOf(request({ to: `<sip:b@c>;tag=${to}` }), 64).cell).toBe(cell);
    expect(cellOf(response(`SIP/2.0/TLS a;branch=z9hG4bK${to}`), 64).cell).toBe(cell);
  });

  it('stays the same over an update, which calls survive', () => {
    const cells = ['', 'a@b', 'c@d', '1@10.0.0.1', '2@10.0.0.1'].map((callId) => cellOf(request({ callId }), 64).cell);
    expect(cells).toEqual([15, 40, 39, 1, 32]);
  });

  it('exists even when a tag has the number of a lost cell', () => {
    expect([1, 2, 3, 4, 5].map((cell) => cellAmong(cell, 2))).toEqual([1, 2, 1, 2, 1]);
    expect(cellOf(request({ to: `<sip:b@c>;tag=${tagOfCell(4)}` }), 3).cell).toBe(1);
  });

  it('is found in short, folded and unusual spelling, and not in a body', () => {
    const { cell } = cellOf(request(), COUNT);
    const lines = [
      'OPTIONS sip:b@c SIP/2.0',
      'v: SIP/2.0/TLS a',
      't: <sip:b@c>',
      'i : a@b',
      '',
      'To: <sip:x>;tag=3.x\r\nCall-ID: other\r\n',
    ];
    expect(cellOf(lines.join('\r\n'), COUNT)).toEqual({ cell, newCallId: 'a@b' });
    for (const to of ['<sip:b@c>\r\n ;tag=3.x', '<sip:b@c>\r\n\t;tag=3.x', 'sip:b@c ;TAG=3.x'])
      expect(cellOf(request({ to }), COUNT)).toEqual({ cell: 3, newCallId: null });
    expect(cellOf('SIP/2.0 200 OK\r\nv: SIP/2.0/TLS us\r\n ;branch=z9hG4bK4.x\r\n\r\n', COUNT).cell).toBe(4);
  });

  it.each([
    ['the From has a tag', 't: <sip:b@c>\r\nf: <sip:a@b>;tag=3.x\r\ni: a@b\r\n\r\n', 'a@b'],
    ['a body has a To', 'i: a@b\r\n\r\nt: <sip:b@c>;tag=3.x\r\n', 'a@b'],
    ['the text ends there', 'i: a@b', 'a@b'],
    ['there is no Call-ID', 'Max-Forwards: 70\r\n\r\n', ''],
  ])('follows the Call-ID without a To tag, also where %s', (_what, headers, callId) => {
    const { cell } = cellOf(request({ callId }), COUNT);
    expect(cellOf(`OPTIONS sip:b@c SIP/2.0\r\n${headers}`, COUNT)).toEqual({ cell, newCallId: callId });
  });

  it('exists for any text', () => {
    fc.assert(
      fc.property(fc.string(), counts, (text, count) => {
        const { cell } = cellOf(text, count);
        expect(cell >= 1 && cell <= count).toBe(true);
        transactionOf(text);
      }),
    );
  });
});

describe('the transaction of a message', () => {
  it('is the same for a request and its responses, and another one for its CANCEL', () => {
    const key = transactionOf(request())?.key;
    expect(transactionOf(response('SIP/2.0/TLS a:5061;branch=z9hG4bKx;received=1.2.3.4'))).toEqual({
      key,
      isRequest: false,
      isFinal: true,
    });
    expect(transactionOf(request({ method: 'CANCEL' }))?.key).not.toBe(key);
    expect(transactionOf(request({ method: 'ACK' }))).toBeNull();
    expect(transactionOf(request())).toEqual({ key, isRequest: true, isFinal: false });
    expect(transactionOf(response('SIP/2.0/TLS a').replace('200 OK', '180 Ringing'))?.isFinal).toBe(false);
  });

  it('is another one for another branch', () => {
    expect(transactionOf(request({ branch: 'z9hG4bKy' }))?.key).not.toBe(transactionOf(request())?.key);
  });

  it.each([
    'Via: SIP/2.0/TLS a;branch=z9hG4bKx\r\nCSeq: 12 INVITE',
    'Via: SIP/2.0/TLS a;rport;branch=z9hG4bKx;received=1.2.3.4\r\nCSeq: 12   INVITE ',
    'Via: SIP/2.0/TLS a ;  Branch  =  z9hG4bKx ;rport\r\nCSeq:  12 INVITE',
    'v: SIP/2.0/TLS a;branch=z9hG4bKx, SIP/2.0/TLS b;branch=z9hG4bKy\r\ncseq : 12 INVITE',
    'V:SIP/2.0/TLS a\r\n ;branch=z9hG4bKx,SIP/2.0/TLS b\r\nCSEQ:12\r\n INVITE',
  ])('is found in any spelling: %j', (headers) => {
    expect(transactionOf(`SIP/2.0 200 OK\r\n${headers}\r\n\r\n`)?.key).toBe(transactionOf(request())?.key);
  });
});
