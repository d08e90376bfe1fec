import { describe, expect, it } from 'vitest';
import {
  admit,
  hostOf,
  movedContact,
  ownContact,
  readReoffer,
  sessionDescription,
  sessionExpiresOf,
  sessionTimerHeaders,
  unsupportedOptions,
  type InviteHead,
} from '../../../../src/gateway/call/invite.js';

const HEAD: InviteHead = {
  uri: 'sip:+15550100100@h',
  contactUri: 'sip:a@b',
  body: 'v=0',
  contentType: 'application/sdp',
  require: undefined,
  supported: undefined,
  accept: undefined,
  sessionExpires: undefined,
  contentDisposition: undefined,
  contentEncoding: undefined,
};

describe('the Accept header of an INVITE', () => {
  it.each([
    'application/sdp',
    'text/plain,Application/SDP',
    ' */* ',
    'application/*;q=0.1',
    'application/sdp ; level=1 ;q=0.05',
    'application/sdp;level=1;seq=0',
    'application/sdp;q=0.0, application/*',
  ])('admits a session description: %j', (accept) => {
    expect(admit({ ...HEAD, accept }).ok).toBe(true);
  });

  it.each([
    '',
    'text/*',
    'application/sdpx',
    'application/sdp;q=0',
    'application/sdp;q=0.000',
    'application/sdp ; level=1 ; Q = 0',
    '*/*;q=0, text/plain',
  ])('excludes a session description: %j', (accept) => {
    expect(admit({ ...HEAD, accept })).toEqual({ ok: false, error: 'NOT_ACCEPTABLE' });
  });
});

it('an INVITE is refused for the first of its faults', () => {
  const faults: readonly [string, Partial<InviteHead>][] = [
    ['MALFORMED_REQUEST', { contactUri: undefined }],
    ['BAD_EXTENSION', { require: 'precondition' }],
    ['INVALID_NUMBER', { uri: 'sip:bob@h' }],
    ['NOT_ACCEPTABLE', { accept: 'text/plain' }],
    ['BAD_BODY', { contentType: 'text/plain' }],
    ['SESSION_INTERVAL_TOO_SMALL', { supported: 'timer', sessionExpires: '89' }],
  ];
  for (const [index, [error]] of faults.entries()) {
    const head = faults.slice(index).reduce<InviteHead>((all, [, fault]) => ({ ...all, ...fault }), HEAD);
    expect(admit(head)).toEqual({ ok: false, error });
  }
});

it.each([
  [undefined, []],
  ['', []],
  [' Timer , 100REL,,', []],
  ['timer, Precondition ,foo', ['Precondition', 'foo']],
])('of the required options %j the gateway lacks %j', (require, lacking) => {
  expect(unsupportedOptions(require)).toEqual(lacking);
});

describe('the session timer', () => {
  const agreed = (sessionExpires: string, supported = 'timer'): string | undefined => {
    const headers = sessionTimerHeaders({ sessionExpires, supported, require: undefined });
    return headers.ok ? headers.value['Session-Expires'] : headers.error;
  };

  it.each([
    ['1800', '1800;refresher=uac'],
    ['  1800  ', '1800;refresher=uac'],
    ['123456789;refresher=uas', '123456789;refresher=uas'],
    [' 1800  ;  Refresher  =  UAS  ;x', '1800;refresher=uas'],
    ['1800;x=1;refresher=uas', '1800;refresher=uas'],
    ['1800;refresher=uac', '1800;refresher=uac'],
    ['1800;xrefresher=uas', '1800;refresher=uac'],
    ['1800;refresher=uasx', '1800;refresher=uac'],
    ['1234567890', undefined],
    ['x1800', undefined],
    ['1800x', undefined],
    ['1800 x;refresher=uas', undefined],
  ])('asked as %j is agreed as %j', (asked, answered) => {
    expect(agreed(asked)).toBe(answered);
  });

  it.each([
    ['timer', 'SESSION_INTERVAL_TOO_SMALL'],
    ['100rel,timer,replaces', 'SESSION_INTERVAL_TOO_SMALL'],
    ['100rel ,  Timer  , replaces', 'SESSION_INTERVAL_TOO_SMALL'],
    ['xtimer', '90;refresher=uas'],
    ['timers', '90;refresher=uas'],
    ['', '90;refresher=uas'],
  ])('below 90 s, with Supported %j, gets %s', (supported, answer) => {
    expect(agreed('60', supported)).toBe(answer);
  });

  it('is read from the long and the short header name', () => {
    const request = (headers: Readonly<Record<string, string>>) => ({ get: (name: string) => headers[name] });
    expect(sessionExpiresOf(request({ 'Session-Expires': '1800', x: '90' }))).toBe('1800');
    expect(sessionExpiresOf(request({ x: '90' }))).toBe('90');
    expect(sessionExpiresOf(request({}))).toBeUndefined();
  });
});

