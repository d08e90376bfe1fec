import { z } from 'zod';
import { agentName } from './agent-settings.js';

// Batches and their logs over HTTP (§2.2, §4.6 of the interface).

const MAX_PAYLOAD_BYTES = 16_384;

const count = z.int().min(0);

/** What an entry of each type says; one of any other type says what its writer likes. */
const PAYLOADS = new Map<string, z.ZodType>([
  ['lifecycle', z.strictObject({ message: z.string().min(1).max(2_000), state_change: z.string().min(1).max(64) })],
  ['complete', z.strictObject({ calls_total: count, calls_failed: count, calls_successful: count })],
]);

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
  });
