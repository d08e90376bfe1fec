import { Cluster, Redis } from 'ioredis';
import { gatherWrites, type CorkedStream } from '../../../lib/turn-batch.js';
import { bareHost } from '../../../lib/address.js';

// A class of ioredis extends String: V8 makes a dictionary of String.prototype, and of each method call on a string, in all of the process,
// a look-up, even in compiled code. To go through the names of a string object undoes that.
// eslint-disable-next-line @typescript-eslint/no-unused-vars -- for its effect
for (const name in Object(''));

/** Where Redis is. */
export interface RedisAddress {
  /** `redis://[user:password@]host[:port][/db]`, or `rediss://` for TLS. Of a cluster several, with commas: nodes to begin with. */
  readonly url: string;
  /** The URL is of Redis Cluster. */
  readonly cluster?: boolean;
  /** The URLs are of Sentinels, which know where the primary of this name is; user, password and number of the first are those of Redis. */
  readonly sentinel?: { readonly name: string; readonly password: string | null } | null;
  /** What `CLIENT LIST` shows it as. Nodes of a cluster show none. */
  readonly connectionName?: string;
}

const CONNECT_TIMEOUT_MS = 2000;
const RECONNECT_MIN_MS = 50;
const RECONNECT_MAX_MS = 1000;
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;
// For a cluster that moves slots or loses a node: 400 ms in total.
const MAX_REDIRECTIONS = 4;
const RETRY_DELAY_MS = 100;
const SLOTS_REFRESH_MS = 10_000;

/** @param deadAfterMs a connection without an overdue answer after this is dead, although TCP has not noticed */
function clientOptions({ connectionName }: RedisAddress, deadAfterMs: number) {
  return {
    ...(connectionName === undefined ? {} : { connectionName }),
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: deadAfterMs,
    // A command that cannot go out now fails now: a caller with a phone at the ear gets its 503 at once.
    enableOfflineQueue: false,
    // The subscriber subscribes again itself: it has to know of the gap.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    // After a failover the old primary answers READONLY: connect again and find the new one.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  };
}

const reconnectDelayMs = (attempt: number): number => Math.min(RECONNECT_MIN_MS * attempt, RECONNECT_MAX_MS);

/** To the primary of the moment: after a failover to the new one, as the Sentinels tell. */
function sentinelClient(
  options: RedisAddress,
  { name, password: sentinelPassword }: NonNullable<RedisAddress['sentinel']>,
  deadAfterMs: number,
): Redis {
  const nodes = options.url.split(',').map((url) => new URL(url));
  const { username = '', password = '', pathname = '', protocol = 'redis:' } = nodes[0] ?? {};
  const client = new Redis({
    ...clientOptions(options, deadAfterMs),
    sentinels: nodes.map((node) => ({ host: hostOf(node), port: portOf(node, SENTINEL_PORT) })),
    name,
    // A primary that hangs keeps its connections: the Sentinels say when it is one no more.
    failoverDetector: true,
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    sentinelRetryStrategy: reconnectDelayMs,
    retryStrategy: reconnectDelayMs,
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(/^\/\d+$/.test(pathname) ? { db: Number(pathname.slice(1)) } : {}),
    ...(protocol === 'rediss:' ? { tls: {}, enableTLSForSentinelMode: true } : {}),
    ...(sentinelPassword === null ? {} : { sentinelPassword }),
  });
  gather(client);
  return client;
}

/** To the first of the addresses, and after each loss to the next one: what is told on one node of a cluster is told on all. */
export function singleClient(options: RedisAddress, deadAfterMs: number): Redis {
  if (options.sentinel != null) return sentinelClient(options, options.sentinel, deadAfterMs);
  const nodes = options.url.split(',').map((url) => new URL(url));
  const client: Redis = new Redis(nodes[0]?.href ?? '', {
    ...clientOptions(options, deadAfterMs),
    retryStrategy: (attempt) => {
      const next = nodes[attempt % nodes.length];
      if (next !== undefined && nodes.length > 1) Object.assign(client.options, { host: hostOf(next), port: portOf(next) });
      return reconnectDelayMs(attempt);
    },
  });
  gather(client);
  return client;
}

export function clusterClient(options: RedisAddress, deadAfterMs: number): Cluster {
  const nodes = options.url.split(',').map((url) => new URL(url));
  const { username = '', password = '', protocol = 'redis:' } = nodes[0] ?? {};
  const cluster = new Cluster(
    nodes.map((node) => ({ host: hostOf(node), port: portOf(node) })),
    {
      redisOptions: {
        ...clientOptions(options, deadAfterMs),
        ...(username === '' ? {} : { username: decodeURIComponent(username) }),
        ...(password === '' ? {} : { password: decodeURIComponent(password) }),
        ...(protocol === 'rediss:' ? { tls: {} } : {}),
      },
      enableOfflineQueue: false,
      maxRedirections: MAX_REDIRECTIONS,
      retryDelayOnFailover: RETRY_DELAY_MS,
      retryDelayOnClusterDown: RETRY_DELAY_MS,
      retryDelayOnTryAgain: RETRY_DELAY_MS,
      slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
      slotsRefreshInterval: SLOTS_REFRESH_MS,
      clusterRetryStrategy: reconnectDelayMs,
    },
  );
  cluster.on('+node', gather);
  return cluster;
}

/** Commands of one turn of the event loop go out together, those of all calls. */
function gather(client: Redis): void {
  // The package makes a socket for each connection, and says so before it writes to it.
  client.on('connect', () => gatherWrites((client as unknown as { readonly stream: CorkedStream }).stream));
}

function hostOf({ hostname }: URL): string {
  return bareHost(hostname);
}

function portOf({ port }: URL, otherwise = REDIS_PORT): number {
  return port === '' ? otherwise : Number(port);
}
