import { describe, expect, it } from 'vitest';
import { sipEndpointProblem } from '../../../src/lib/sip-endpoint.js';
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
  ])('%s is one', (text) => {
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
  ])('%j is none', (text) => {
    expect(sipEndpointProblem(text)).toMatch(/^must /);
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
  ])('%s is a source', (text) => {
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
  ])('%j is none', (text) => {
    expect(isSourceAddress(text)).toBe(false);
  });
});
