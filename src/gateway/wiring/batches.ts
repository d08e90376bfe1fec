import type { Config } from '../../config/schema.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { BatchDialler } from '../batches/batch-dialler.js';
import type { Inbound } from '../drachtio/inbound.js';
import { subscribe } from '../ports/events.js';
import type { RedisStores } from '../store/redis/redis-stores.js';
import { callPlacer } from './place-call.js';

export type BatchDialling = Pick<BatchDialler, 'stop' | 'close'>;

/** This gateway's part of the work on batches that dial; begins at once. */
export function openBatches(
  config: Config,
  instance: string,
  clock: Clock,
  log: Log,
  { stores, inbound }: { readonly stores: RedisStores; readonly inbound: Inbound },
): BatchDialling {
  const { batchWork: work, dialAllowance: allowance } = stores;
  const placeCall = callPlacer(inbound);
  const isHere = (callId: string): boolean => inbound.find(callId) !== null;
  const { max_duration_minutes: longestMinutes } = config.calls;
  const dialler = new BatchDialler({ ...stores, work, allowance, placeCall, isHere, instance, longestMinutes, clock, log });
  const ends = [
    subscribe('call.ended', (ended) => dialler.onEnded(ended)),
    subscribe('call.digit', ({ callId, digit }) => dialler.onDigit(callId, digit)),
  ];
  dialler.start();
  return {
    stop: () => dialler.stop(),
    close: async () => {
      for (const end of ends) end();
      await dialler.close();
    },
  };
}
