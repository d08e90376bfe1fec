import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { textOfBody, uncoded } from '../../../../src/gateway/net/answer-body.js';

const TEXT = '<Response><Say>Grüße, café</Say></Response>';
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');
const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le');
const declared = (encoding: string): string => `<?xml version="1.0" encoding="${encoding}"?>${TEXT}`;

describe('the text of an answer', () => {
  it.each([
    ['UTF-8 without a declaration', Buffer.from(TEXT), '', TEXT],
    ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${TEXT}`), 'text/xml; charset=ISO-8859-1', TEXT],
    ['ISO-8859-1 by its Content-Type', latin1(TEXT), 'text/xml; charset=ISO-8859-1', TEXT],
    ['ISO-8859-1 by a quoted Content-Type', latin1(TEXT), 'application/json;charset="latin1"; x=y', TEXT],
    ['ISO-8859-1 by its declaration', latin1(declared('ISO-8859-1')), 'text/xml', declared('ISO-8859-1')],
    ['windows-1252', Buffer.from([0x80, 0x93]), 'text/plain; charset=windows-1252', '€“'],
    ['Shift_JIS', Buffer.from([0x82, 0xb1]), 'text/plain; charset=Shift_JIS', 'こ'],
    [
      'UTF-8 by its Content-Type, whatever its declaration says',
      Buffer.from(declared('ISO-8859-1')),
      'text/xml; charset=utf-8',
      declared('ISO-8859-1'),
    ],
    ['UTF-16 with a byte order mark', utf16(`\ufeff${TEXT}`), 'text/xml', TEXT],
    ['UTF-16, big endian, with a byte order mark', utf16(`\ufeff${TEXT}`).swap16(), 'text/xml', TEXT],
    ['UTF-16 without a Content-Type', utf16(declared('UTF-16')), 'text/xml', declared('UTF-16')],
    ['UTF-16 by its Content-Type', utf16('{"a":1}'), 'application/json; charset=utf-16le', '{"a":1}'],
    ['a declaration of UTF-16 that is not', Buffer.from(declared('UTF-16')), 'text/xml', declared('UTF-16')],
    ['an unknown charset', Buffer.from(TEXT), 'text/xml; charset=klingon', TEXT],
    ['no bytes', Buffer.alloc(0), 'text/xml; charset=utf-16', ''],
  ])('is read from %s', (_how, bytes, contentType, text) => {
    expect(textOfBody(bytes, contentType)).toBe(text);
  });
});

describe('the content coding of an answer', () => {
  const plain = Buffer.from(TEXT.repeat(20));

  it.each([
    ['', plain],
    ['identity', plain],
    ['gzip', gzipSync(plain)],
    ['X-GZIP', gzipSync(plain)],
    ['deflate', deflateSync(plain)],
    ['deflate', deflateRawSync(plain)],
    ['br', brotliCompressSync(plain)],
    ['gzip, br', brotliCompressSync(gzipSync(plain))],
  ])('is removed: %s', async (coding, bytes) => {
    expect(await uncoded(bytes, coding, 10_000)).toEqual({ ok: true, value: plain });
  });

  it('may leave the body empty', async () => {
    expect(await uncoded(Buffer.alloc(0), 'gzip', 10)).toEqual({ ok: true, value: Buffer.alloc(0) });
  });

  it.each([
    ['gzip', plain, 'answered with a body that is not gzip, as its Content-Encoding says'],
    ['gzip', gzipSync(plain).subarray(0, 40), 'answered with a body that is not gzip, as its Content-Encoding says'],
    ['br', gzipSync(plain), 'answered with a body that is not br, as its Content-Encoding says'],
    ['zstd', plain, 'answered in a content coding that is none of gzip, deflate, br'],
    ['constructor', plain, 'answered in a content coding that is none of gzip, deflate, br'],
    ['gzip, gzip, gzip', plain, 'answered in too many content codings'],
  ])('is reported when it does not match: %s', async (coding, bytes, text) => {
    expect(await uncoded(bytes, coding, 10_000)).toEqual({ ok: false, error: { text } });
  });

  it.each([
    ['gzip', gzipSync(Buffer.alloc(50_000_000))],
    ['deflate', deflateSync(Buffer.alloc(50_000_000))],
    ['deflate', deflateRawSync(Buffer.alloc(50_000_000))],
    ['br', brotliCompressSync(Buffer.alloc(50_000_000))],
    ['br, gzip', gzipSync(brotliCompressSync(Buffer.alloc(50_000_000)))],
  ])('is given up when it grows beyond the limit: %s', async (coding, bytes) => {
    expect(await uncoded(bytes, coding, 65_536)).toEqual({ ok: false, error: 'too-large' });
  });
});
