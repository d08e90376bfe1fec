import { describe, expect, it } from 'vitest';
import { deliver, served, valuesOf, type Way } from '../../support/wire.js';
import { checkAnswer, torture } from './torture.js';

const WAYS = ['datagram', 'stream', 'dripping stream'] as const;

interface Parts {
  readonly start?: string;
  readonly via?: readonly string[];
  readonly from?: string;
  readonly to?: string;
  readonly callId?: string;
  readonly cseq?: string;
  readonly more?: readonly string[];
  readonly body?: string;
}

function request(parts: Parts = {}): string {
  const { start = 'INVITE sip:b@server.example.com SIP/2.0', callId = 'call1@caller', body = '' } = parts;
  const method = start.split(' ')[0] ?? '';
  return [
    start,
    ...(parts.via ?? ['Via: SIP/2.0/TCP caller.example.com;branch=z9hG4bK1']),
    parts.from ?? 'From: <sip:a@caller.example.com>;tag=from1',
    parts.to ?? 'To: <sip:b@server.example.com>',
    `Call-ID: ${callId}`,
    parts.cseq ?? `CSeq: 1 ${method}`,
    ...(parts.more ?? []),
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n');
}

const forwarded = (parts: Parts): (() => Promise<void>) => torture(() => request(parts), 'forwarded');
/** UTF-8, as bytes. */
const utf8 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

describe('the SIP server', () => {
  it('[3261 §7.3.3] reads every compact form', async () => {
    const text = request()
      .replace('Via:', 'v:')
      .replace('From:', 'f:')
      .replace('To:', 't:')
      .replace('Call-ID:', 'i:')
      .replace('Content-Length:', 'm: <sip:a@caller>\r\nc: text/plain\r\ns: \r\nk: timer\r\nl:');
    await torture(() => text, 'forwarded')();
  });

  it(
    '[3261 §7.3.1] reads folded lines, with spaces and with tabs',
    forwarded({
      via: ['Via: SIP/2.0/TCP\r\n caller.example.com\r\n\t;branch=z9hG4bK1'],
      from: 'From:\r\n "a"\r\n\t<sip:a@caller.example.com>\r\n ;tag=from1',
      cseq: 'CSeq:\r\n\t1\r\n INVITE',
      more: ['Subject: one\r\n  two\r\n\tthree'],
    }),
  );

  it('[3261 §18.3] reads a folded Content-Length', async () => {
    const text = request({ body: 'hello' }).replace('Content-Length: 5', 'Content-Type: text/plain\r\nContent-Length:\r\n 5');
    await torture(() => text, 'forwarded')();
  });

  it(
    '[3261 §7.3.1] reads names with dots and every other character of a token, in any case',
    forwarded({ more: ['X-Odd.Name: 1', "x!%*_+`'~.-: 2", 'sUBJECT: 3'] }),
  );

  it(
    '[3261 §7.3.1] reads several Via values on one line like those on several lines',
    forwarded({ via: ['Via: SIP/2.0/TCP caller.example.com;branch=z9hG4bK1', 'Via: SIP/2.0/UDP p1;branch=z9hG4bK2', 'v: SIP/2.0/UDP p2'] }),
  );

  it('[3261 §18.2.1] notes the source in the first of several Via values on a line', async () => {
    const via = 'SIP/2.0/TCP caller.example.com;rport;branch=z9hG4bK1, SIP/2.0/UDP p1;branch=z9hG4bK2,SIP/2.0/UDP p2';
    const { answers } = await deliver(await served('datagram'), request({ via: [`Via: ${via}`] }), 'datagram');
    expect(valuesOf(answers[0]!, 'via')).toEqual([
      'SIP/2.0/TCP caller.example.com;rport=6000;branch=z9hG4bK1;received=127.0.0.1, SIP/2.0/UDP p1;branch=z9hG4bK2, SIP/2.0/UDP p2',
    ]);
  });

  it('[3261 §12.1.1] takes Record-Route and Contact into the dialog, whether their values are on one line or on several', async () => {
    for (const lines of [
      ['Record-Route: <sip:p1;lr>, "q, <r>" <sip:p2;lr>', 'Contact: <sip:a@192.0.2.1;transport=tcp>, <sip:other@host>'],
      [
        'Record-Route: <sip:p1;lr>',
        'Record-Route:\r\n "q, <r>" <sip:p2;lr>',
        'm: <sip:a@192.0.2.1;transport=tcp>',
        'Contact: <sip:other@host>',
      ],
    ]) {
      const bye = await byeOf(request({ more: lines }));
      expect(bye).toMatch(/^BYE sip:a@192\.0\.2\.1;transport=tcp SIP\/2\.0\r\n/);
      expect(valuesOf(bye, 'route')).toEqual(['<sip:p1;lr>', '"q, <r>" <sip:p2;lr>']);
    }
  });

  it.each([
    ['quotes, brackets and separators', '"a \\"b\\" <sip:x@y>;tag=no, c" <sip:a@caller>;tag=from1'],
    ['UTF-8 in quotes', `"${utf8('Zoë 大停電')}" <sip:a@caller>;tag=from1`],
    ['UTF-8 without quotes', `${utf8('voilà')} <sip:a@caller>;tag=from1`],
    ['a last byte that is no space', `<sip:a@caller>;tag=from1;x=${utf8('à')}`],
    ['a tag of 300 bytes', `<sip:a@caller>;tag=${'t'.repeat(300)}`],
  ])('[3261 §20.20] keeps every byte of a From with %s, in answers and in requests of the dialog', async (_what, from) => {
    const text = request({ from: `From: ${from}`, more: ['Contact: <sip:a@192.0.2.1;transport=tcp>'] });
    await torture(() => text, 'forwarded')();
    expect(valuesOf(await byeOf(text), 'to')).toEqual([from]);
  });

  it('[3261 §20.8] takes a Call-ID of 300 bytes through a whole call', async () => {
    const callId = `${'c'.repeat(300)}@caller`;
    const bye = await byeOf(request({ callId, more: ['Contact: <sip:a@192.0.2.1;transport=tcp>'] }));
    expect(valuesOf(bye, 'call-id')).toEqual([callId]);
  });
});

describe('the SIP server', () => {
  it.each(['0', '00070', '255'])('[3261 §20.22] takes Max-Forwards %j', async (value) => {
    await forwarded({ more: [`Max-Forwards: ${value}`] })();
  });

  it('[3261 §16.3] takes a request without Max-Forwards', forwarded({}));

  it.each(['junk', '-1', '256', '', '7 0', '70;x', '9'.repeat(40)])('[3261 §20.22] answers 400 to Max-Forwards %j', async (value) => {
    await torture(() => request({ more: [`Max-Forwards: ${value}`] }), { answered: '400 Bad Max-Forwards Header' })();
  });
});

describe('the SIP server', () => {
  it('[3261 §21.4.6] answers 405 with Allow to a method that no application asked for', async () => {
    const { answers } = await deliver(await served('stream'), request({ start: 'SUBSCRIBE sip:b@server SIP/2.0' }), 'stream');
    expect(answers[0]).toMatch('SIP/2.0 405 Method Not Allowed\r\n');
    expect(valuesOf(answers[0]!, 'allow')).toEqual(['INVITE, REGISTER, OPTIONS, MESSAGE, ACK, BYE, CANCEL']);
  });
});

// The limits of config/default.yaml.
const LIMITS = { maxHeaders: 200, maxHeaderBytes: 16_384, maxHeadBytes: 65_536, maxBodyBytes: 65_536 };

describe('the SIP server with the limits of the default configuration', () => {
  const headBytes = (text: string): number => text.indexOf('\r\n\r\n');
  /** A request whose head, which ends before the empty line, has that many bytes. */
  const withHead = (bytes: number, more: readonly string[] = []): string => {
    const padding = ['X-1', 'X-2', 'X-3', 'X-4'].map((name) => `${name}: ${'a'.repeat(16_000)}`);
    const rest = bytes - headBytes(request({ more: [...more, ...padding, 'X-5: '] }));
    return request({ more: [...more, ...padding, `X-5: ${'a'.repeat(rest)}`] });
  };
  const withHeaders = (count: number): string => request({ more: Array.from({ length: count - 6 }, () => 'X: 1') });
  const withHeader = (bytes: number): string => request({ more: [`X: ${'a'.repeat(bytes - 3)}`] });
  const withBody = (bytes: number): string => request({ more: ['Content-Type: text/plain'], body: 'b'.repeat(bytes) });

  it.each<[string, () => string]>([
    ['a head', () => withHead(65_536)],
    ['headers', () => withHeaders(200)],
    ['a header', () => withHeader(16_384)],
    ['a body', () => withBody(65_536)],
  ])('takes %s of exactly the limit', async (_what, read) => {
    for (const way of ['datagram', 'stream'] as const) {
      const outcome = await deliver(await served(way, LIMITS), read(), way);
      expect(outcome.forwarded, way).toHaveLength(1);
      expect(outcome.forwarded[0]!.length, way).toBeGreaterThanOrEqual(read().length);
    }
  });

  it.each<[string, () => string, string, 'stands' | 'closes', readonly Way[]]>([
    [
      '513 to a head of one byte more than the limit, and closes the connection',
      () => withHead(65_537),
      '513 Headers Too Large',
      'closes',
      ['stream', 'dripping stream'],
    ],
    ['513 to one header more than the limit', () => withHeaders(201), '513 Too Many Headers', 'stands', WAYS],
    ['513 to a header of one byte more than the limit', () => withHeader(16_385), '513 Header Too Large', 'stands', WAYS],
    [
      '413 to a body of one byte more than the limit, and closes the connection',
      () => withBody(65_537),
      '413 Request Entity Too Large',
      'closes',
      WAYS,
    ],
    [
      '414 to a Request-URI of one byte more than the limit',
      () => request({ start: `INVITE sip:${'u'.repeat(4_091)}@h SIP/2.0` }),
      '414 Request-URI Too Long',
      'stands',
      WAYS,
    ],
  ])('[3261 §21] answers %s', async (_what, read, status, connection, ways) => {
    for (const way of ways) {
      const outcome = await deliver(await served(way, LIMITS), read(), way);
      expect(outcome.forwarded, way).toEqual([]);
      expect(outcome.answers, way).toHaveLength(1);
      expect(outcome.answers[0], way).toMatch(`SIP/2.0 ${status}\r\n`);
      checkAnswer(read(), outcome.answers[0]!);
      expect(outcome.isConnected, way).toBe(way === 'datagram' || connection === 'stands');
    }
  });

  it('answers 513 also when Via, From and To come after the header that is too large', async () => {
    const large = request({ more: [`X: ${'a'.repeat(16_400)}`] });
    const [start = '', ...lines] = large.split('\r\n');
    const turned = [start, ...lines.slice(0, -2).reverse(), '', ''].join('\r\n');
    const { answers } = await deliver(await served('stream', LIMITS), turned, 'stream');
    checkAnswer(turned, answers[0]!);
    expect(answers[0]).toMatch('SIP/2.0 513 Header Too Large\r\n');
  });

  it('takes the next message of a connection after one that it has refused', async () => {
    const bench = await served('stream', LIMITS);
    const refused = await deliver(bench, withHeaders(201), 'stream');
    expect(refused.answers).toHaveLength(1);
    const { forwarded: taken } = await deliver(bench, request({ via: ['Via: SIP/2.0/TCP caller;branch=z9hG4bK2'] }), 'stream');
    expect(taken).toHaveLength(1);
  });
});

/** Answers the INVITE with 200, acknowledges it, lets the application hang up; returns the BYE. */
async function byeOf(invite: string): Promise<string> {
  const bench = await served('stream');
  bench.fromCaller(invite);
  await bench.settle();
  const id = bench.toApp.at(-1)?.split('|')[8] ?? '';
  bench.fromApp(`a|sip|${id}|\r\nSIP/2.0 200 OK\r\n\r\n`);
  await bench.settle();
  const to = valuesOf(bench.toCaller.at(-1) ?? '', 'to')[0] ?? '';
  bench.fromCaller(
    invite
      .replace('INVITE', 'ACK')
      .replace('1 INVITE', '1 ACK')
      .replace('z9hG4bK1', 'z9hG4bKack')
      .replace(/^To: .*$/m, () => `To: ${to}`),
  );
  await bench.settle();
  bench.fromApp(`b|sip||${bench.toApp.at(-1)?.split('|')[9]?.split('\r\n')[0] ?? ''}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`);
  await bench.settle();
  return bench.toCaller.at(-1) ?? '';
}
