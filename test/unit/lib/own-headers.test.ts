import { expect, it } from 'vitest';
import { isOwnServer, readTrunkTls, withoutOwnHeaders, writeTrunkTls } from '../../../src/lib/own-headers.js';

const BODY = 'v=0\r\nX-Trunkline-Tls: of the body\r\n';
const asSent = `INVITE sip:1@gw SIP/2.0\r\nTo: <sip:1@gw>\r\nX-Trunkline-Tlsx: the caller's\r\nContent-Length: ${String(BODY.length)}\r\n\r\n${BODY}`;

it('a message is shown as the peer sent it, without what the SIP server added', () => {
  const told = asSent.replace(
    '\r\n\r\n',
    '\r\nX-Trunkline-Tls-Identity: DNS:carrier.test\r\nX-Trunkline-Tls: TLSv1.3 TLS_AES_256_GCM_SHA384\r\n\r\n',
  );
  expect(withoutOwnHeaders(told)).toBe(asSent);
  expect(withoutOwnHeaders(asSent)).toBe(asSent);
});

it('a text that was cut within its head is shown without our headers, too', () => {
  expect(withoutOwnHeaders('INVITE sip:1@gw SIP/2.0\r\nX-Trunkline-Tls: TLSv1.3 x\r\nTo: <si')).toBe('INVITE sip:1@gw SIP/2.0\r\nTo: <si');
});

it.each([
  ['0.9.4-trunkline', true],
  ['v0.9.4-trunkline.2', true],
  ['0.9.4', false],
  ['0.9.4-trunklines', false],
])('a SIP server of version %s counts as ours: %s', (version, isOwn) => {
  expect(isOwnServer(version)).toBe(isOwn);
});

it.each([{}, { ca: 'CA\r\n' }, { ca: 'CA', names: ['a.example', 'b.example'], certificate: 'PEM\n', key: 'PEM' }])(
  'the TLS settings of a trunk, %j, make one line of a header',
  (tls) => {
    const line = writeTrunkTls(tls);
    expect(line).toMatch(/^[\w+/=]+$/);
    expect(readTrunkTls(line)).toEqual(tls);
  },
);

it.each(['', 'no JSON', '7', 'null', '"text"', '{"ca":7}', '{"key":null}', '{"certificate":[]}', '{"names":"a"}', '{"names":["a",7]}'])(
  'the text %s is not read as TLS settings',
  (text) => {
    expect(readTrunkTls(Buffer.from(text).toString('base64'))).toBeUndefined();
  },
);
