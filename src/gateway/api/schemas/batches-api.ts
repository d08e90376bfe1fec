import { z } from 'zod';
import type { BatchEvent } from '../../model/batch-log.js';
import { agentName } from './agent-settings.js';

// Batches and their logs over HTTP (§2.2, §4.6 of the interface).

const MAX_PAYLOAD_BYTES = 16_384;

const count = z.int().min(0);

/** What an entry of each type says; one of any other type says what its writer likes. */
const PAYLOADS = new Map<string, z.ZodType>([
  ['lifecycle', z.strictObject({ message: z.string().min(1).max(2_000), state_change: z.string().min(1).max(64) })],
  ['complete', z.strictObject({ calls_total: count, calls_failed: count, calls_successful: count })],
]);

export const batchSchema = z
  .object({ batch_id: z.string().describe('UUID'), org_id: z.string(), name: z.string(), created_at: z.string().describe('ISO 8601') })
  .meta({
    id: 'Batch',
    description: 'A batch of calls',
    examples: [
      {
        batch_id: '7f9d7a3e-6a53-4c53-9f5b-0f0d8a2d1c11',
        org_id: '0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52',
        name: 'Reminders',
        created_at: '2026-01-01T00:00:00.000Z',
      },
    ],
  });

export const batchLogEntrySchema = z
  .object({
    id: z.string().describe('UUID'),
    batch_id: z.string(),
    org_id: z.string(),
    event_type: z.string().describe('`lifecycle`, `complete`, or another one'),
    timestamp: z.string().describe('ISO 8601'),
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

export const newBatchBody = z.strictObject({ name: agentName }).meta({ examples: [{ name: 'Reminders' }] });

/** The body of a new entry. */
export const batchEventBody = z
  .strictObject({
    event_type: z
      .string()
      .regex(/^[a-z][a-z0-9_]{0,63}$/, 'must be 1 to 64 small letters, digits and underscores')
      .describe('`lifecycle`, `complete`, or another one'),
    payload: z
      .record(z.string().max(256), z.unknown())
      .refine((payload) => Buffer.byteLength(JSON.stringify(payload)) <= MAX_PAYLOAD_BYTES, {
        message: `must have at most ${String(MAX_PAYLOAD_BYTES)} bytes as JSON`,
      })
      .describe('`lifecycle`: message, state_change. `complete`: calls_total, calls_failed, calls_successful'),
    timestamp: z.iso.datetime({ offset: true, error: 'must be ISO 8601 with a zone' }).optional().describe('Default: now'),
  })
  .check(({ value: { event_type: type, payload }, issues }) => {
    const found = PAYLOADS.get(type)?.safeParse(payload).error?.issues ?? [];
    for (const issue of found) issues.push({ ...issue, input: payload, path: ['payload', ...issue.path] } as z.core.$ZodRawIssue);
  })
  .meta({
    examples: [{ event_type: 'lifecycle', payload: { message: '100 requested, 0 dispatched', state_change: 'in_progress' } }],
  }) satisfies z.ZodType<BatchEvent>;
