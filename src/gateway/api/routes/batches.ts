import { agentName } from '../schemas/agent-settings.js';
import type { RouteContext, ZodApp } from '../context.js';
import { z } from 'zod';
import { batchLogEntrySchema, batchSchema } from '../../model/batch-log.js';
import { wholeNumber } from '../schemas/sip-api.js';
import { idParam, orgQuery } from '../schemas/page-query.js';
import { dataAnswer, exampleOf, success } from '../answers.js';
import { identityOf, scopeOf } from '../auth.js';
import { ApiFailure } from '../failure.js';

const MAX_PAYLOAD_BYTES = 16_384;

const count = z.int().min(0);

/** What an entry of each type says; one of any other type says what its writer likes. */
const PAYLOADS = new Map<string, z.ZodType>([
  ['lifecycle', z.strictObject({ message: z.string().min(1).max(2_000), state_change: z.string().min(1).max(64) })],
  ['complete', z.strictObject({ calls_total: count, calls_failed: count, calls_successful: count })],
]);

const newBatchBody = z.strictObject({ name: agentName }).meta({ examples: [{ name: 'Reminders' }] });

/** The body of a new entry. */
const batchEventBody = z
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

const DEFAULT_TAKE = 100;
const tags = ['Batches'];
const page = { take: wholeNumber(1, 1000, DEFAULT_TAKE), skip: wholeNumber(0, 10_000_000, 0), ...orgQuery };
const pageOf = ({ take, skip }: { readonly take?: string | undefined; readonly skip?: string | undefined }) => ({
  take: Number(take ?? DEFAULT_TAKE),
  skip: Number(skip ?? 0),
});
const logQuery = z.strictObject({
  ...page,
  direction: z
    .enum(['asc', 'desc'], 'must be "asc" or "desc"')
    .default('desc')
    .meta({ description: 'Oldest first, or newest first', examples: ['asc'] }),
});

const params = z.object({
  batch_id: idParam('UUID', '7f9d7a3e-6a53-4c53-9f5b-0f0d8a2d1c11'),
});
/** UUIDs are the same in either case. */
const batchIdOf = ({ batch_id: id }: z.output<typeof params>): string => id.toLowerCase();

/** GET and POST /v2/batches, and /v2/batches/{batch_id}/logs. Registered behind authentication. */
export function batchRoutes(app: ZodApp, { stores, reads, note }: RouteContext): void {
  app.get('/v2/batches', {
    schema: {
      tags,
      summary: 'List the batches',
      description: 'Newest first.',
      querystring: z.strictObject(page),
      response: { 200: dataAnswer('The batches', z.array(batchSchema).readonly(), [exampleOf(batchSchema)]) },
    },
    handler: async (request) => {
      return success(await reads.batches(scopeOf(request), pageOf(request.query)));
    },
  });

  app.post('/v2/batches', {
    schema: {
      tags,
      summary: 'Create a batch',
      description: 'The gateway keeps the batch and its log for `batches.retention_days`.',
      body: newBatchBody,
      response: { 200: dataAnswer('The batch', batchSchema, exampleOf(batchSchema)) },
    },
    handler: async (request) => {
      const data = await stores.batches.create({ orgId: identityOf(request).orgId, name: request.body.name.trim() });
      await note(request, 'batch.create', data.batch_id, ['name']);
      return success(data);
    },
  });

  app.get('/v2/batches/:batch_id/logs', {
    config: { failures: ['NOT_FOUND'] },
    schema: {
      tags,
      summary: 'Read the log of a batch',
      description: 'Newest first, unless `direction` is `asc`.',
      params,
      querystring: logQuery,
      response: { 200: dataAnswer('The entries', z.array(batchLogEntrySchema).readonly(), [exampleOf(batchLogEntrySchema)]) },
    },
    handler: async (request) => {
      const { direction } = request.query;
      const data = await stores.batches.read(scopeOf(request), batchIdOf(request.params), {
        ...pageOf(request.query),
        direction,
      });
      if (data === null) throw noSuchBatch();
      return success(data);
    },
  });

  app.post('/v2/batches/:batch_id/logs', {
    config: { failures: ['NOT_FOUND'] },
    schema: {
      tags,
      summary: 'Append to the log of a batch',
      description: 'The log keeps the newest `batches.max_entries`.',
      params,
      body: batchEventBody,
      response: { 200: dataAnswer('The entry', batchLogEntrySchema, exampleOf(batchLogEntrySchema)) },
    },
    handler: async (request) => {
      const entry = await stores.batches.append(identityOf(request).orgId, batchIdOf(request.params), request.body);
      if (entry === null) throw noSuchBatch();
      return success(entry);
    },
  });
}

function noSuchBatch(): ApiFailure {
  return new ApiFailure('NOT_FOUND', 'There is no such batch');
}
