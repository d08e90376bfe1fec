import { availableParallelism } from 'node:os';
import { portPairs, type Config } from './schema.js';

/**
 * The place of one of the gateway processes that `trunkline up` starts and that act as one gateway. There are twice as many places as processes:
 * `trunkline reload` starts a process at the place of its predecessor's that is free, and both run until the predecessor's calls have ended.
 */
export interface GatewayPlace {
  /** From 1 to twice the count. */
  readonly index: number;
  /** How many processes take calls. */
  readonly count: number;
}

export interface GatewayWorker extends GatewayPlace {
  /** The process that it succeeds, and that goes on until its calls have ended. */
  readonly predecessor?: string | undefined;
  /** It has a successor: it has only the calls that an earlier process at its place left. */
  readonly isRetired?: boolean | undefined;
}

/** Whether it serves the control API for all. */
export function isFirstWorker({ index, count }: GatewayPlace): boolean {
  return (index - 1) % count === 0;
}

/** The place of its predecessor, or of its successor. */
export function otherPlace({ index, count }: GatewayPlace): number {
  return index > count ? index - count : index + count;
}

/** The largest value of the setting. */
const MAX_WORKERS = 64;

/** The number of gateway processes by the settings. The default leaves one core to the SIP server and rtpengine (docs/adr/0004). */
export function workerCount(config: Config, cores = availableParallelism()): number {
  return config.gateway.workers ?? Math.max(1, Math.min(MAX_WORKERS, cores - 1, Math.floor(portPairs(config.media) / 2)));
}

/** `2/4`: the second of four; `6/4`: at its other place. Throws a message for the operator. */
export function parseWorker(text: string): GatewayPlace {
  const [, index = 0, count = 0] = (/^(\d{1,3})\/(\d{1,3})$/.exec(text) ?? []).map(Number);
  if (index < 1 || index > 2 * count)
    throw new Error(`Invalid --worker ${JSON.stringify(text)}: expected a number and a count, such as 2/4`);
  return { index, count };
}

/** The settings of one worker: its place's share of the media ports, and of the limits that each process counts. */
export function workerConfig(config: Config, { index, count }: GatewayPlace): Config {
  const { media, admission } = config;
  const pairs = portPairs(media);
  const firstPair = Math.floor((pairs * (index - 1)) / (2 * count));
  const nextPair = Math.floor((pairs * index) / (2 * count));
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

/** The names of all processes that there may be at once. */
export function workerInstances(instance: string, { count }: GatewayPlace): readonly string[] {
  return Array.from({ length: 2 * count }, (_none, at) => workerInstance(instance, { index: at + 1, count }));
}

/** Its name across restarts. */
export function workerInstance(instance: string, { index }: GatewayPlace): string {
  return index === 1 ? instance : `${instance}-${String(index)}`;
}
