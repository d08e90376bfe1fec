import { describe, expect, it } from 'vitest';
import { sipEndpointParts, sipEndpointProblem } from '../../../src/lib/sip-endpoint.js';
import { isSourceAddress } from '../../../src/lib/address.js';

describe('sip_endpoint', () => {
  it.each([
    'pbx.example.com',
    'pbx.example.com:5061',
    'localhost',
    '203.0.113.7',
    '203.0.113.7:5060',
    '[2001:db8::1]',
    '[2001:db8::1]:5061',
    '[::ffff:203.0.113.7]',
    'sip:pbx.example.com',
    'SIPS:pbx.example.com:5061',
    'sip:+15551234567@pbx.example.com;transport=tls',
    'sip:a%20b@pbx.example.com;lr;maddr=203.0.113.7',
    'sip:user@[2001:db8::1]:5060',
    `${'a'.repeat(63)}.example`,
    'pbx.example.com:1',
    'pbx.example.com:65535',
    'pbx.3com',
    'pbx.com3',
    '1.pbx',
    `${`${'a'.repeat(63)}.`.repeat(3)}${'a'.repeat(61)}`,
  ])('may be %s', (text) => {
    expect(sipEndpointProblem(text)).toBeNull();
  });

  it.each([
    '',
    ' ',
    'a b',
    'pbx.example.com ',
    'pbx.example.com\r\nVia: x',
    'sip:a@b\nc',
    'pbx.example.com\u0000',
    'pbx.exämple.com',
    'sip:',
    'sip:@pbx.example.com',
    'sip:user:secret@pbx.example.com',
    'sip:a@b@c',
    'sip:pbx.example.com?Replaces=x',
    'sip:pbx.example.com;',
    'sip:pbx.example.com;=x',
    'tel:+15551234567',
    'https://pbx.example.com',
    '<sip:pbx.example.com>',
    'pbx.example.com:0',
    'pbx.example.com:65536',
    'pbx.example.com:',
    'pbx.example.com:5061:1',
    'user@pbx.example.com',
    'pbx..example.com',
    '-pbx.example.com',
    'pbx-.example.com',
    'pbx_1.example.com',
    '203.0.113.256',
    '203.0.113',
    '203.0.113.07',
    '[2001:db8::1',
    '[2001:db8::1::2]',
    '[1:2:3]',
    '[fe80::1%25eth0]',
    '2001:db8::1',
    `${'a'.repeat(64)}.example`,
    `${'a.'.repeat(128)}example`,
    `${`${'a'.repeat(63)}.`.repeat(3)}${'a'.repeat(62)}`,
  ])('may not be %j', (text) => {
    expect(sipEndpointProblem(text)).toMatch(/^must /);
  });
});

describe('the parts of a sip_endpoint', () => {
  it.each([
    ['pbx.example.com', { isSips: false, host: 'pbx.example.com' }],
    ['SIPS:pbx.example.com:5061', { isSips: true, host: 'pbx.example.com', port: 5_061 }],
    ['sip:a;x@pbx.example.com:5060;lr', { isSips: false, host: 'pbx.example.com', port: 5_060 }],
    ['sips:user@[2001:db8::1]:5062', { isSips: true, host: '[2001:db8::1]', port: 5_062 }],
    ['[2001:db8::1]', { isSips: false, host: '[2001:db8::1]' }],
  ])('are read from %s', (endpoint, parts) => {
    expect(sipEndpointParts(endpoint)).toEqual(parts);
  });

  it.each([
    ['', 'must not be empty'],
    ['a'.repeat(257), 'must be at most 256 characters'],
    ['a b', 'must be printable ASCII without spaces or line breaks'],
    ['sip:user:secret@pbx.example.com', /: the part before @ is not a user name \(a password is not accepted\)$/],
    ['sip:pbx.example.com?Replaces=x', /: headers after \? are not accepted$/],
    ['sip:pbx.example.com;', /: its parameters are malformed$/],
    ['pbx.example.com:0', /: the port must be 1 to 65535$/],
    ['pbx..example.com', /^must be a sip: or sips: URI or host\[:port\]: the host is not a name or an address$/],
  ])('are missing in %j, and the problem is named', (text, problem) => {
    expect(sipEndpointProblem(text)).toMatch(problem);
  });

  it('may have 256 characters', () => {
    expect(sipEndpointProblem(`sip:a@${'a'.repeat(60)}.example;x=${'y'.repeat(256 - 77)}`)).toBeNull();
  });
});

describe('allowed_sources', () => {
  it.each([
    '203.0.113.7',
    '203.0.113.0/24',
    '203.0.113.7/24',
    '0.0.0.0/0',
    '::/0',
    '2001:db8::/32',
    '::1',
    '::ffff:10.0.0.1',
    '1:2:3:4:5:6:7:8/128',
  ])('may be %s', (text) => {
    expect(isSourceAddress(text)).toBe(true);
  });

  it.each([
    '',
    'any',
    '203.0.113.0/33',
    '203.0.113.0/',
    '203.0.113.0/-1',
    '203.0.113.0/08',
    '203.0.113.0/24/24',
    '203.0.113',
    '256.0.0.1',
    '010.0.0.1',
    '::/129',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7::8',
    'fe80::1%eth0',
    '10.0.0.1 ',
    '10.0.0.1:5060',
  ])('may not be %j', (text) => {
    expect(isSourceAddress(text)).toBe(false);
  });
});
