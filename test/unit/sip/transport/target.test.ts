import { describe, expect, it } from 'vitest';
import { insteadOfUdp, resolveTarget } from '../../../../src/sip/transport/service-location.js';

describe('the next hop', () => {
  it.each([
    ['sip:x@a.test', 'UDP', 'a.test', null],
    ['sip:x@a.test;transport=tcp', 'TCP', 'a.test', null],
    ['sip:x@a.test:5070;transport=TLS', 'TLS', 'a.test', 5_070],
    ['sips:x@a.test;transport=tcp', 'TLS', 'a.test', null],
    ['<sip:x@a.test:5080;transport=tcp>;lr', 'TCP', 'a.test', 5_080],
    ['"A" <sip:a.test;lr>', 'UDP', 'a.test', null],
    ['sip:x@[2001:db8::1]:5070', 'UDP', '2001:db8::1', 5_070],
    ['sip:x@a.test;maddr=192.0.2.1', 'UDP', '192.0.2.1', null],
  ])('[3263 §4.1] is found for %s', (uri, transport, host, port) => {
    expect(resolveTarget(uri)).toEqual({ transport, host, port });
  });

  it('uses the usual transport when the URI names none', () => {
    expect(resolveTarget('sip:a.test', 'TLS')).toMatchObject({ transport: 'TLS' });
  });

  it.each(['tel:+15550100', 'sip:x@a.test;transport=ws', '<sip:x@a.test', ''])('is undefined for %j', (uri) => {
    expect(resolveTarget(uri)).toBeUndefined();
  });
});

describe('a request that is too long for UDP', () => {
  it('[3261 §18.1.1] goes over TCP from 1301 bytes on', () => {
    expect(insteadOfUdp('sip:x@a.test', 1_300)).toBeUndefined();
    expect(insteadOfUdp('sip:x@a.test', 1_301)).toEqual({ transport: 'TCP', host: 'a.test', port: null, isAttempt: true });
    expect(insteadOfUdp('<sip:192.0.2.1:5070;lr>', 1_301)).toMatchObject({ host: '192.0.2.1', port: 5_070 });
  });

  it.each(['sip:x@a.test;transport=udp', 'sip:x@a.test;transport=tcp', 'sips:x@a.test', 'tel:+15550100'])(
    'stays on UDP where the URI names the transport: %s',
    (uri) => {
      expect(insteadOfUdp(uri, 5_000)).toBeUndefined();
    },
  );
});
