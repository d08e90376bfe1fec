import { createSocket, type RemoteInfo } from 'node:dgram';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLog } from '../../../src/lib/log.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { RtpengineNode } from '../../../src/gateway/relay/node.js';

const COOKIE_CHARACTERS = 36;
const MOST_OUTSTANDING = 64;

/** An rtpengine that answers when it is told to. */
class HeldReplies {
  readonly #socket = createSocket('udp4');
  readonly #held: { readonly reply: Buffer; readonly to: RemoteInfo }[] = [];
  readonly asked = new Map<string, number>();
  isHolding = true;
  reply = 'd6:result4:ponge';

  async open(): Promise<number> {
    this.#socket.on('message', (data, from) => {
      const cookie = data.toString('latin1', 0, COOKIE_CHARACTERS);
      this.asked.set(cookie, (this.asked.get(cookie) ?? 0) + 1);
      this.#held.push({ reply: Buffer.from(`${cookie} ${this.reply}`), to: from });
      if (!this.isHolding) this.release();
    });
    await new Promise<void>((resolve) => this.#socket.bind(0, '127.0.0.1', () => resolve()));
    return this.#socket.address().port;
  }

  release(): void {
    for (const { reply, to } of this.#held.splice(0)) this.#socket.send(reply, to.port, to.address);
  }

  /** As another program on the machine might, which has seen the cookie. */
  async releaseFromElsewhere(): Promise<void> {
    const other = createSocket('udp4');
    for (const { reply, to } of this.#held) await new Promise((resolve) => other.send(reply, to.port, to.address, resolve));
    other.close();
  }

  garbage(): void {
    for (const { to } of this.#held) this.#socket.send('no bencode at all', to.port, to.address);
  }

  close(): void {
    this.#socket.close();
  }
}

let server: HeldReplies;
let port: number;
const nodes: RtpengineNode[] = [];

beforeEach(async () => {
  server = new HeldReplies();
  port = await server.open();
});

afterEach(() => {
  for (const node of nodes.splice(0)) node.close();
  server.close();
});

function newNode(timeoutMs: number): RtpengineNode {
  const node = new RtpengineNode({ address: '127.0.0.1', port, timeoutMs, clock: systemClock, log: silentLog });
  nodes.push(node);
  return node;
}

it('a relay node drops a reply that comes after its command was given up, and serves the next', async () => {
  const node = newNode(250);
  await expect(node.command('ping')).rejects.toMatchObject({ name: 'RtpengineError', kind: 'timeout' });
  // At 0, 100 and perhaps 200 ms more: all with one cookie.
  expect(server.asked.size).toBe(1);
  expect([...server.asked.values()][0]).toBeGreaterThan(1);
  server.garbage();
  server.release();
  server.isHolding = false;
  // The late replies are in the socket before this one's.
  expect(await node.command('ping')).toEqual({ result: 'pong' });
  expect(node.outstanding).toBe(0);
});

it('a relay node takes no reply from another address or port', async () => {
  const node = newNode(250);
  const reply = node.command('ping');
  await expect.poll(() => server.asked.size).toBe(1);
  await server.releaseFromElsewhere();
  await expect(reply).rejects.toMatchObject({ kind: 'timeout' });
});

it('a relay node refuses a command whose reply cannot be read', async () => {
  server.reply = 'd6:result4:pon';
  server.isHolding = false;
  await expect(newNode(5_000).command('ping')).rejects.toMatchObject({
    kind: 'refused',
    message: expect.stringContaining('cannot be read') as string,
  });
});

it('a relay node refuses a command that no datagram can hold, and continues', async () => {
  server.isHolding = false;
  const node = newNode(5_000);
  await expect(node.command('ping', { pad: 'x'.repeat(65_507) })).rejects.toMatchObject({
    kind: 'refused',
    message: expect.stringMatching(/^ping has 65\d{3} bytes, which no datagram has room for$/) as string,
  });
  expect(node.outstanding).toBe(0);
  expect(await node.command('ping')).toEqual({ result: 'pong' });
});

it('a relay node gives up no command over a stall of its own process when the reply is in the socket', async () => {
  server.isHolding = false;
  const node = newNode(250);
  const reply = node.command('ping');
  const stalledMs = performance.now();
  while (performance.now() < stalledMs + 300);
  expect(await reply).toEqual({ result: 'pong' });
});

it('a relay node resolves a command once when every retransmission is answered', async () => {
  const node = newNode(5_000);
  const reply = node.command('ping');
  await expect.poll(() => [...server.asked.values()][0]).toBe(3);
  server.isHolding = false;
  server.release();
  expect(await reply).toEqual({ result: 'pong' });
  expect(await node.command('ping')).toEqual({ result: 'pong' });
});

it(`a relay node has ${String(MOST_OUTSTANDING)} commands outstanding at most and queues the others`, async () => {
  const node = newNode(5_000);
  const replies = Promise.all(Array.from({ length: 200 }, () => node.command('ping')));
  // Every one that was asked has been asked again: whatever would be sent at once has been sent.
  await expect.poll(() => server.asked.size > 0 && [...server.asked.values()].every((times) => times > 1)).toBe(true);
  expect(server.asked.size).toBe(MOST_OUTSTANDING);
  expect(node.outstanding).toBe(200);
  server.isHolding = false;
  server.release();
  expect(await replies).toHaveLength(200);
  expect(server.asked.size).toBe(200);
});

it('a relay node sends commands of calls in progress before queued offers, and reports how long the oldest of those has waited', async () => {
  const clock = new VirtualClock();
  const node = new RtpengineNode({ address: '127.0.0.1', port, timeoutMs: 60_000, clock, log: silentLog });
  nodes.push(node);
  const all = Array.from({ length: MOST_OUTSTANDING }, () => node.command('offer'));
  clock.advance(50);
  expect(node.delayMs).toBe(0);
  const order: string[] = [];
  for (const name of ['offer', 'answer', 'delete'] as const) all.push(node.command(name).finally(() => order.push(name)));
  clock.advance(30);
  expect(node.delayMs).toBe(30);
  await expect.poll(() => server.asked.size).toBe(MOST_OUTSTANDING);
  server.isHolding = false;
  server.release();
  await Promise.all(all);
  expect(order).toEqual(['answer', 'delete', 'offer']);
  expect(node.delayMs).toBe(0);
});

it('a relay node rejects what is queued when it is closed', async () => {
  const node = newNode(250);
  const all = Promise.allSettled(Array.from({ length: 100 }, () => node.command('ping')));
  node.close();
  const outcomes = await all;
  expect(outcomes.map((outcome) => (outcome.status === 'rejected' ? (outcome.reason as { kind: string }).kind : 'answered'))).not.toContain(
    'answered',
  );
  await expect(node.command('ping')).rejects.toMatchObject({ kind: 'closed' });
});
