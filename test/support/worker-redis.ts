import { startRedis, startRedisCluster, type AnyRedis, type TestRedis, type TestRedisCluster } from './redis.js';

// One server is enough for all tests of a worker of vitest, which runs one file at a time. Those that stop, freeze or fill theirs start their own.

/** None of the tests ends it. */
export type WorkerRedis = AnyRedis & Pick<TestRedis, 'port'>;

const NOT_ON_DISK = ['--appendonly', 'no'];
/** No test stops a node, and on a busy machine none takes another for dead. */
const NEVER_DEAD = ['--cluster-node-timeout', '600000'];

let server: Promise<TestRedis> | undefined;
let cluster: Promise<TestRedisCluster> | undefined;

/** The redis-server of this worker, empty. */
export async function workerRedis(): Promise<WorkerRedis> {
  server ??= startRedis(NOT_ON_DISK).then(endsWithWorker);
  const redis = await server;
  await redis.clear();
  return redis;
}

/** The Redis Cluster of this worker, empty. */
export async function workerRedisCluster(): Promise<AnyRedis> {
  cluster ??= startRedisCluster([...NOT_ON_DISK, ...NEVER_DEAD]).then(endsWithWorker);
  const redis = await cluster;
  await redis.clear();
  return redis;
}

function endsWithWorker<T extends Pick<TestRedis, 'discard'>>(redis: T): T {
  // vitest ends its workers with SIGTERM.
  if (process.listenerCount('SIGTERM') === 0) process.once('SIGTERM', () => process.exit());
  process.once('exit', () => redis.discard());
  return redis;
}
