import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { batchLogEntrySchema, batchSchema } from '../../model/batch-log.js';
import { batchEventBody, newBatchBody } from '../schemas/batches-api.js';
import { wholeNumber } from '../schemas/sip-api.js';
import { orgQuery } from '../schemas/page-query.js';
import type { ScopedReads } from '../scoped-reads.js';
import type { Stores } from '../../ports/stores.js';
import { dataAnswer, exampleOf, success } from '../answers.js';
import { identityOf, scopeOf } from '../auth.js';
import type { RecordAudit } from '../audit.js';
import { ApiFailure } from '../failure.js';

export interface BatchRoutesOptions {
  readonly stores: Pick<Stores, 'batches'>;
  readonly reads: ScopedReads;
  readonly note: RecordAudit;
}

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
  batch_id: z
    .string()
    .max(100)
    .meta({ description: 'UUID', examples: ['7f9d7a3e-6a53-4c53-9f5b-0f0d8a2d1c11'] }),
});
/** UUIDs are the same in either case. */
const batchIdOf = ({ batch_id: id }: z.output<typeof params>): string => id.toLowerCase();

/** GET and POST /v2/batches, and /v2/batches/{batch_id}/logs. Registered behind authentication. */
export const batchRoutes: FastifyPluginAsyncZod<BatchRoutesOptions> = async (app, { stores, reads, note }) => {
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
  return Promise.resolve();
};

function noSuchBatch(): ApiFailure {
  return new ApiFailure('NOT_FOUND', 'There is no such batch');
}
