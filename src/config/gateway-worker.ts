import { availableParallelism } from 'node:os';
import type { Config } from './schema.js';

/** One of the gateway processes that `trunkline up` starts: together they are one gateway to whoever looks from outside. */
export interface GatewayWorker {
  /** From 1. The first one serves the control API, for all of them. */
  readonly index: number;
  readonly count: number;
}

/** As many as the setting may ask for. */
const MAX_WORKERS = 64;

export const ONLY_WORKER: GatewayWorker = { index: 1, count: 1 };

/** How many gateway processes the settings ask for. One core is left to the SIP server and rtpengine (docs/adr/0004). */
export function workerCount(config: Config, cores = availableParallelism()): number {
  return config.gateway.workers ?? Math.min(MAX_WORKERS, Math.max(1, cores - 1));
}

/** `2/4`: the second of four. Throws a text for a person. */
export function parseWorker(text: string): GatewayWorker {
  const [, index = 0, count = 0] = (/^(\d{1,3})\/(\d{1,3})$/.exec(text) ?? []).map(Number);
  if (index < 1 || index > count) throw new Error(`--worker ${JSON.stringify(text)} is not like 2/4, the second of four`);
  return { index, count };
}

/** The settings of one worker: its share of the media ports, and of the limits that count in one process. */
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

/** What it is called in logs and metrics. */
export function workerName(index: number): string {
  return index === 1 ? 'gateway' : `gateway-${String(index)}`;
}

/** A name that the worker keeps across restarts. */
export function workerInstance(instance: string, { index }: GatewayWorker): string {
  return index === 1 ? instance : `${instance}-${String(index)}`;
}
