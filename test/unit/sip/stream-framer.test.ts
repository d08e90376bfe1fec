import { describe, expect, it } from 'vitest';
import { StreamFramer } from '../../../src/sip/message/stream-framer.js';

const LIMITS = { maxHeadBytes: 500, maxBodyBytes: 100 };
const MESSAGE = 'OPTIONS sip:a@b SIP/2.0\r\nVia: x\r\nContent-Type: text/plain\r\nl: 5\r\n\r\nhello';

describe('StreamFramer', () => {
  it('[3261 §18.3] finds the same messages wherever the reads fall', () => {
    const stream = `${MESSAGE}\r\n\r\n${MESSAGE}`;
    for (let size = 1; size < stream.length; size += 1) {
      const framer = new StreamFramer(LIMITS);
      const items = [];
      for (let at = 0; at < stream.length; at += size) items.push(...framer.push(stream.slice(at, at + size)));
      expect(items).toEqual([{ type: 'message', text: MESSAGE }, { type: 'ping' }, { type: 'message', text: MESSAGE }]);
    }
  });

  it('[5626 §4.4.1] tells a ping from a pong', () => {
    const framer = new StreamFramer(LIMITS);
    expect(framer.push('\r\n\r\n')).toEqual([{ type: 'ping' }]);
    expect(framer.push('\r\n')).toEqual([]);
    expect(framer.push(MESSAGE)).toEqual([{ type: 'pong' }, { type: 'message', text: MESSAGE }]);
  });

  it.each([
    ['text that is not SIP', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['binary garbage', '\x16\x03\x01\x02\x00\x01\x00', 400],
    ['headers without end', `OPTIONS sip:a@b SIP/2.0\r\nX: ${'a'.repeat(600)}`, 513],
    ['a body over the limit', MESSAGE.replace('l: 5', 'l: 101'), 413],
    ['a negative length', MESSAGE.replace('l: 5', 'l: -5'), 400],
    ['a huge length', MESSAGE.replace('l: 5', 'l: 99999999999'), 400],
    ['two lengths that differ', MESSAGE.replace('l: 5', 'l: 5\r\nContent-Length: 6'), 400],
    ['a body without a length', MESSAGE.replace('l: 5\r\n', ''), 400],
  ])('spoils the stream at %s, once', (_what, text, status) => {
    const framer = new StreamFramer(LIMITS);
    expect(framer.push(text)).toEqual([expect.objectContaining({ type: 'error', status })]);
    expect(framer.push(MESSAGE)).toEqual([]);
  });

  it('[3261 §7] answers 400 to lines that end with LF alone, however the bytes arrive', () => {
    const head = 'OPTIONS sip:a@b SIP/2.0\nVia: x\nCSeq: 1 OPTIONS\nSubject: long enough for the waiting to be skipped\nl: 0\n\n';
    const error = { type: 'error', status: 400, reason: 'Line Ends Without CR', head: head.replaceAll('\n', '\r\n') };
    for (let size = 1; size <= head.length; size += 1) {
      const framer = new StreamFramer(LIMITS);
      const items = [];
      for (let at = 0; at < head.length; at += size) items.push(...framer.push(head.slice(at, at + size)));
      expect(items).toEqual([error]);
    }
    const [endless] = new StreamFramer(LIMITS).push(`OPTIONS sip:a@b SIP/2.0\nX: ${'a'.repeat(600)}`);
    expect(endless).toMatchObject({ type: 'error', status: 513 });
  });

  it('accepts a message without body and without length', () => {
    const text = 'OPTIONS sip:a@b SIP/2.0\r\nVia: x\r\n\r\n';
    expect(new StreamFramer(LIMITS).push(text)).toEqual([{ type: 'message', text }]);
  });

  it('has whether a message has begun', () => {
    const framer = new StreamFramer(LIMITS);
    expect(framer.isMidMessage).toBe(false);
    framer.push('OPT');
    expect(framer.isMidMessage).toBe(true);
  });
});
