import net from 'node:net';
import { Duplex } from 'node:stream';
import type { MemoryRedis } from '../../world/redis/memory-redis.js';

// Connections of ioredis to a Redis in memory, without sockets.

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

const HOST = 'redis.memory';
const createConnection = net.createConnection;
let served: MemoryRedis | undefined;

function connect(...args: Parameters<typeof createConnection>): unknown {
  const [to] = args as readonly unknown[];
  const isOurs = typeof to === 'object' && to !== null && 'host' in to && to.host === HOST;
  if (!isOurs || served === undefined) return createConnection(...args);
  const [client, server] = [new MemorySocket(), new MemorySocket()];
  client.peer = server;
  server.peer = client;
  served.accept(server);
  return client;
}

/** From now on this Redis is at the URL that it returns. */
export function serveRedis(redis: MemoryRedis): string {
  served = redis;
  Object.assign(net, { createConnection: connect });
  return `redis://${HOST}`;
}
