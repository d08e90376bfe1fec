import { createServer, connect, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../support/virtual-clock.js';
import { gatherWrites, TurnBatch } from '../../../src/lib/turn-batch.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Counts what reaches the system: `_write` one chunk, `_writev` several at once. */
function counted(socket: Socket): { calls: number } {
  const seen = { calls: 0 };
  const parts = socket as unknown as Record<'_write' | '_writev', (...args: unknown[]) => void>;
  for (const name of ['_write', '_writev'] as const) {
    const original = parts[name].bind(socket);
    parts[name] = (...args) => {
      seen.calls += 1;
      original(...args);
    };
  }
  return seen;
}

async function connected(): Promise<{ readonly socket: Socket; readonly peer: Socket; readonly server: Server }> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'ready');
  const [peer] = await accepted;
  return { socket, peer, server };
}

describe('gatherWrites', () => {
  it('writes what one turn brought in one call, in order, and the next turn’s in another', async () => {
    const { socket, peer, server } = await connected();
    let heard = '';
    const whole = new Promise<void>((resolve) => {
      peer.on('data', (chunk: Buffer) => {
        heard += chunk.toString();
        if (heard.endsWith('.')) resolve();
      });
    });
    gatherWrites(socket);
    const seen = counted(socket);
    for (const text of ['a', 'é', Buffer.from('c')]) socket.write(text);
    expect(seen.calls).toBe(0);
    await turn();
    expect(seen.calls).toBe(1);
    socket.write('d');
    socket.write('.');
    await whole;
    expect([heard, seen.calls]).toEqual(['aécd.', 2]);
    socket.destroy();
    peer.destroy();
    server.close();
  });

  it('calls back each writer when its data is sent, and ends with what is still queued', async () => {
    const { socket, peer, server } = await connected();
    gatherWrites(socket);
    await new Promise((resolve) => socket.write('told', resolve));
    socket.write(' and the last');
    socket.end();
    let heard = '';
    for await (const chunk of peer) heard += String(chunk);
    expect(heard).toBe('told and the last');
    server.close();
  });
});

describe('TurnBatch', () => {
  it('sends what one turn brought as one batch, in order; what is queued at the end can be sent at once', async () => {
    const batches: (readonly number[])[] = [];
    const batch = new TurnBatch<number>((items) => batches.push(items));
    batch.push(1);
    batch.push(2);
    expect(batches).toEqual([]);
    await turn();
    batch.push(3);
    batch.flush();
    batch.flush();
    await turn();
    expect(batches).toEqual([[1, 2], [3]]);
  });

  it('gathers for as long as it is set to, and then again', () => {
    const clock = new VirtualClock();
    const batches: (readonly number[])[] = [];
    const batch = new TurnBatch<number>(
      (items) => batches.push(items),
      (flush) => clock.setTimer(20, flush),
    );
    batch.push(1);
    clock.advance(19);
    batch.push(2);
    expect(batches).toEqual([]);
    clock.advance(1);
    batch.push(3);
    expect(batches).toEqual([[1, 2]]);
    clock.advance(20);
    expect(batches).toEqual([[1, 2], [3]]);
  });

  it.each([
    ['nothing was written to before', false],
    ['something was written to before', true],
  ])('writes to a stream that %s before what was sent after it', async (_what, isCorked) => {
    const out: string[] = [];
    const [store, signalling] = [new PassThrough(), new PassThrough()];
    for (const stream of [store, signalling]) {
      stream.on('data', (bytes: Buffer) => out.push(bytes.toString()));
      gatherWrites(stream);
    }
    const batch = new TurnBatch<string>((items) => items.forEach((item) => store.write(item)));
    batch.push('snapshot');
    signalling.write('200');
    if (isCorked) store.write('earlier');
    await turn();
    expect(out.filter((text) => text !== 'earlier')).toEqual(['snapshot', '200']);
  });
});
