import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAppMessage } from '../../src/sip-server/app-message.js';
import { encodeFrame, FrameDecoder, parseCommand } from '../../src/sip-server/control-protocol.js';
import { readCoreHeaders, parseVia } from '../../src/sip/message/core-headers.js';
import { getHeader, getList, splitList, type SipMessage, serialize } from '../../src/sip/message/message.js';
import { parseNameAddr, tagOf, parseSipUri } from '../../src/sip/message/uri.js';
import { parseMessage } from '../../src/sip/message/parse.js';
import { StreamFramer } from '../../src/sip/message/stream-framer.js';

const LIMITS = { maxHeaders: 200, maxHeaderBytes: 16_384, maxHeadBytes: 65_536, maxBodyBytes: 65_536 };
const RUNS = { numRuns: 500 };

// Valid parts, after the grammar of RFC 3261 §25.1.
const TOKEN_CHARS = Array.from("abcXYZ019-.!%*_+`'~");
const token = fc.string({ unit: fc.constantFrom(...TOKEN_CHARS), minLength: 1, maxLength: 12 });
const host = fc.constantFrom('example.com', '192.0.2.1', '[2001:db8::1]', 'a-b.c9');
const port = fc.option(fc.integer({ min: 1, max: 65_535 }), { nil: null });
const user = fc.string({ unit: fc.constantFrom(...Array.from("ab9-_.!~*'()&=+$,;?/"), '%40', '%00'), minLength: 1, maxLength: 12 });
/** UTF-8 as bytes, quotes and backslashes escaped. */
const quoted = fc
  .string({ unit: 'grapheme', maxLength: 12 })
  .map((text) => Buffer.from(text.replace(/[\r\n]/g, ' '), 'utf8').toString('latin1'))
  .map((text) => `"${text.replace(/["\\\0]/g, '\\$&')}"`);
const lws = fc.constantFrom('', ' ', '\t ', '\r\n ', '\r\n\t');
const uri = fc
  .tuple(fc.constantFrom('sip', 'sips', 'SIP'), fc.option(user), host, port, fc.constantFrom('', ';lr', ';transport=tls;lr'))
  .map(([scheme, name, at, number, params]) => ({
    text: `${scheme}:${name === null ? '' : `${name}@`}${at}${number === null ? '' : `:${number}`}${params}`,
    user: name,
    host: at.replace(/[[\]]/g, ''),
    port: number,
  }));
const address = fc.tuple(fc.oneof(quoted, fc.constant('')), lws, uri, lws, token).map(([name, before, { text }, between, tag]) => ({
  text: `${name}${before}<${text}>${between};tag=${tag}`,
  displayName: name,
  uri: text,
  tag,
}));
const via = fc.tuple(token, host, port, token).map(([transport, at, number, branch]) => ({
  text: `SIP/2.0/${transport} ${at}${number === null ? '' : `:${number}`};branch=z9hG4bK${branch}`,
  host: at.replace(/[[\]]/g, ''),
  port: number,
  branch: `z9hG4bK${branch}`,
}));

const unfolded = (text: string): string => text.replace(/\r\n[ \t]+/g, ' ').replace(/^[ \t]+|[ \t]+$/g, '');

const RESERVED = new Set(['via', 'v', 'from', 'f', 'to', 't', 'call-id', 'i', 'cseq', 'content-length', 'l', 'max-forwards']);
const extension = fc
  .tuple(token, lws, fc.string({ unit: fc.constantFrom(...Array.from('abc ,;:"<>\\='), '\xa0', '\xff'), maxLength: 20 }))
  .filter(([name]) => !RESERVED.has(name.toLowerCase()))
  .map(([name, before, value]) => `${name}:${before}${value}`);

const valid = fc.record({
  method: token,
  uri: uri.map(({ text }) => text),
  vias: fc.array(via, { minLength: 1, maxLength: 4 }),
  from: address,
  to: address,
  callId: token,
  cseq: fc.nat(2 ** 31 - 1),
  extensions: fc.array(extension, { maxLength: 6 }),
  body: fc.uint8Array({ maxLength: 60 }).map((data) => Buffer.from(data).toString('latin1')),
});

