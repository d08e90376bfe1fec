import type { Writable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import * as ws from 'ws';
import { FrameReader } from '../../src/gateway/agents/stream/frames.js';
import { UpgradeAnswer } from '../../src/gateway/agents/stream/upgrade.js';
import { turn } from '../support/turn.js';

// Whatever a server sends, in pieces of any size: read as the ws package's own reader reads it.

const MAX_BYTES = 2_000;

type ReceiverClass = new (options: object) => Writable;
type Frame = (data: Buffer, options: object) => Buffer[];
const { Receiver, Sender } = ws as unknown as { Receiver: ReceiverClass; Sender: { frame: Frame } };

function ours(chunks: readonly Buffer[]): string[] {
  const seen: string[] = [];
  const reader = new FrameReader(MAX_BYTES, {
    onText: (buffer, start, end) => {
      const text = buffer.subarray(start, end);
      const isText = Buffer.from(text.toString()).equals(text);
      if (isText) seen.push(`text ${text.toString('hex')}`);
      return isText;
    },
    onBinary: (buffer, start, end) => seen.push(`binary ${buffer.toString('hex', start, end)}`),
    onPing: (buffer, start, end) => seen.push(`ping ${buffer.toString('hex', start, end)}`),
    onPong: (buffer, start, end) => seen.push(`pong ${buffer.toString('hex', start, end)}`),
    onClose: (code, reason) => seen.push(`close ${String(code)} ${reason}`),
    onFault: (code) => seen.push(`fault ${String(code)}`),
  });
  for (const chunk of chunks) {
    // Its place is used again, as that of a socket is.
    const given = Buffer.concat([Buffer.alloc(3), chunk, Buffer.alloc(3)]);
    reader.read(given, 3, 3 + chunk.length);
    given.fill(0x55);
  }
  return seen;
}

async function theirs(chunks: readonly Buffer[]): Promise<string[]> {
  const seen: string[] = [];
  const receiver = new Receiver({ isServer: false, maxPayload: MAX_BYTES, allowSynchronousEvents: true, extensions: {} });
  receiver.on('message', (data: Buffer, isBinary: boolean) => seen.push(`${isBinary ? 'binary' : 'text'} ${data.toString('hex')}`));
  receiver.on('ping', (data: Buffer) => seen.push(`ping ${data.toString('hex')}`));
  receiver.on('pong', (data: Buffer) => seen.push(`pong ${data.toString('hex')}`));
  const over = { is: false };
  receiver.on('conclude', (code: number, reason: Buffer) => {
    over.is = true;
    seen.push(`close ${String(code)} ${reason.toString()}`);
  });
  receiver.on('error', (error: Error) => {
    const [code] = Object.getOwnPropertySymbols(error).map((symbol) => (error as unknown as Record<symbol, unknown>)[symbol]);
    if (!over.is) seen.push(`fault ${String(code)}`);
  });
  for (const chunk of chunks) if (!over.is && !receiver.destroyed) receiver.write(Buffer.from(chunk));
  await turn();
  return seen;
}

const payload = fc.oneof(
  fc.uint8Array({ maxLength: 140 }),
  fc.constantFrom(124, 125, 126, 127, 1_500, MAX_BYTES, MAX_BYTES + 1).map((length) => new Uint8Array(length).fill(0x61)),
  fc.string({ unit: 'binary', maxLength: 40 }).map((text) => Uint8Array.from(Buffer.from(text))),
  fc.constantFrom([0x03, 0xe8], [0x03, 0xed], [0x0f, 0xa0, 0x61], [0x03, 0xe8, 0xff], [0x03]).map((bytes) => Uint8Array.from(bytes)),
);
const frame = fc
  .record({
    payload,
    opcode: fc.constantFrom(0, 0, 1, 1, 2, 8, 9, 10, 3, 11),
    fin: fc.boolean(),
    rsv1: fc.integer({ max: 30, min: 0 }).map((roll) => roll === 0),
    mask: fc.integer({ max: 30, min: 0 }).map((roll) => roll === 0),
  })
  .map(({ payload: data, opcode, ...options }) =>
    Buffer.concat(Sender.frame(Buffer.from(data), { ...options, opcode, fin: options.fin || opcode > 2, readOnly: false })),
  );
const stream = fc
  .tuple(
    fc.array(frame, { minLength: 1, maxLength: 12 }),
    fc.option(fc.record({ at: fc.nat(300), to: fc.nat(255) })),
    fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 8 }),
    fc.boolean(),
  )
  .map(([frames, change, sizes, isWhole]) => {
    const bytes = Buffer.concat(frames);
    if (change !== null && change.at < bytes.length) bytes[change.at] = change.to;
    if (isWhole) return [bytes];
    const chunks: Buffer[] = [];
    for (let at = 0, i = 0; at < bytes.length; i += 1) {
      const size = sizes[i % sizes.length]!;
      chunks.push(bytes.subarray(at, at + size));
      at += size;
    }
    return chunks;
  });

describe('our WebSocket client', () => {
  it('reads what a server sends as ws reads it', async () => {
    await fc.assert(
      fc.asyncProperty(stream, async (chunks) => {
        expect(ours(chunks)).toEqual(await theirs(chunks));
      }),
      { numRuns: 4_000 },
    );
  });

  it('names the upgrade in the error when it refuses an answer to its upgrade', () => {
    const part = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 30 }),
      fc.constantFrom(
        'HTTP/1.1 101 Switching Protocols\r\n',
        'HTTP/1.1 200 OK\r\n',
        'HTTP/1.1 100 Continue\r\n\r\n',
        '\r\n\r\n',
        'Upgrade: websocket\r\n',
      ),
      fc.constantFrom(
        'Connection: Upgrade\r\n',
        'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n',
        ': \r\n',
        'x',
        'a'.repeat(17_000),
      ),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const answer = new UpgradeAnswer('dGhlIHNhbXBsZSBub25jZQ==');
        for (const text of parts) {
          const outcome = answer.read(Buffer.from(text, 'latin1'));
          if (outcome === null) continue;
          if (!outcome.ok) expect(outcome.message).toMatch(/^the (answer to the )?upgrade /);
          return;
        }
      }),
      { numRuns: 3_000 },
    );
  });
});
