import { describe, expect, it } from 'vitest';
import { maskSecrets } from '../../../../src/gateway/call/secrets.js';
import { withItsLength } from '../../../../src/observability/hep/sip-text.js';
import { offerSdp } from '../../../support/sdp.js';

describe('a SIP message for a collector', () => {
  it.each(['Content-Length: ', 'content-length :', 'l:'])('has the length of its body after its keys were masked: %s', (name) => {
    const sdp = offerSdp();
    const masked = maskSecrets(`INVITE sip:1@gw SIP/2.0\r\nCall-ID: a\r\n${name}${String(sdp.length)}\r\nSubject: ü\r\n\r\n${sdp}`);
    const [head = '', body = ''] = withItsLength(masked).split('\r\n\r\n');
    expect(body).toContain('***');
    expect(head.split('\r\n')).toEqual(['INVITE sip:1@gw SIP/2.0', 'Call-ID: a', `${name}${String(body.length)}`, 'Subject: ü']);
  });

  it.each(['SIP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n', 'SIP/2.0 200 OK\r\nVia: x\r\n\r\n', 'SIP/2.0 200 OK', ''])(
    'is unchanged: %j',
    (message) => expect(withItsLength(message)).toBe(message),
  );
});