describe('the parsers', () => {
  it('[3261 §7] read a valid SIP message, write it back unchanged, cut it out of a stream, and give the parts that were meant', () => {
    fc.assert(
      fc.property(valid, (parts) => {
        const text = [
          `${parts.method} ${parts.uri} SIP/2.0`,
          ...parts.vias.map((value) => `Via: ${value.text}`),
          `f: ${parts.from.text}`,
          `To:${parts.to.text}`,
          `Call-ID: ${parts.callId}`,
          `CSeq: ${parts.cseq} ${parts.method}`,
          ...parts.extensions,
          `l: ${parts.body.length}`,
          '',
          parts.body,
        ].join('\r\n');
        const message = taken(text);
        expect(serialize(message)).toBe(text);
        expect(new StreamFramer(LIMITS).push(text)).toEqual([{ type: 'message', text }]);
        const core = readCoreHeaders(message);
        expect(core).toMatchObject({
          ok: true,
          value: { callId: parts.callId, fromTag: parts.from.tag, toTag: parts.to.tag, cseq: { number: parts.cseq, method: parts.method } },
        });
        expect(getList(message, 'via')).toEqual(parts.vias.map((value) => value.text));
        expect(getHeader(message, 'from')).toBe(unfolded(parts.from.text));
      }),
      RUNS,
    );
  });

  it('[3261 §19.1] [3261 §20.10] [3261 §20.42] read valid URIs, name-addrs, Vias and lists of them as they were meant', () => {
    fc.assert(
      fc.property(uri, fc.array(address, { minLength: 1, maxLength: 4 }), via, (one, addresses, hop) => {
        expect(parseSipUri(one.text)).toMatchObject({ user: one.user, host: one.host, port: one.port });
        for (const value of addresses) {
          expect(parseNameAddr(unfolded(value.text))).toMatchObject({ displayName: value.displayName, uri: value.uri });
          expect(tagOf(unfolded(value.text))).toBe(value.tag);
        }
        const texts = addresses.map((value) => unfolded(value.text));
        expect(splitList(texts.join(', '))).toEqual(texts);
        const read = parseVia(hop.text);
        expect(read).toMatchObject({ host: hop.host, port: hop.port });
        expect(read?.params.get('branch')).toBe(hop.branch);
      }),
      RUNS,
    );
  });

  it('give valid frames back wherever the reads end, and read what the frames hold', () => {
    const payload = fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 80 });
    fc.assert(
      fc.property(fc.array(payload, { maxLength: 6 }), fc.integer({ min: 1, max: 40 }), (payloads, size) => {
        const stream = payloads.map(encodeFrame).join('');
        const decoder = new FrameDecoder(1_000);
        const items = [];
        for (let at = 0; at < stream.length; at += size) items.push(...decoder.push(stream.slice(at, at + size)));
        expect(items).toEqual(payloads.map((text) => ({ type: 'frame', payload: text })));
      }),
      RUNS,
    );
  });

  it('keep the parts of a valid command and of an application’s message', () => {
    const field = fc.string({ unit: fc.constantFrom(...Array.from('abc019-;=@')), minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(
        field,
        field,
        field,
        fc.constantFrom('INVITE', 'BYE', 'INFO'),
        uri,
        address,
        (id, transactionId, dialogId, method, { text }, from) => {
          const message = `${method} ${text} SIP/2.0\r\nFrom: ${unfolded(from.text)}\r\n\r\nbody`;
          expect(parseCommand(`${id}|sip|${transactionId}|${dialogId}\r\n${message}`)).toMatchObject({
            verb: 'sip',
            id,
            transactionId,
            dialogId,
            text: message,
          });
          expect(parseAppMessage(message)).toMatchObject({ kind: 'request', method, uri: text, body: 'body' });
        },
      ),
      RUNS,
    );
  });
});

// Work that grows as the text does is through with this in milliseconds. Work that grows with its square takes minutes, and the test hangs.
const LONG = 500_000;

describe('the work of the parser', () => {
  const wide = { maxHeaderBytes: 2 * LONG, maxHeaders: 2 * LONG, maxHeadBytes: 2 * LONG, maxBodyBytes: 2 * LONG };
  const line = (name: string, filler: string): string => `${name}${filler.repeat(LONG / filler.length)}x`;
  const FILLERS = [' ', '\t', ';', ',', '"', '<', '\\', 'a', '-', '.', ':', '@', '=', '%', '/', '[', '\r\n ', ';"', 'a.', '\\"', ';tag='];

  it.each(FILLERS)('grows no faster than the headers when they are full of %j', (filler) => {
    const names = ['Via: SIP/2.0/TLS h', 'Via: SIP', 'From: ', 'To: <sip:a@b>', 'CSeq: 1', 'Content-Length: 5', 'X'];
    for (const name of names) {
      const text = `OPTIONS sip:a@b SIP/2.0\r\n${line(name, filler)}\r\n\r\n`;
      new StreamFramer(wide).push(text);
      const parsed = parseMessage(text, wide);
      if (parsed.ok) readCoreHeaders(parsed.value);
    }
  });

  it.each(['X: ', `Content-Length: ${String(LONG)}\r\n\r\n`])('grows no faster than a message that comes byte by byte: %j', (head) => {
    const framer = new StreamFramer(wide);
    const text = `OPTIONS sip:a@b SIP/2.0\r\n${head}${'a\r\nb:'.repeat(LONG / 5)}`;
    for (const byte of text) framer.push(byte);
  });
});

describe('a framer', () => {
  it('keeps no more than one message of the limits, however much it is sent', () => {
    const framer = new StreamFramer({ maxHeadBytes: 500, maxBodyBytes: 100 });
    const message = `OPTIONS sip:a@b SIP/2.0\r\nl: 100\r\n\r\n${'b'.repeat(100)}`;
    let taken = 0;
    for (let count = 0; count < 10_000; count += 1) taken += framer.push(message).length;
    expect(taken).toBe(10_000);
    expect(framer.isMidMessage).toBe(false);
    // Neither a head nor a body may be longer than it may: the first byte too many ends it.
    const head = new StreamFramer({ maxHeadBytes: 500, maxBodyBytes: 100 });
    const endless = `OPTIONS sip:a@b SIP/2.0\r\nX: ${'a'.repeat(2_000)}`;
    const ended = Array.from(endless).findIndex((byte) => head.push(byte).length > 0);
    expect(ended).toBe(503);
    expect(head.isMidMessage).toBe(false);
  });
});

function taken(text: string): SipMessage {
  const result = parseMessage(text, LIMITS);
  if (!result.ok) throw new Error(result.error.reason);
  return result.value;
}
