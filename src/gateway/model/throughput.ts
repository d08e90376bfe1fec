import { z } from 'zod';
import { moment, whole } from './described.js';

/** Calls are counted by stretches of this length. */
export const THROUGHPUT_STEP_S = 10;
/** Fifteen minutes of them are kept. */
export const THROUGHPUT_INTERVALS = 90;

export interface Throughput {
  /** Oldest first, the one that is not over yet included. */
  readonly intervals: readonly ThroughputInterval[];
  readonly inProgress: number;
}

const EXAMPLE = {
  status: 'success' as const,
  step_seconds: THROUGHPUT_STEP_S,
  in_progress: 12,
  intervals: [{ at: '2026-01-01T00:00:00.000Z', begun: 31, ended: 28, refused: 2 }],
};

const intervalSchema = z.object({
  at: moment('Its start'),
  begun: whole("INVITEs to the organization's numbers, refused ones included"),
  ended: whole('Answered calls that ended'),
  refused: whole('Calls that ended unanswered: refused, or cancelled by the caller'),
});

/** What happened in one stretch of time. */
export type ThroughputInterval = Readonly<z.output<typeof intervalSchema>>;

/** The answer to GET /v1/throughput. */
export const throughputSchema = z
  .object({
    status: z.literal('success'),
    step_seconds: whole('Length of an interval'),
    in_progress: whole('Calls in progress on all gateways'),
    intervals: z
      .array(intervalSchema)
      .readonly()
      .describe(
        `The last ${String((THROUGHPUT_INTERVALS * THROUGHPUT_STEP_S) / 60)} minutes, oldest first; the last interval is incomplete`,
      ),
  })
  .meta({ examples: [EXAMPLE] });
