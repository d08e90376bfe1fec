import net from 'node:net';
import { boundToProcess, currentProcess, type Possession } from './process.js';
import { WorldSocket, type OnRead, type SocketAddress } from './socket.js';
import { later } from './time.js';

interface Listener extends Possession {
  accept(client: WorldSocket, to: SocketAddress, from: SocketAddress): void;
}

const FIRST_EPHEMERAL = 40_000;

/** What becomes of an attempt to connect. `mute`: it gets no answer. */
type Fate = 'connects' | 'refused' | 'mute';

/** All connections of a world: they stay in this process. */
export class WorldNetwork {
  readonly #listeners = new Map<string, Listener>();
  #nextPort = FIRST_EPHEMERAL;
  /** By port; at one that is not named, an attempt connects where somebody listens. */
  readonly #fates = new Map<string, Fate>();

  /** What becomes of connections to a port from now on. Those that stand stay. */
  setFate(port: number, fate: Fate): void {
    this.#fates.set(String(port), fate);
  }

  freePort(): number {
    this.#nextPort += 1;
    return this.#nextPort;
  }

  /** @param onSocket gets each connection, in the process that listens; @returns ends it */
  listen(at: string, onSocket: (socket: WorldSocket) => void): () => void {
    if (this.#listeners.has(at)) throw Object.assign(new Error(`listen EADDRINUSE: address already in use ${at}`), { code: 'EADDRINUSE' });
    const owner = currentProcess();
    const accept = boundToProcess((client: WorldSocket, to: SocketAddress, from: SocketAddress) =>
      onSocket(new WorldServerSocket(client, to, from)),
    );
    const end = (): void => {
      if (this.#listeners.get(at) === listener) this.#listeners.delete(at);
      owner?.closed(listener);
    };
    const listener: Listener = { accept, cut: end };
    this.#listeners.set(at, listener);
    owner?.opened(listener);
    return end;
  }

  connect(client: WorldSocket, at: string, to: SocketAddress, from: string): void {
    later(() => {
      if (client.destroyed) return;
      const fate = this.#fates.get(at) ?? 'connects';
      if (fate === 'mute') return;
      const listener = this.#listeners.get(at);
      if (listener === undefined || fate === 'refused') {
        const code = 'ECONNREFUSED';
        client.destroy(Object.assign(new Error(`connect ${code} ${to.address}:${at}`), { code, syscall: 'connect', ...to }));
        return;
      }
      listener.accept(client, to, { address: from, port: this.freePort() });
    });
  }
}

/** The end that is accepted: it belongs to the process that listens. */
class WorldServerSocket extends WorldSocket {
  constructor(client: WorldSocket, to: SocketAddress, from: SocketAddress) {
    super(currentProcess(), { allowHalfOpen: false });
    WorldSocket.join(client, this, from, to);
    client.connected();
  }
}

let network: WorldNetwork | null = null;

/** The network of the world that is open, or of the next one: a bot may listen before its world begins. */
export function worldNetwork(): WorldNetwork {
  network ??= new WorldNetwork();
  return network;
}

export function closeNetwork(): void {
  network = null;
}

interface ConnectOptions {
  readonly port?: number | string;
  readonly host?: string;
  readonly path?: string;
  readonly localAddress?: string;
  readonly allowHalfOpen?: boolean;
  readonly onread?: OnRead;
}

/** `net.connect` with all its forms. */
export function connectInWorld(given: readonly unknown[]): WorldSocket {
  const { options, onConnect } = readConnect(given);
  const socket = new WorldSocket(currentProcess(), options.allowHalfOpen === true ? { allowHalfOpen: true } : {}, options.onread ?? null);
  if (onConnect !== undefined) socket.once('connect', onConnect);
  const at = options.path ?? String(options.port);
  worldNetwork().connect(
    socket,
    at,
    { address: options.host ?? '127.0.0.1', port: Number(options.port ?? 0) },
    options.localAddress ?? '127.0.0.1',
  );
  return socket;
}

function readConnect(given: readonly unknown[]): { options: ConnectOptions; onConnect: (() => void) | undefined } {
  const [first, second] = given;
  const onConnect = given.find((one): one is () => void => typeof one === 'function');
  if (typeof first === 'object' && first !== null) return { options: first, onConnect };
  if (typeof first === 'string' && Number.isNaN(Number(first))) return { options: { path: first }, onConnect };
  return { options: { port: first as number, ...(typeof second === 'string' ? { host: second } : {}) }, onConnect };
}

interface ListenState {
  end: () => void;
  readonly address: net.AddressInfo | string;
  readonly sockets: Set<WorldSocket>;
  isClosed: boolean;
}

const listening = new WeakMap<net.Server, ListenState>();

/** `Server.prototype.listen` with the forms that are used: options or a port, a host, a callback. */
export function listenInWorld(server: net.Server, given: readonly unknown[]): net.Server {
  const [first, second] = given;
  const options = (typeof first === 'object' && first !== null ? first : { port: first, host: second }) as ConnectOptions;
  const onListening = given.find((one): one is () => void => typeof one === 'function');
  if (onListening !== undefined) server.once('listening', onListening);
  const port = Number(options.port ?? 0) === 0 ? worldNetwork().freePort() : Number(options.port);
  const state: ListenState = {
    end: () => undefined,
    address: options.path ?? { address: typeof options.host === 'string' ? options.host : '127.0.0.1', family: 'IPv4', port },
    sockets: new Set(),
    isClosed: false,
  };
  try {
    state.end = worldNetwork().listen(options.path ?? String(port), (socket) => {
      state.sockets.add(socket);
      socket.once('close', () => {
        state.sockets.delete(socket);
        endIfEmpty(server, state);
      });
      server.emit('connection', socket);
    });
  } catch (error) {
    later(boundToProcess(() => server.emit('error', error)));
    return server;
  }
  listening.set(server, state);
  Object.defineProperty(server, 'listening', { value: true, configurable: true });
  later(boundToProcess(() => server.emit('listening')));
  return server;
}

export function addressInWorld(server: net.Server): net.AddressInfo | string | null {
  return listening.get(server)?.address ?? null;
}

export function closeInWorld(server: net.Server, onClosed?: (error?: Error) => void): net.Server {
  const state = listening.get(server);
  if (state === undefined || state.isClosed) {
    const error = Object.assign(new Error('Server is not running.'), { code: 'ERR_SERVER_NOT_RUNNING' });
    if (onClosed !== undefined) later(boundToProcess(() => onClosed(error)));
    return server;
  }
  if (onClosed !== undefined) server.once('close', onClosed);
  state.isClosed = true;
  state.end();
  Object.defineProperty(server, 'listening', { value: false, configurable: true });
  endIfEmpty(server, state);
  return server;
}

function endIfEmpty(server: net.Server, state: ListenState): void {
  if (!state.isClosed || state.sockets.size > 0) return;
  later(boundToProcess(() => server.emit('close')));
}
