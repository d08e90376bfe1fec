import childProcess from 'node:child_process';
import { webcrypto } from 'node:crypto';
import dgram from 'node:dgram';
import diagnostics from 'node:diagnostics_channel';
import dns from 'node:dns/promises';
import fs from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import perf from 'node:perf_hooks';
import tls from 'node:tls';
import { fileURLToPath } from 'node:url';
import workers from 'node:worker_threads';
import zlib from 'node:zlib';
import { WorldUdpSocket } from './datagrams.js';
import { WorldDgramSocket } from './dgram-socket.js';
import { addressInWorld, closeInWorld, connectInWorld, listenInWorld } from './network.js';
import { currentProcess } from './process.js';
import { WorldShell } from './shell.js';
import { WorldSocket } from './socket.js';
import { WorldThread } from './threads.js';
import { outstanding } from './time.js';

// What of Node.js reaches out of the process is replaced here, once for each worker that runs tests of this folder, before any module of the
// product is loaded. No test of this folder has a real socket, thread or process.

/** Names that resolve in the world, with their addresses; any other is unknown. */
export const worldNames = new Map<string, readonly string[]>();

function unknownName(name: string): Error {
  return Object.assign(new Error(`queryA ENOTFOUND ${name}`), { code: 'ENOTFOUND', hostname: name });
}

function addressesOf(name: string): readonly string[] {
  if (net.isIP(name) !== 0) return [name];
  if (name === 'localhost') return ['127.0.0.1'];
  const known = worldNames.get(name);
  if (known === undefined) throw unknownName(name);
  return known;
}

function replaceNetwork(): void {
  const connect = (...given: unknown[]): WorldSocket => connectInWorld(given);
  Object.assign(net, { connect, createConnection: connect });
  // It has taken its own from `net` before.
  Object.assign(http.Agent.prototype, { createConnection: connect });
  Object.assign(net.Server.prototype, {
    listen(this: net.Server, ...given: unknown[]): net.Server {
      return listenInWorld(this, given);
    },
    address(this: net.Server): net.AddressInfo | string | null {
      return addressInWorld(this);
    },
    close(this: net.Server, onClosed?: (error?: Error) => void): net.Server {
      return closeInWorld(this, onClosed);
    },
  });
  Object.assign(dgram, {
    createSocket: (_type: unknown, onMessage?: (...given: unknown[]) => void) => new WorldDgramSocket(onMessage),
  });
  // drachtio-srf and others ask by class.
  Object.defineProperty(tls.TLSSocket, Symbol.hasInstance, { value: (one: unknown) => one instanceof WorldSocket && one.isTls });
}

/** TLS without TLS: the connection is as it is, and says that it is encrypted. */
function replaceTls(): void {
  const connect = (...given: unknown[]): WorldSocket => {
    const options = given.find((one): one is { readonly socket?: WorldSocket } => typeof one === 'object' && one !== null);
    const onSecure = given.find((one): one is () => void => typeof one === 'function');
    const socket = (options?.socket ?? connectInWorld(given.filter((one) => typeof one !== 'function'))).asTls();
    if (onSecure !== undefined) socket.once('secureConnect', onSecure);
    if (options?.socket?.connecting === false) setImmediate(() => socket.emit('secureConnect'));
    return socket;
  };
  class WorldTlsServer extends net.Server {
    constructor(_options: unknown, onSecure?: (socket: net.Socket) => void) {
      super();
      if (onSecure !== undefined) this.on('secureConnection', onSecure);
      this.on('connection', (socket: WorldSocket) => this.emit('secureConnection', socket.asTls()));
    }
    setSecureContext(): void {
      return;
    }
  }
  Object.assign(tls, {
    connect,
    createServer: (options: unknown, onSecure?: (socket: net.Socket) => void) => new WorldTlsServer(options, onSecure),
    Server: WorldTlsServer,
  });
  Object.assign(https, {
    createServer: (...given: readonly unknown[]) => {
      const server = http.createServer(given.find((one): one is http.RequestListener => typeof one === 'function'));
      return server.prependListener('connection', (socket) => (socket as WorldSocket).asTls());
    },
  });
}

