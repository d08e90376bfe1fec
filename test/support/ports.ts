import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

// Above what the kernel gives to sockets that name no port, so that nobody is given one of these between our look and its use. Each of
// vitest's workers has a part of its own.
const FIRST_PORT = 61_000;
const PORTS_PER_WORKER = 400;
const WORKERS = 11;

// Goes round: a port that was named and is not yet listened at is not named again by a second call, as it would now and then be at random.
let next = Math.floor(Math.random() * PORTS_PER_WORKER);

/** Ports of this moment that are free for TCP and for UDP, all different, and different from those this process was named before. */
export async function freePorts(count: number): Promise<number[]> {
  const first = firstOfWorker();
  const ports: number[] = [];
  for (let tried = 0; tried < PORTS_PER_WORKER && ports.length < count; tried += 1) {
    const port = first + next;
    next = (next + 1) % PORTS_PER_WORKER;
    if (await isFree(port)) ports.push(port);
  }
  if (ports.length < count) throw new Error(`fewer than ${String(count)} ports are free from ${String(first)} on`);
  return ports;
}

/** The first of so many neighbouring ports that are free for TCP and for UDP; it is even, as those of RTP are. Named once, as above. */
export async function freeRange(count: number): Promise<number> {
  for (let tried = 0; tried < PORTS_PER_WORKER; tried += count) {
    const offset = next + count + 1 > PORTS_PER_WORKER ? 0 : next + (next % 2);
    // Before anything is awaited: others ask at the same time.
    next = (offset + count) % PORTS_PER_WORKER;
    const ports = Array.from({ length: count }, (_none, at) => firstOfWorker() + offset + at);
    const free = await Promise.all(ports.map(isFree));
    if (!free.includes(false)) return firstOfWorker() + offset;
  }
  throw new Error(`no ${String(count)} neighbouring ports are free from ${String(firstOfWorker())} on`);
}

export interface PortRange {
  readonly min: number;
  readonly max: number;
}

// Between those of whole gateways and those that the kernel gives; each of vitest's workers has a part of its own.
const FIRST_RELAY_PORT = 28_000;
const RELAY_PORTS_PER_WORKER = 750;
const RELAY_WORKERS = 4;
let nextRelayPort = 0;

/** So many ports for an rtpengine of this file's; the ones of a worker's earlier files come round again. */
export function relayPorts(count: number): PortRange {
  const offset = nextRelayPort + count > RELAY_PORTS_PER_WORKER ? 0 : nextRelayPort;
  nextRelayPort = offset + count;
  const min = FIRST_RELAY_PORT + (workerIndex() % RELAY_WORKERS) * RELAY_PORTS_PER_WORKER + offset;
  return { min, max: min + count - 1 };
}

function firstOfWorker(): number {
  return FIRST_PORT + (workerIndex() % WORKERS) * PORTS_PER_WORKER;
}

function workerIndex(): number {
  return Number(process.env['VITEST_POOL_ID'] ?? 1) - 1;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const socket = createSocket('udp4');
  try {
    server.listen({ host: '127.0.0.1', port });
    await once(server, 'listening');
    socket.bind({ address: '127.0.0.1', port, exclusive: true });
    await once(socket, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
    socket.close();
    if (server.listening) await once(server, 'close');
  }
}
