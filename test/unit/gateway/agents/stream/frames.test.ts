import { describe, expect, it } from 'vitest';
import { closePayload, frameOf, FrameReader, OPCODE } from '../../../../../src/gateway/agents/stream/frames.js';

// RFC 6455. How pieces and faults are read: test/fuzz/web-socket.test.ts.

function read(...chunks: readonly (readonly number[])[]): string[] {
  const seen: string[] = [];
  const reader = new FrameReader(300, {
    onText: (buffer, start, end) => seen.push(`text ${buffer.toString('utf8', start, end)}`) > 0,
    onBinary: (_buffer, start, end) => seen.push(`binary of ${String(end - start)}`),
    onPing: (buffer, start, end) => seen.push(`ping ${buffer.toString('utf8', start, end)}`),
    onPong: (buffer, start, end) => seen.push(`pong ${buffer.toString('utf8', start, end)}`),
    onClose: (code, reason) => seen.push(`close ${String(code)} ${reason}`),
    onFault: (code) => seen.push(`fault ${String(code)}`),
  });
  for (const chunk of chunks) reader.read(Buffer.from(chunk), 0, chunk.length);
  return seen;
}

const HELLO = [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];

describe('the WebSocket reader', () => {
  it.each([
    ['a text', [HELLO], ['text Hello']],
    ['a text, a byte at a time', HELLO.map((byte) => [byte]), ['text Hello']],
    ['a text in two frames', [[0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f]], ['text Hello']],
    [
      'a ping between two frames of a text',
      [
        [0x01, 0x03, 0x48, 0x65, 0x6c],
        [0x89, 0x00],
        [0x80, 0x02, 0x6c, 0x6f],
      ],
      ['ping ', 'text Hello'],
    ],
    ['256 bytes', [[0x82, 0x7e, 0x01, 0x00, ...new Array<number>(256).fill(7)]], ['binary of 256']],
    ['64 kB, where the limit is 300 bytes', [[0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]], ['fault 1009']],
    ['a length of 2^32', [[0x82, 0x7f, 0, 0, 0, 1, 0, 0, 0, 0]], ['fault 1009']],
    ['the head of a masked text without its rest', [[0x81], [0xff]], ['fault 1002']],
    ['a masked text', [[0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]], ['fault 1002']],
  ])('reads the example of §5.7: %s', (_name, chunks, seen) => {
    expect(read(...chunks)).toEqual(seen);
  });
});

it('reads nothing after a close frame or a fault', () => {
  expect(read([0x88, 0x02, 0x03, 0xe8, ...HELLO], HELLO)).toEqual(['close 1000 ']);
  expect(read([0x83, 0x00, ...HELLO], HELLO)).toEqual(['fault 1002']);
});

it('bounds a message in many frames as a whole', () => {
  const part = [0x00, 0x64, ...new Array<number>(100).fill(0x61)];
  expect(read([0x02, 0x64, ...part.slice(2)], part, part, [0x80, 0x01])).toEqual(['fault 1009']);
  expect(read([0x02, 0x64, ...part.slice(2)], part, [0x80, 0x64, ...part.slice(2)])).toEqual(['binary of 300']);
});

describe('a frame that the gateway writes', () => {
  function unmasked(frame: Buffer): { readonly head: Buffer; readonly payload: Buffer } {
    const short = (frame[1] ?? 0) & 0x7f;
    const maskAt = short === 127 ? 10 : short === 126 ? 4 : 2;
    const mask = frame.subarray(maskAt, maskAt + 4);
    return { head: frame.subarray(0, maskAt), payload: Buffer.from(frame.subarray(maskAt + 4).map((byte, i) => byte ^ mask[i & 3]!)) };
  }

  it.each([
    [0, [0x82, 0x80]],
    [1, [0x82, 0x81]],
    [125, [0x82, 0xfd]],
    [126, [0x82, 0xfe, 0x00, 0x7e]],
    [8_191, [0x82, 0xfe, 0x1f, 0xff]],
    [8_194, [0x82, 0xfe, 0x20, 0x02]],
    [65_535, [0x82, 0xfe, 0xff, 0xff]],
    [65_537, [0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 1]],
  ])('has the right head for %i bytes', (length, head) => {
    const payload = Buffer.from(Uint8Array.from({ length }, (_, i) => (i * 7) & 0xff));
    const frame = unmasked(frameOf(OPCODE.binary, payload));
    expect([...frame.head]).toEqual(head);
    expect(frame.payload.equals(payload)).toBe(true);
  });

  it('has a text in UTF-8', () => {
    const { head, payload } = unmasked(frameOf(OPCODE.text, 'Grüße'));
    expect([[...head], payload.toString()]).toEqual([[0x81, 0x87], 'Grüße']);
  });

  it('is masked with another key each time', () => {
    const keys = Array.from({ length: 3_000 }, () => frameOf(OPCODE.ping, 'x').readUInt32BE(2));
    expect(new Set(keys).size).toBeGreaterThan(2_990);
  });

  it('closes with a code and at most 123 bytes of its reason', () => {
    expect(closePayload(1_000)).toEqual(Buffer.from([0x03, 0xe8]));
    expect(closePayload(1_011, 'x'.repeat(200))).toEqual(Buffer.concat([Buffer.from([0x03, 0xf3]), Buffer.alloc(123, 'x')]));
  });
});
