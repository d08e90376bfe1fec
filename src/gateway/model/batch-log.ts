import { z } from 'zod';
import { moment, uuid } from './described.js';

// Batches of calls and their logs (§2.2, §4.6 of the interface).

export const batchSchema = z.object({
  batch_id: uuid(),
  org_id: uuid(),
  name: z.string(),
  created_at: moment(),
});

export const batchLogEntrySchema = z
  .object({
    id: uuid(),
    batch_id: uuid(),
    org_id: uuid(),
    event_type: z.string().describe('`lifecycle`, `complete`, or another one'),
    timestamp: moment(),
    payload: z
      .record(z.string(), z.unknown())
      .describe('`lifecycle`: message, state_change. `complete`: calls_total, calls_failed, calls_successful'),
  })
  .meta({
    id: 'BatchLogEntry',
    description: "An entry of a batch's log",
    examples: [
      {
        id: '2b1f8f6c-6a53-4c53-9f5b-0f0d8a2d1c11',
        batch_id: '7f9d7a3e-6a53-4c53-9f5b-0f0d8a2d1c11',
        org_id: '0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52',
        event_type: 'complete',
        timestamp: '2026-01-01T00:00:00.000Z',
        payload: { calls_total: 100, calls_failed: 2, calls_successful: 98 },
      },
    ],
  });

export type BatchRecord = Readonly<z.output<typeof batchSchema>>;
export type BatchLogEntry = Readonly<z.output<typeof batchLogEntrySchema>>;

/** An entry of a batch's log; `timestamp` defaults to now. */
export type BatchEvent = Pick<BatchLogEntry, 'event_type' | 'payload'> & { readonly timestamp?: string | undefined };
