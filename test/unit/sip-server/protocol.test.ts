import { describe, expect, it } from 'vitest';
import { arrangeHeaders, parseAppMessage } from '../../../src/sip-server/app-message.js';
import { encodeFrame, FrameDecoder, formatSip, frameTime, parseCommand } from '../../../src/sip-server/control-protocol.js';
import { Router } from '../../../src/sip-server/applications.js';

describe('the decoder of control frames', () => {
  it('finds the same frames wherever the reads fall, also inside the length', () => {
    const stream = encodeFrame('a|ping') + encodeFrame('b|route|invite') + '0#' + '00008#idA|ping';
    for (let size = 1; size <= stream.length; size += 1) {
      const decoder = new FrameDecoder(1_000);
      const items = [];
      for (let at = 0; at < stream.length; at += size) items.push(...decoder.push(stream.slice(at, at + size)));
      expect(items.map((item) => (item.type === 'frame' ? item.payload : item.reason))).toEqual(['a|ping', 'b|route|invite', 'idA|ping']);
    }
  });

  it.each(['x#ping', '12345678', '1234567x', '#a'])('spoils the stream at %j, once', (bytes) => {
    const decoder = new FrameDecoder(1_000);
    expect(decoder.push(bytes)).toMatchObject([{ type: 'error' }]);
    expect(decoder.push(encodeFrame('a|ping'))).toEqual([]);
  });

  it('accepts a frame at the limit and refuses one above it before its payload has come', () => {
    expect(new FrameDecoder(5).push('5#hello')).toEqual([{ type: 'frame', payload: 'hello' }]);
    expect(new FrameDecoder(5).push('6#')).toMatchObject([{ type: 'error', reason: 'a frame of 6 bytes is over the limit of 5' }]);
  });
});

describe('the codec of meta lines', () => {
  it('reads what drachtio-srf sends', () => {
    expect(parseCommand('1|authenticate|cymru|')).toEqual({ verb: 'authenticate', id: '1', secret: 'cymru', tags: [] });
    expect(parseCommand('1|authenticate|cymru|a,b')).toMatchObject({ tags: ['a', 'b'] });
    expect(parseCommand('2|ping|a|b')).toEqual({ verb: 'ping', id: '2' });
    expect(parseCommand('3|remove_route|invite')).toEqual({ verb: 'remove_route', id: '3', method: 'invite' });
    expect(parseCommand('4|sip|txn|dlg;from-tag=x\r\nBYE sip:placeholder SIP/2.0\r\n\r\n')).toEqual({
      verb: 'sip',
      id: '4',
      transactionId: 'txn',
      dialogId: 'dlg;from-tag=x',
      routeUrl: '',
      text: 'BYE sip:placeholder SIP/2.0\r\n\r\n',
    });
    expect(parseCommand('5|frobnicate|x')).toEqual({ verb: 'invalid', id: '5', reason: 'Unknown message type' });
    expect(parseCommand('ping')).toEqual({ verb: 'invalid', id: 'ping', reason: 'Invalid message format' });
  });

  it('writes at least ten tokens, with an empty dialog id in its place', () => {
    const frame = formatSip('id', {
      source: 'network',
      sizeBytes: 7,
      peer: { protocol: 'tls', address: '192.0.2.1', port: 5061 },
      time: '09:00:28.452657',
      transactionId: 'txn',
      dialogId: '',
      receivedOn: { address: '127.0.0.1', port: 25_060 },
      text: 'OPTIONS',
    });
    expect(frame).toBe('id|sip|network|7|tls|192.0.2.1|5061|09:00:28.452657|txn||127.0.0.1|25060|\r\nOPTIONS');
  });

  it('writes times as UTC with six digits', () => {
    expect(frameTime(Date.UTC(2026, 0, 1, 9, 0, 28) + 52.5)).toBe('09:00:28.052500');
    expect(frameTime(Date.UTC(2026, 0, 1, 9, 0, 29))).toBe('09:00:29.000000');
  });
});

describe('the parser of what an application sends', () => {
  const own = { address: '127.0.0.1', port: 25_060 };
  const arranged = (text: string): string[] => {
    const message = parseAppMessage(text)!;
    return arrangeHeaders(message.headers, message.body, own, new Set(['from', 'to', 'call-id', 'cseq'])).map(({ line }) => line);
  };

  it('drops the server’s headers, keeps the case of X- headers, capitalises other custom names, and replaces localhost', () => {
    expect(
      arranged(
        'SIP/2.0 200 OK\r\nCall-ID: a\r\ncseq: 1 INVITE\r\nX-Foo: bar\r\nx-lower: 1\r\nmy-hdr: 2\r\nvia: SIP/2.0/UDP 1.1.1.1\r\nrecord-route: <sip:1.1.1.1>\r\ncontact: sip:me@localhost\r\nserver: mine\r\np-asserted-identity: <sip:pai@localhost>\r\nbad name: x\r\n\r\nv=0\r\n',
      ),
    ).toEqual([
      'Contact: <sip:me@127.0.0.1:25060>',
      'Server: mine',
      'Content-Type: application/sdp',
      'Content-Length: 5',
      'X-Foo: bar',
      'x-lower: 1',
      'My-Hdr: 2',
      'P-Asserted-Identity: <sip:pai@127.0.0.1:25060>',
    ]);
  });

  it('lets no bare line feed into a header', () => {
    expect(arranged('SIP/2.0 486 Busy\r\nX-A: 1\nInjected: 2\r\nX-B: 3\r\n\r\n')).toEqual(['Content-Length: 0', 'X-B: 3']);
  });

  it('tells a request, a response and neither apart', () => {
    expect(parseAppMessage('BYE sip:placeholder SIP/2.0\r\n\r\n')).toMatchObject({
      kind: 'request',
      method: 'BYE',
      uri: 'sip:placeholder',
    });
    expect(parseAppMessage('SIP/2.0 180 Ringing\r\ncseq: 1 INVITE')).toMatchObject({ kind: 'response', status: 180, reason: 'Ringing' });
    expect(parseAppMessage('hello')).toBeUndefined();
  });
});

describe('Router', () => {
  it('serves applications in turn; a method routed twice has two turns', () => {
    const router = new Router<string>();
    for (const app of ['A', 'B', 'C', 'C']) router.add('invite', app);
    expect(Array.from({ length: 8 }, () => router.next('invite')).join('')).toBe('ABCCABCC');
    router.removeAll('B');
    expect(Array.from({ length: 3 }, () => router.next('invite'))).not.toContain('B');
  });

  it('withdraws only the method that was named', () => {
    const router = new Router<string>();
    router.add('invite', 'A');
    router.add('options', 'A');
    router.remove('invite', 'A');
    expect([router.next('invite'), router.next('options'), router.methods()]).toEqual([undefined, 'A', ['options']]);
  });
});
