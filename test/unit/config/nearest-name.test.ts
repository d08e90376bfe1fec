import { expect, it } from 'vitest';
import { nearestName } from '../../../src/config/nearest-name.js';

const NAMES = ['sip.tls_port', 'sip.tcp_port', 'http.port'];

it.each([
  ['sip.tls_prot', 'sip.tls_port'],
  ['sip.tcp_prt', 'sip.tcp_port'],
  ['htp.port', 'http.port'],
  ['sip.tls_port', 'sip.tls_port'],
  ['colour', null],
  ['', null],
])('the name nearest to %j is %j', (wanted, expected) => {
  expect(nearestName(wanted, NAMES)).toBe(expected);
});

it('the nearest name is the first of two that are equally near', () => {
  expect(nearestName('b', ['ab', 'ac', 'bc'])).toBe('ab');
});
