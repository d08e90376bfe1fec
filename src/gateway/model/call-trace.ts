import { z } from 'zod';
import { moment } from './described.js';

/** An event in a call's trace. Keys and secrets in `text` are masked. */
export const traceEntrySchema = z
  .object({
    at: moment('With milliseconds'),
    source: z.enum(['sip', 'rtpengine', 'agent', 'gateway']),
    direction: z.enum(['in', 'out']).nullable().describe('Towards the gateway, or from it; null: within it'),
    summary: z.string().describe('One line'),
    text: z.string().nullable().describe('The message, without keys and credentials; null: only a summary'),
  })
  .meta({ id: 'TraceEntry', description: "An event in a call's trace" });

export type TraceEntry = Readonly<z.output<typeof traceEntrySchema>>;

/** A piece of work of a call. Milliseconds of the epoch. */
export interface TimedStep {
  readonly name: string;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly isFailed: boolean;
}

export interface Timeline {
  readonly steps: readonly TimedStep[];
  readonly moments: readonly { readonly name: string; readonly atMs: number }[];
}
