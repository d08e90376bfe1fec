import { describe, expect, it } from 'vitest';
import { readCoreHeaders, parseVia, stampVia } from '../../../src/sip/message/core-headers.js';
import { getHeader, getList, splitList, type SipMessage, serialize } from '../../../src/sip/message/message.js';
import { parseNameAddr, tagOf, parseSipUri } from '../../../src/sip/message/uri.js';
import { parseMessage, type MessageLimits } from '../../../src/sip/message/parse.js';

const LIMITS: MessageLimits = { maxHeaders: 50, maxHeaderBytes: 2_000, maxBodyBytes: 1_000 };

function parsed(text: string): SipMessage {
  const result = parseMessage(text, LIMITS);
  if (!result.ok) throw new Error(result.error.reason);
  return result.value;
}

const INVITE = [
  'INVITE sip:bob@biloxi.example.com SIP/2.0',
  'v: SIP/2.0/TCP client.atlanta.example.com:5060;branch=z9hG4bK74bf9, SIP/2.0/UDP far.example.com;branch=z9hG4bKfar',
  'Max-Forwards: 70',
  'f: "Alice, the \\"first\\"" <sip:alice@atlanta.example.com>;tag=9fxced76sl',
  't: Bob <sip:bob@biloxi.example.com>',
  'i: 3848276298220188511@atlanta.example.com',
  'CSeq: 1 INVITE',
  'Subject: a line',
  '  that is folded',
  'm: <sip:alice@client.atlanta.example.com;transport=tcp>',
  'X-Odd.Name:   spaces kept   ',
  'Content-Length: 3',
  '',
  'abc',
].join('\r\n');

describe('the parser of messages', () => {
  it('[3261 §7.3] reads compact forms, folds and several values a header, and writes the message back byte by byte', () => {
    const message = parsed(INVITE);
    expect(serialize(message)).toBe(INVITE);
    expect(getHeader(message, 'subject')).toBe('a line that is folded');
    expect(getList(message, 'via')).toHaveLength(2);
    const core = readCoreHeaders(message);
    expect(core).toMatchObject({
      ok: true,
      value: {
        callId: '3848276298220188511@atlanta.example.com',
        fromTag: '9fxced76sl',
        toTag: undefined,
        cseq: { number: 1, method: 'INVITE' },
      },
    });
  });

  it('[3261 §20.14] writes the body’s real size whatever the header says', () => {
    const message = parsed(INVITE.replace('Content-Length: 3', 'Content-Length: 99'));
    expect(serialize(message)).toContain('Content-Length: 3\r\n');
  });

  it.each([
    ['an invalid start line', 'HELLO\r\nVia: x\r\n\r\n', 400],
    ['another version', 'INVITE sip:a@b SIP/7.0\r\nVia: x\r\n\r\n', 505],
    ['a header without a colon', 'INVITE sip:a@b SIP/2.0\r\nnonsense\r\n\r\n', 400],
    ['a header name with a space', 'INVITE sip:a@b SIP/2.0\r\nbad name: x\r\n\r\n', 400],
    ['a bare line feed in a value', 'INVITE sip:a@b SIP/2.0\r\nX: a\nInjected: b\r\n\r\n', 400],
    ['a header over the limit', `INVITE sip:a@b SIP/2.0\r\nX: ${'a'.repeat(2_001)}\r\n\r\n`, 513],
    ['too many headers', `INVITE sip:a@b SIP/2.0\r\n${'X: a\r\n'.repeat(51)}\r\n`, 513],
    ['a body over the limit', `INVITE sip:a@b SIP/2.0\r\nX: a\r\n\r\n${'b'.repeat(1_001)}`, 413],
  ])('refuses %s', (_what, text, status) => {
    expect(parseMessage(text, LIMITS)).toMatchObject({ ok: false, error: { status } });
  });

  it('keeps the headers of a request of another version, so that it can be answered', () => {
    expect(parseMessage('INVITE sip:a@b SIP/7.0\r\nVia: x\r\n\r\n', LIMITS)).toMatchObject({
      error: { partial: { headers: [{ id: 'via' }] } },
    });
  });

  it.each([
    ['Via', 'Missing Via Header'],
    ['From', 'Missing From Header'],
    ['To', 'Missing To Header'],
    ['Call-ID', 'Missing Call-ID Header'],
    ['CSeq', 'Bad CSeq Header'],
  ])('[3261 §8.1.1] reports that %s is missing', (name, reason) => {
    const headers = ['Via: SIP/2.0/TLS a;branch=z9hG4bK1', 'From: <sip:a@b>;tag=1', 'To: <sip:c@d>', 'Call-ID: x', 'CSeq: 1 OPTIONS'];
    const message = parsed(`OPTIONS sip:c@d SIP/2.0\r\n${headers.filter((line) => !line.startsWith(name)).join('\r\n')}\r\n\r\n`);
    expect(readCoreHeaders(message)).toEqual({ ok: false, error: reason });
  });

  it.each([
    ['CSeq: 4294967296 OPTIONS', 'Bad CSeq Header'],
    ['CSeq: 1 INVITE', 'CSeq Method Mismatch'],
    ['CSeq: 1 OPTIONS\r\nCSeq: 2 OPTIONS', 'Multiple cseq Headers'],
  ])('[4475] refuses %j', (cseq, reason) => {
    const message = parsed(
      `OPTIONS sip:c@d SIP/2.0\r\nVia: SIP/2.0/TLS a;branch=z9hG4bK1\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:c@d>\r\nCall-ID: x\r\n${cseq}\r\n\r\n`,
    );
    expect(readCoreHeaders(message)).toEqual({ ok: false, error: reason });
  });
});

