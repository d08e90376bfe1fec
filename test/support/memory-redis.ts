import net from 'node:net';
import { Duplex } from 'node:stream';
import type { MemoryRedis } from '../world/redis/memory-redis.js';
import { Requests } from '../world/redis/requests.js';

// Connections to a Redis in memory, without sockets.

/** One end of a connection in memory, with what ioredis asks of a socket. */
class MemorySocket extends Duplex {
  readonly connecting = false;
  peer: MemorySocket | undefined;

  override _read(): void {
    // What comes is pushed.
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.peer?.push(chunk);
    done();
  }

  override _final(done: () => void): void {
    this.peer?.push(null);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.peer?.destroy();
    done(error);
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  setTimeout(): this {
    return this;
  }
}

/** A connection to this Redis. */
export function connectTo(redis: Pick<MemoryRedis, 'accept'>): Duplex {
  const [client, server] = [new MemorySocket(), new MemorySocket()];
  client.peer = server;
  server.peer = client;
  redis.accept(server);
  return client;
}

const HOST = 'redis.memory';
const createConnection = net.createConnection;
let connectToServed: () => Duplex;

function connect(...args: Parameters<typeof createConnection>): unknown {
  const [to] = args as readonly unknown[];
  const isOurs = typeof to === 'object' && to !== null && 'host' in to && to.host === HOST;
  return isOurs ? connectToServed() : createConnection(...args);
}

/**
 * From now on this Redis is at the URL that it returns.
 * @param heard is given each command, in the order in which Redis runs them
 */
export function serveRedis(redis: MemoryRedis, heard?: (words: readonly string[]) => void): string {
  connectToServed = () =>
    connectTo({
      accept: (socket) => {
        const requests = new Requests();
        if (heard !== undefined) socket.on('data', (chunk: Buffer) => [...requests.take(chunk)].forEach(heard));
        redis.accept(socket);
      },
    });
  Object.assign(net, { createConnection: connect });
  return `redis://${HOST}`;
}
