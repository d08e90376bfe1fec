import { availableParallelism } from 'node:os';
import type { Config } from './schema.js';

/** One of the gateway processes that `trunkline up` starts and that act as one gateway. */
export interface GatewayWorker {
  /** From 1. The first serves the control API for all. */
  readonly index: number;
  readonly count: number;
}

/** The largest value of the setting. */
const MAX_WORKERS = 64;

/** The number of gateway processes by the settings. The default leaves one core to the SIP server and rtpengine (docs/adr/0004). */
export function workerCount(config: Config, cores = availableParallelism()): number {
  return config.gateway.workers ?? Math.min(MAX_WORKERS, Math.max(1, cores - 1));
}

/** `2/4`: the second of four. Throws a message for the operator. */
export function parseWorker(text: string): GatewayWorker {
  const [, index = 0, count = 0] = (/^(\d{1,3})\/(\d{1,3})$/.exec(text) ?? []).map(Number);
  if (index < 1 || index > count) throw new Error(`Invalid --worker ${JSON.stringify(text)}: expected a number and a count, such as 2/4`);
  return { index, count };
}

/** The settings of one worker: its share of the media ports, and of the limits that each process counts. */
export function workerConfig(config: Config, { index, count }: GatewayWorker): Config {
  if (count === 1) return config;
  const { media, admission } = config;
  const pairs = Math.floor((media.port_max - media.port_min + 1) / 2);
  const firstPair = Math.floor((pairs * (index - 1)) / count);
  const nextPair = Math.floor((pairs * index) / count);
  const share = (limit: number | null): number | null => (limit === null ? null : Math.ceil(limit / count));
  return {
    ...config,
    media: { ...media, port_min: media.port_min + 2 * firstPair, port_max: media.port_min + 2 * nextPair - 1 },
    admission: {
      ...admission,
      max_calls: share(admission.max_calls),
      max_calls_per_second: share(admission.max_calls_per_second),
    },
  };
}

/** Its name in logs and metrics. */
export function workerName(index: number): string {
  return index === 1 ? 'gateway' : `gateway-${String(index)}`;
}

/** Its name across restarts. */
export function workerInstance(instance: string, { index }: GatewayWorker): string {
  return index === 1 ? instance : `${instance}-${String(index)}`;
}
