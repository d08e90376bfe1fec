import type { Client } from '../../../src/client/index.js';
import { ApiError } from '../../../src/client/api-error.js';

// Loss, jitter and MOS of a call over time.

export interface QualityFigures {
  readonly lost_percent: number;
  readonly jitter_ms: number;
  readonly mos: number;
}

export interface QualitySample {
  /** Since the call was answered. */
  readonly at_ms: number;
  readonly from_caller: QualityFigures | null;
  readonly to_caller: QualityFigures | null;
  readonly round_trip_ms: number | null;
}

interface QualityAnswer {
  readonly samples: readonly QualitySample[];
}

/** Nothing where the server keeps none, or does not know the route. */
export async function qualityOf(api: Client, callId: string): Promise<readonly QualitySample[]> {
  const get = api.GET as unknown as (path: string, init: object) => Promise<QualityAnswer>;
  try {
    return (await get('/v1/calls/{call_id}/quality', { params: { path: { call_id: callId } } })).samples;
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
