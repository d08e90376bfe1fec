import { describe, expect, it } from 'vitest';
import { identityOf, namesSipDomain } from '../../../../src/sip/transport/tls-identity.js';

const certificate = (subjectaltname: string | undefined, commonName?: string | string[]) => ({
  subjectaltname,
  subject: { CN: commonName },
});

describe('the identity in a certificate', () => {
  it.each([
    ['DNS:a.test, URI:sip:a.test', 'a', 'DNS:a.test, URI:sip:a.test'],
    ['IP Address:127.0.0.1, email:x@a.test', 'a', 'CN:a'],
    [undefined, 'A Carrier', 'CN:A Carrier'],
    [undefined, ['first', 'second'], 'CN:first'],
    [undefined, undefined, ''],
    // Node.js quotes what looks like several names: none of it may pass as one.
    ['DNS:"good.test\\u002c DNS:forged.test", DNS:b.test', 'b', 'DNS:b.test'],
    ['URI:"sip:x\\u002c DNS:forged.test"', 'b', 'CN:b'],
    [undefined, 'a\r\nX-Forged: yes', ''],
    [undefined, 'a, DNS:forged.test', ''],
  ])('[5922 §7.1] of %j with the common name %j is %j', (sans, commonName, identity) => {
    expect(identityOf(certificate(sans, commonName))).toBe(identity);
  });

  it.each([
    ['URI:sip:example.com', true],
    ['DNS:sip7.example.com, URI:sips:EXAMPLE.com', true],
    ['URI:sip:user@example.com', false],
    ['URI:https:example.com', false],
    ['DNS:example.com', false],
  ])('[5922 §7.1] of %s is valid for the SIP domain example.com: %s', (sans, expected) => {
    expect(namesSipDomain(certificate(sans), 'example.com')).toBe(expected);
  });
});
