import type { Client, Schemas } from '../../../src/client/index.js';
import { ApiError } from '../../../src/client/api-error.js';

// Loss, jitter and MOS of a call over time.

export type QualitySample = Schemas['QualitySample'];
export type QualityFigures = NonNullable<QualitySample['from_caller']>;

/** Nothing of a call that is being written down at this moment. */
export async function qualityOf(api: Client, callId: string): Promise<readonly QualitySample[]> {
  try {
    return (await api.GET('/v1/calls/{call_id}/quality', { params: { path: { call_id: callId } } })).samples;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return [];
    throw error;
  }
}

export interface QualityLines {
  /** Seconds. */
  readonly x: readonly number[];
  readonly fromCaller: Readonly<Record<keyof QualityFigures, readonly (number | null)[]>>;
  readonly toCaller: Readonly<Record<keyof QualityFigures, readonly (number | null)[]>>;
}

export function linesOf(samples: readonly QualitySample[]): QualityLines {
  const side = (name: 'from_caller' | 'to_caller') => ({
    lost_percent: samples.map((sample) => sample[name]?.lost_percent ?? null),
    jitter_ms: samples.map((sample) => sample[name]?.jitter_ms ?? null),
    mos: samples.map((sample) => sample[name]?.mos ?? null),
  });
  return { x: samples.map(({ at_ms: atMs }) => atMs / 1_000), fromCaller: side('from_caller'), toCaller: side('to_caller') };
}