describe('a re-INVITE or UPDATE', () => {
  it('may have a session description and a session timer, or neither', () => {
    const timer = { sessionExpires: '1800', supported: 'timer' };
    expect(readReoffer({ ...HEAD, ...timer })).toEqual({
      ok: true,
      value: { sdp: 'v=0', sessionTimer: { 'Session-Expires': '1800;refresher=uac', Require: 'timer' } },
    });
    expect(readReoffer({ ...HEAD, body: '' })).toEqual({ ok: true, value: { sdp: '', sessionTimer: {} } });
  });

  it.each([
    [{ require: 'precondition' }, 'BAD_EXTENSION'],
    [{ contentType: 'text/plain' }, 'BAD_BODY'],
    [{ supported: 'timer', sessionExpires: '60' }, 'SESSION_INTERVAL_TOO_SMALL'],
  ])('with %j is refused with %s', (change, error) => {
    expect(readReoffer({ ...HEAD, ...change })).toEqual({ ok: false, error });
  });
});

describe('the session description of a body', () => {
  const of = (change: Partial<InviteHead>): string => {
    const described = sessionDescription({ ...HEAD, ...change });
    return described.ok ? described.value : described.error;
  };

  it.each([
    [undefined, 'v=0'],
    ['', 'v=0'],
    ['  identity  ', 'v=0'],
    ['xidentity', 'BAD_BODY'],
    ['identity, gzip', 'BAD_BODY'],
  ])('has the result for the encoding %j: %s', (contentEncoding, expected) => {
    expect(of({ contentEncoding })).toBe(expected);
  });

  it.each([
    [undefined, 'v=0'],
    [' Application/SDP  ;charset=utf-8', 'v=0'],
    ['application/sdpx', 'BAD_BODY'],
    ['x-application/sdp', 'BAD_BODY'],
  ])('has the result for the type %j: %s', (contentType, expected) => {
    expect(of({ contentType })).toBe(expected);
  });

  it.each([
    ['session ;  Handling  =  optional', ''],
    ['session;handling="optional";x', ''],
    ['session;handling=optionally', 'BAD_BODY'],
    ['session;xhandling=optional', 'BAD_BODY'],
  ])('of an unknown type has the result for the disposition %j: %j', (contentDisposition, expected) => {
    expect(of({ contentType: 'application/json', contentDisposition })).toBe(expected);
  });

  it('is empty for white space alone, whatever its type', () => {
    expect(of({ contentType: 'text/plain', body: ' \r\n' })).toBe('');
  });

  it.each([
    ['multipart/mixed;boundary=b1', 'b1'],
    ['Multipart/Related  ; type="x";  Boundary=b1;y', 'b1'],
    ['multipart/mixed;boundary="b 1;"', 'b 1;'],
    [`multipart/mixed;boundary="${'b'.repeat(70)}"`, 'b'.repeat(70)],
  ])('is its part in %s', (contentType, boundary) => {
    const body = `--${boundary}\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n--${boundary}--\r\n`;
    expect(of({ contentType, body })).toBe('v=0\r\n');
  });

  it('is never found before the first boundary, or after the last', () => {
    const sdp = '\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n';
    for (const body of [`${sdp}--b1--\r\n`, `--b1--${sdp}`, `--b2${sdp}--b2--\r\n`])
      expect(of({ contentType: 'multipart/mixed;boundary=b1', body })).toBe('BAD_BODY');
  });

  it.each([`multipart/mixed;boundary="${'b'.repeat(71)}"`, 'multipart/mixed', 'x-multipart/mixed;boundary=b1'])(
    'is not read from %s',
    (contentType) => {
      expect(of({ contentType, body: '--b1\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n--b1--\r\n' })).toBe('BAD_BODY');
    },
  );

  it.each([
    ['Content-Type: application/sdp\r\n\r\nv=0\r\ns=-\r\n', 'v=0\r\ns=-\r\n'],
    ['content-type  :  Application/SDP  ;charset=utf-8\n\nv=0\ns=-\n', 'v=0\ns=-\r\n'],
    ['Content-ID: 1\r\nContent-Type:application/sdp\r\nX: y\r\n\r\nv=0\r\n', 'v=0\r\n'],
    ['Content-Type: application/sdp\r\n\r\nv=0', 'v=0'],
    ['Content-Type: application/sdpx\r\n\r\nv=0\r\n', 'BAD_BODY'],
    ['X-Content-Type: application/sdp\r\n\r\nv=0\r\n', 'BAD_BODY'],
    ['X: y\r\n\r\nContent-Type: application/sdp\r\n', 'BAD_BODY'],
    ['Content-Type: application/sdp\r\n', 'BAD_BODY'],
  ])('is read from the part %j as %j', (part, expected) => {
    expect(of({ contentType: 'multipart/mixed;boundary=b1', body: `--b1\r\n${part}--b1--\r\n` })).toBe(expected);
  });

  it.each([
    ['handling=required', 'BAD_BODY'],
    [' Handling = "required"', 'BAD_BODY'],
    ['handling=requiredly', 'v=0\r\n'],
    ['xhandling=required', 'v=0\r\n'],
  ])('is read beside a part with %s as %j', (handling, expected) => {
    const parts = [
      `Content-Type: application/isup\r\nContent-Disposition: signal;${handling}\r\n\r\nx`,
      'Content-Type: application/sdp\r\n\r\nv=0',
    ];
    const body = `${parts.map((part) => `--b1\r\n${part}\r\n`).join('')}--b1--\r\n`;
    expect(of({ contentType: 'multipart/mixed;boundary=b1', body })).toBe(expected);
  });
});

