import { z } from 'zod';

// Batches of calls and their logs (§2.2, §4.6 of the interface).

const MAX_PAYLOAD_BYTES = 16_384;

export const EVENT_TYPE = /^[a-z][a-z0-9_]{0,63}$/;

const count = z.int().min(0);

/** What an entry of each type says; one of any other type says what its writer likes. */
const PAYLOADS: Readonly<Record<string, z.ZodType<Readonly<Record<string, unknown>>>>> = {
  lifecycle: z.strictObject({ message: z.string().min(1).max(2_000), state_change: z.string().min(1).max(64) }),
  complete: z.strictObject({ calls_total: count, calls_failed: count, calls_successful: count }),
};
const anyPayload = z.record(z.string().max(256), z.unknown());

/** What is wrong with an event, in a sentence; `null`: nothing. */
export function batchEventProblem({ event_type: type, payload, timestamp }: BatchEvent): string | null {
  if (!EVENT_TYPE.test(type)) return 'event_type must be 1 to 64 small letters, digits and underscores';
  if (timestamp !== undefined && !z.iso.datetime({ offset: true }).safeParse(timestamp).success)
    return 'timestamp must be ISO 8601 with a zone';
  const parsed = (PAYLOADS[type] ?? anyPayload).safeParse(payload);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return `payload${issue === undefined ? '' : `.${issue.path.map(String).join('.')}`} is not that of a ${type} entry: ${issue?.message ?? ''}`;
  }
  const isSmall = Buffer.byteLength(JSON.stringify(payload)) <= MAX_PAYLOAD_BYTES;
  return isSmall ? null : `payload must have at most ${String(MAX_PAYLOAD_BYTES)} bytes as JSON`;
}

/** What a writer tells of a batch. */
export interface BatchEvent {
  readonly event_type: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Left out: now. */
  readonly timestamp?: string;
}

export interface BatchRecord {
  /** UUID. */
  readonly batch_id: string;
  readonly org_id: string;
  readonly name: string;
  readonly created_at: string;
}

export interface BatchLogEntry {
  /** UUID. */
  readonly id: string;
  readonly batch_id: string;
  readonly org_id: string;
  readonly event_type: string;
  readonly timestamp: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

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
    description: 'What happened to a batch',
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