function replaceNames(): void {
  const records = (name: string): Promise<readonly { address: string; ttl: number }[]> =>
    Promise.resolve().then(() => addressesOf(name).map((address) => ({ address, ttl: 60 })));
  const none = (name: string): Promise<never> => Promise.reject(unknownName(name));
  Object.assign(dns, {
    lookup: async (name: string, options?: { readonly all?: boolean }) => {
      const found = (await records(name)).map(({ address }) => ({ address, family: 4 }));
      return options?.all === true ? found : found[0];
    },
  });
  Object.assign(dns.Resolver.prototype, { resolve4: records, resolve6: none, resolveSrv: none, resolveNaptr: none });
}

type Observer = (message: unknown, name: string | symbol) => void;

/** An observer of one process does not see what another one publishes, and ends with its process. */
function keepEventsInProcesses(): void {
  const { subscribe, unsubscribe } = diagnostics;
  const ends = new Map<Observer, () => void>();
  Object.assign(diagnostics, {
    subscribe: (name: string, observe: Observer) => {
      const owner = currentProcess();
      const own: Observer = (message, from) => {
        if (currentProcess() === owner) observe(message, from);
      };
      const possession = { cut: () => void unsubscribe(name, own) };
      owner?.opened(possession);
      ends.set(observe, () => {
        owner?.closed(possession);
        possession.cut();
      });
      subscribe(name, own);
    },
    unsubscribe: (_name: string, observe: Observer) => {
      ends.get(observe)?.();
      return ends.delete(observe);
    },
  });
}

/** Work of Node's thread pool that it does not name among its active resources is counted. */
function countThreadPool(): void {
  const digest = webcrypto.subtle.digest.bind(webcrypto.subtle);
  webcrypto.subtle.digest = (...given) => outstanding(digest(...given));
  for (const name of ['brotliDecompress', 'inflateRaw'] as const) {
    const real = zlib[name] as (bytes: Buffer, done: (error: Error | null, result: Buffer) => void) => void;
    Object.assign(zlib, {
      [name]: (bytes: Buffer, done: (error: Error | null, result: Buffer) => void) =>
        void outstanding(
          new Promise<void>((resolve) =>
            real(bytes, (...given) => {
              resolve();
              done(...given);
            }),
          ),
        ),
    });
  }
  const { readFile } = fs;
  Object.assign(fs, {
    readFile: (path: unknown, ...more: unknown[]) =>
      typeof path === 'string' && path.startsWith('/proc/net/')
        ? Promise.resolve('')
        : (readFile as (...all: unknown[]) => unknown)(path, ...more),
  });
}

/** Virtual time is never late, and work takes none of it. A real measurement of a process that was killed would go on, too. */
function replaceLoad(): void {
  const never = {
    enable: () => true,
    disable: () => true,
    reset: () => undefined,
    percentile: () => 0,
    min: 0,
    mean: 0,
    max: 0,
    stddev: 0,
  };
  Object.assign(perf, { monitorEventLoopDelay: () => never });
  process.cpuUsage = () => ({ user: 0, system: 0 });
}

let isReplaced = false;

/** Once for each worker. */
export function replaceBuiltins(): void {
  if (isReplaced) return;
  isReplaced = true;
  process.env['TRUNKLINE_SRTP_ADDON'] = fileURLToPath(new URL('./addon.cjs', import.meta.url));
  Object.assign(globalThis, { TrunklineWorld: { UdpSocket: WorldUdpSocket } });
  replaceNetwork();
  replaceTls();
  replaceNames();
  keepEventsInProcesses();
  countThreadPool();
  replaceLoad();
  Object.assign(workers, { Worker: WorldThread });
  Object.assign(childProcess, {
    spawn: (command: string) => {
      if (command !== '/bin/sh') throw new Error(`the world starts no process: ${command}`);
      return new WorldShell();
    },
  });
  syncBuiltinESMExports();
}