describe('our Contact', () => {
  const own = { host: 'gw.example.com', port: 5061, transport: 'tls' };
  const PLAIN = { requestUri: 'sip:x@h', topRecordRoute: undefined, contactUri: undefined };

  it.each([
    [own, PLAIN, '<sip:gw.example.com:5061;transport=tls>'],
    [own, { ...PLAIN, requestUri: 'SIPS:x@h' }, '<sips:gw.example.com:5061;transport=tls>'],
    [own, { ...PLAIN, requestUri: 'sip:sips:x@h' }, '<sip:gw.example.com:5061;transport=tls>'],
    [own, { ...PLAIN, topRecordRoute: '"P" <  SIPS:p;lr>' }, '<sips:gw.example.com:5061;transport=tls>'],
    [own, { ...PLAIN, topRecordRoute: '<sip:p;lr>, <sips:q>' }, '<sip:gw.example.com:5061;transport=tls>'],
    [{ ...own, transport: 'tcp' }, { ...PLAIN, requestUri: 'sips:x@h' }, '<sip:gw.example.com:5061;transport=tcp>'],
    [{ ...own, port: null }, PLAIN, '<sip:gw.example.com;transport=tls>'],
    [{ ...own, host: '2001:db8::1' }, PLAIN, '<sip:[2001:db8::1]:5061;transport=tls>'],
    [{ ...own, host: '2001:db8::1', port: null }, PLAIN, '<sip:[2001:db8::1];transport=tls>'],
  ])('is built from %j in answer to %j as %s', (address, head, contact) => {
    expect(ownContact(address, head)).toBe(contact);
  });

  it.each([
    ['<sip:other:5061;transport=tls>', '<sip:gw.example.com:5061;transport=tls>'],
    ['<SIPS:other:5061;transport=tls>', '<sips:gw.example.com:5061;transport=tls>'],
    ['<sip:other;x=<sips:>', '<sip:gw.example.com:5061;transport=tls>'],
  ])('replaces another host’s %s by %s', (contact, moved) => {
    expect(movedContact(own, contact)).toBe(moved);
  });
});

it.each([
  ['SIP:A@Carrier.example;lr', 'Carrier.example'],
  ['sip:carrier?x=y', 'carrier'],
  ['sip:a@[2001:DB8::192.0.2.1]', '[2001:DB8::192.0.2.1]'],
  ['xsip:carrier', undefined],
  ['sip:', undefined],
])('the host of %s is %s', (uri, host) => {
  expect(hostOf(uri)).toBe(host);
});
