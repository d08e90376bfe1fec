import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

// Above what the kernel gives to sockets that name no port, so that nobody is given one of these between our look and its use. Each process
// of each test run has a part of its own: the lock is a listening socket, gone with its process.
const FIRST_PORT = 61_000;
const PORTS_PER_PROCESS = 400;
const PARTS = 11;
const FIRST_LOCK_PORT = 9_920;
const { index: part } = await lockFirst(FIRST_LOCK_PORT, PARTS);

// Goes round: a port that was named and is not yet listened at is not named again by a second call, as it would now and then be at random.
let next = Math.floor(Math.random() * PORTS_PER_PROCESS);

/** Ports of this moment that are free for TCP and for UDP, all different, and different from those this process was named before. */
export async function freePorts(count: number): Promise<number[]> {
  const first = FIRST_PORT + part * PORTS_PER_PROCESS;
  const ports: number[] = [];
  for (let tried = 0; tried < PORTS_PER_PROCESS && ports.length < count; tried += 1) {
    const port = first + next;
    next = (next + 1) % PORTS_PER_PROCESS;
    if (await isFree(port)) ports.push(port);
  }
  if (ports.length < count) throw new Error(`fewer than ${String(count)} ports are free from ${String(first)} on`);
  return ports;
}

/** The first of so many neighbouring ports that are free for TCP and for UDP; it is even, as those of RTP are. Named once, as above. */
export async function freeRange(count: number): Promise<number> {
  const first = FIRST_PORT + part * PORTS_PER_PROCESS;
  for (let tried = 0; tried < PORTS_PER_PROCESS; tried += count) {
    const offset = next + count + 1 > PORTS_PER_PROCESS ? 0 : next + (next % 2);
    // Before anything is awaited: others ask at the same time.
    next = (offset + count) % PORTS_PER_PROCESS;
    const ports = Array.from({ length: count }, (_none, at) => first + offset + at);
    const free = await Promise.all(ports.map(isFree));
    if (!free.includes(false)) return first + offset;
  }
  throw new Error(`no ${String(count)} neighbouring ports are free from ${String(first)} on`);
}

export interface PortRange {
  readonly min: number;
  readonly max: number;
}

// Between those of whole gateways and those that the kernel gives; a process that asks has a part of its own, as above.
const FIRST_RELAY_PORT = 27_700;
const RELAY_PORTS_PER_PROCESS = 1_000;
const RELAY_PARTS = 5;
const FIRST_RELAY_LOCK_PORT = 9_940;
let relayPart: ReturnType<typeof lockFirst> | undefined;
let nextRelayPort = 0;

/** So many ports for an rtpengine of this file's; the ones of a process's earlier files come round again. */
export async function relayPorts(count: number): Promise<PortRange> {
  relayPart ??= lockFirst(FIRST_RELAY_LOCK_PORT, RELAY_PARTS);
  const offset = nextRelayPort + count > RELAY_PORTS_PER_PROCESS ? 0 : nextRelayPort;
  nextRelayPort = offset + count;
  const min = FIRST_RELAY_PORT + (await relayPart).index * RELAY_PORTS_PER_PROCESS + offset;
  return { min, max: min + count - 1 };
}

/** Takes the first of so many parts that no process has, on any test run, until `lock` is closed or this process ends. */
export async function lockFirst(firstPort: number, count: number): Promise<{ readonly index: number; readonly lock: Server }> {
  for (let index = 0; index < count; index += 1) {
    const lock = createServer().unref();
    lock.listen({ host: '127.0.0.1', port: firstPort + index, exclusive: true });
    const isMine = await once(lock, 'listening').then(
      () => true,
      () => false,
    );
    if (isMine) return { index, lock };
  }
  throw new Error(`all ${String(count)} parts of the ports are in use`);
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
