import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLog } from '../../../../src/lib/log.js';
import { OutgoingFlow } from '../../../../src/sip/transport/outgoing-flow.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const PING = '\r\n\r\n';
const LEAST_MS = 95_000;
const LONGEST_MS = 120_000;
const PONG_MS = 10_000;

let server: Server;
let peer: Socket;
let received: string;
let clock: VirtualClock;
let flow: OutgoingFlow;
let closes: number;
/** The flow's own end. */
let opened: Socket;

beforeEach(async () => {
  server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  [clock, received, closes] = [new VirtualClock(), '', 0];
  const { port } = server.address() as AddressInfo;
  const limits = {
    maxHeadBytes: 16_384,
    maxBodyBytes: 65_536,
    messageTimeoutMs: 5_000,
    maxUnsentBytes: 1 << 20,
    connectTimeoutMs: 5_000,
    idleTimeoutMs: 0,
  };
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const endpoint = { address: '127.0.0.1', port };
  flow = new OutgoingFlow({ transport: 'TCP', host: '127.0.0.1', port }, endpoint, {
    locate: () => Promise.resolve([endpoint]),
    connect: () => ({ socket: (opened = connect(port, '127.0.0.1')), ready: 'connect' }),
    listener: { onMessage: () => undefined, onSpoiled: () => undefined, onClose: () => void (closes += 1) },
    limits,
    clock,
    log: silentLog,
  });
  [peer] = await accepted;
  peer.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')));
  await expect.poll(() => flow.wasConnected).toBe(true);
});

afterEach(async () => {
  flow.close();
  peer.destroy();
  server.close();
  await once(server, 'close');
});

const STEP_MS = 1_000;

/** Until the ping is sent, a step late at most. */
async function pinged(): Promise<void> {
  const before = received.length;
  const written = opened.bytesWritten;
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await new Promise((resolve) => setImmediate(resolve));
  };
  // The wait began up to a step before now.
  await pass(LEAST_MS - STEP_MS);
  for (let ms = LEAST_MS - STEP_MS; ms < LONGEST_MS && opened.bytesWritten === written; ms += STEP_MS) await pass(STEP_MS);
  await expect.poll(() => received.slice(before)).toBe(PING);
}

describe('[5626 §4.4.1] a connection that is kept', () => {
  it('is pinged after 95 to 120 s, again and again, even without an answer', async () => {
    flow.keep();
    clock.advance(LEAST_MS - 1);
    await new Promise((resolve) => setImmediate(resolve));
    expect([clock.pendingTimers, opened.bytesWritten]).toEqual([1, 0]);
    clock.advance(LONGEST_MS - LEAST_MS + 1);
    await expect.poll(() => received).toBe(PING);
    clock.advance(PONG_MS);
    await pinged();
    clock.advance(PONG_MS);
    await pinged();
    clock.advance(PONG_MS);
    expect([flow.isOpen, closes]).toEqual([true, 0]);
  });

  it('[5626 §3.5.1] is closed when a peer that had answered stops answering', async () => {
    flow.keep();
    await pinged();
    peer.write('\r\n');
    await expect.poll(() => opened.bytesRead).toBe(2);
    clock.advance(PONG_MS);
    await pinged();
    clock.advance(PONG_MS - STEP_MS - 1);
    expect(flow.isOpen).toBe(true);
    clock.advance(STEP_MS + 1);
    expect([flow.isOpen, closes]).toEqual([false, 1]);
  });

  it('is kept no longer after an hour without a message', () => {
    flow.keep();
    for (let ms = 0; ms < 3_600_000; ms += LONGEST_MS + PONG_MS) {
      clock.advance(LONGEST_MS);
      clock.advance(PONG_MS);
    }
    clock.advance(2 * LONGEST_MS);
    expect(clock.pendingTimers).toBe(0);
    flow.keep();
    expect(clock.pendingTimers).toBe(1);
  });

  it('is not pinged unless it is kept', () => {
    clock.advance(10 * LONGEST_MS);
    expect([received, clock.pendingTimers]).toEqual(['', 0]);
  });
});