describe('a value that would break our own lines', () => {
  it.each([
    ['Call-ID: a|b', 'Bad Call-ID Header'],
    ['From: <sip:a@b>;tag=a|b', 'Bad From Header'],
    ['To: <sip:a@b>;tag=a|b', 'Bad To Header'],
  ])('[3261 §25.1] is refused: %j', (line, error) => {
    const name = line.split(':')[0] ?? '';
    const headers = ['Via: SIP/2.0/TLS a;branch=z9hG4bK1', 'From: <sip:a@b>;tag=1', 'To: <sip:c@d>', 'Call-ID: x@y', 'CSeq: 1 OPTIONS'];
    const lines = headers.map((header) => (header.startsWith(name) ? line : header));
    expect(readCoreHeaders(parsed(`OPTIONS sip:c@d SIP/2.0\r\n${lines.join('\r\n')}\r\n\r\n`))).toEqual({ ok: false, error });
  });
});

describe('an unusual Call-ID', () => {
  it.each(['outgoing:wacid.HBgL=AAA==', 'a,b;c=d&e#f$g^h', '{(<[x]>)}?"\\/'])('is accepted unchanged: %s', (callId) => {
    const message = parsed(
      `OPTIONS sip:c@d SIP/2.0\r\nVia: SIP/2.0/TLS a;branch=z9hG4bK=/==\r\nFrom: <sip:a@b>;tag=a=@:/,b==\r\nTo: <sip:c@d>;tag=#$^\r\nCall-ID: ${callId}\r\nCSeq: 1 OPTIONS\r\n\r\n`,
    );
    const core = readCoreHeaders(message);
    expect(core).toMatchObject({ ok: true, value: { callId, fromTag: 'a=@:/,b==', toTag: '#$^', topVia: { branch: 'z9hG4bK=/==' } } });
  });
});

describe('the parser of header values', () => {
  it('[3261 §7.3.1] splits lists outside of quotes and brackets only', () => {
    expect(splitList('"a, b" <sip:x,y@z>, <sip:q@r>;p="1,2",c')).toEqual(['"a, b" <sip:x,y@z>', '<sip:q@r>;p="1,2"', 'c']);
  });

  it('[3261 §20.10] gives parameters without brackets to the header, and with brackets to the URI', () => {
    expect(parseNameAddr('sip:a@b;tag=1')).toMatchObject({ uri: 'sip:a@b', params: new Map([['tag', '1']]) });
    expect(parseNameAddr('"x <y>" <sip:a@b;transport=tls>;tag=2')).toMatchObject({
      displayName: '"x <y>"',
      uri: 'sip:a@b;transport=tls',
      params: new Map([['tag', '2']]),
    });
    expect(parseNameAddr('"open <sip:a@b>')).toBeUndefined();
    expect(parseNameAddr('<sip:a@b')).toBeUndefined();
  });

  it('finds a tag only where it is a parameter of the header', () => {
    expect(tagOf('"me;tag=no" <sip:a@b;tag=no>')).toBeUndefined();
    expect(tagOf('<sip:a@b>;x=y;tag=yes')).toBe('yes');
  });

  it.each([
    ['sip:alice@atlanta.com', { user: 'alice', host: 'atlanta.com', port: null }],
    [
      'sips:+1-212;phone-context=x@[2001:DB8::1]:5061;transport=tls?a=b',
      { user: '+1-212;phone-context=x', host: '2001:db8::1', port: 5061, headers: 'a=b' },
    ],
    ['sip:atlanta.com', { user: null, host: 'atlanta.com' }],
    ['sip:a:secret@h', { user: 'a', password: 'secret', host: 'h' }],
  ])('[3261 §19.1] reads %s', (text, expected) => {
    expect(parseSipUri(text)).toMatchObject(expected);
  });

  it.each(['sip:', 'sip:@h', 'sip:a@', 'sip:a@h:0', 'sip:a@h:99999', 'sip:a b@h', 'http://h', 'sip:a@[::1', 'sip:a@h:x'])(
    'refuses the URI %j',
    (text) => {
      expect(parseSipUri(text)).toBeUndefined();
    },
  );

  it.each([
    'SIP/2.0/UDP Host:4000;branch=z9hG4bK1',
    'SIP / 2.0 / udp host: 4000 ; branch = z9hG4bK1',
    'SIP/2.0/UDP host \t: 4000 ;branch=z9hG4bK1',
  ])('reads the Via %j', (text) => {
    expect(parseVia(text)).toMatchObject({ transport: 'UDP', host: 'host', port: 4_000, branch: 'z9hG4bK1' });
  });

  it('[3261 §18.2.1] [3581 §4] adds received and rport only where they are due', () => {
    const stamp = (text: string): string => stampVia(parseVia(text)!, { address: '192.0.2.9', port: 4_000 });
    expect(stamp('SIP/2.0/TLS 192.0.2.9;branch=z9hG4bK1')).toBe('SIP/2.0/TLS 192.0.2.9;branch=z9hG4bK1');
    expect(stamp('SIP/2.0/TLS host;branch=z9hG4bK1')).toBe('SIP/2.0/TLS host;branch=z9hG4bK1;received=192.0.2.9');
    expect(stamp('SIP/2.0/UDP 192.0.2.9;rport;branch=z9hG4bK1')).toBe(
      'SIP/2.0/UDP 192.0.2.9;rport=4000;branch=z9hG4bK1;received=192.0.2.9',
    );
    expect(stamp('SIP/2.0/UDP 192.0.2.9;rport=1;branch=z9hG4bK1')).toBe('SIP/2.0/UDP 192.0.2.9;rport=1;branch=z9hG4bK1');
  });
});
