import { NO_NUMBERS, type BatchText, type ReadBatch } from '../batch-body.js';
import { fieldsOfQuery, type GivenNumber } from '../batch-numbers.js';
import { digestOf, idempotencyKeyOf, madeBefore } from '../idempotency.js';
import type { BatchTerms } from '../batch-preview.js';
import { makeBatch, refusedRows } from '../new-batch.js';
import {
  BATCH_BODY_BYTES,
  createdBatchSchema,
  CSV_COLUMNS,
  newBatchBody,
  shownBatchSchema,
  type CreatedBatch,
  type NewBatchBody,
  type ShownBatch,
} from '../schemas/batches-api.js';
import { IDEMPOTENCY_HEADERS } from '../schemas/place-call.js';
import type { ApiErrorEntry } from '../schemas/api-error.js';
import { FINAL_STATES, lifecycleEvent, longestCallMinutes, type BatchPlan, type BatchState } from '../../model/batch.js';
import { parseE164, type E164 } from '../../model/e164.js';
import { newUuid } from '../../../lib/ids.js';
import type { Scope } from '../../ports/stores.js';
import type { RouteContext, ZodApp } from '../context.js';
import type { FastifyRequest, preValidationAsyncHookHandler } from 'fastify';
import { z } from 'zod';
import { batchLogEntrySchema, type BatchRecord } from '../../model/batch-log.js';
import { stopBodySchema } from '../schemas/calls-api.js';
import { wholeNumber } from '../schemas/sip-api.js';
import { uuidParam, orgQuery } from '../schemas/page-query.js';
import { dataAnswer, exampleOf, success } from '../answers.js';
import { identityOf, scopeOf } from '../auth.js';
import { bodyProblem } from '../body-problem.js';
import { ApiFailure, validationFailure } from '../failure.js';
import { CSV_TYPE } from '../openapi-shape.js';

const MAX_PAYLOAD_BYTES = 16_384;

const count = z.int().min(0);

/** What an entry of each type says; one of any other type says what its writer likes. */
const PAYLOADS = new Map<string, z.ZodType>([
  ['lifecycle', z.strictObject({ message: z.string().min(1).max(2_000), state_change: z.string().min(1).max(64) })],
  ['complete', z.strictObject({ calls_total: count, calls_failed: count, calls_successful: count })],
]);

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
  batch_id: uuidParam('The id of the batch', '7f9d7a3e-6a53-4c53-9f5b-0f0d8a2d1c11'),
});
/** UUIDs are the same in either case. */
const batchIdOf = ({ batch_id: id }: z.output<typeof params>): string => id.toLowerCase();

/** GET and POST /v2/batches, and /v2/batches/{batch_id}/logs. Registered behind authentication. */
export function batchRoutes(app: ZodApp, context: RouteContext): void {
  const { stores, reads, note, agentPolicy } = context;

  app.get('/v2/batches', {
    schema: {
      operationId: 'listBatches',
      tags,
      summary: 'List the batches',
      description: 'Newest first.',
      querystring: z.strictObject(page),
      response: { 200: dataAnswer('The batches', z.array(shownBatchSchema).readonly(), [exampleOf(shownBatchSchema)]) },
    },
    handler: async (request) => {
      const scope = scopeOf(request);
      return success(await shown(scope, await reads.batches(scope, pageOf(request.query))));
    },
  });

  /** Numbers that were read before their fields are looked at. */
  const read = new WeakMap<FastifyRequest, ReadBatch>();
  const readBatchBody = async (request: FastifyRequest, text: BatchText): Promise<ReadBatch> => {
    const batch = await context.readBatch(identityOf(request).orgId, text);
    if (!batch.ok) throw validationFailure(batch.error);
    return batch.value;
  };

  // Apart, so that no other route takes CSV, or so much JSON.
  void app.register((dialling: ZodApp, _options, done) => {
    dialling.addContentTypeParser(
      CSV_TYPE,
      { parseAs: 'buffer', bodyLimit: BATCH_BODY_BYTES },
      async (request: FastifyRequest, bytes: Buffer) => {
        read.set(request, await readBatchBody(request, { type: 'csv', text: textOf(request, bytes) }));
        return { ...fieldsOfQuery(request.query as Readonly<Record<string, unknown>>), csv: 'read' };
      },
    );
    const readJson = dialling.getDefaultJsonParser('error', 'error');
    dialling.removeContentTypeParser('application/json');
    dialling.addContentTypeParser<Buffer>(
      'application/json',
      { parseAs: 'buffer', bodyLimit: BATCH_BODY_BYTES },
      (request, bytes, done) => {
        const problem = bodyProblem(request.headers, bytes);
        if (problem !== null) {
          done(problem);
          return;
        }
        readBatchBody(request, { type: 'json', text: bytes.toString() }).then((batch) => {
          read.set(request, batch);
          void readJson(request, batch.fields ?? '', done);
        }, done);
      },
    );
    dialling.post('/v2/batches', {
      bodyLimit: BATCH_BODY_BYTES,
      config: { failures: ['DIAL_NOT_ALLOWED', 'IDEMPOTENCY_KEY_REUSED', 'LIMIT_REACHED', 'NOT_READY'], queryIsBody: true, csv: CSV_BODY },
      preValidation: refuseQueryOfJson,
      schema: {
        operationId: 'createBatch',
        tags,
        summary: 'Create a batch',
        description:
          'With `numbers` or `csv` the answer shows what would be dialled: counts, hours, cost, and every refused row. Nothing is dialled before ' +
          '`POST /v2/batches/{batch_id}/start`, or with `"start": true` when no row is refused (docs/batches.md). Without numbers it is a log that you write. The gateway keeps the batch and its log ' +
          'for `batches.retention_days`. The body may have 8 MiB. With the content type `text/csv` it is the CSV, and the other fields of a JSON body are in the query, as text or JSON.',
        headers: IDEMPOTENCY_HEADERS,
        body: newBatchBody(agentPolicy),
        response: { 200: dataAnswer('The batch', createdBatchSchema, exampleOf(createdBatchSchema)) },
      },
      handler: async (request, reply) => {
        const { orgId } = identityOf(request);
        const { body } = request;
        const { from } = body;
        if (from === undefined) {
          const data = await stores.batches.create({ orgId, name: body.name.trim() });
          await note(request, 'batch.create', data.batch_id, ['name']);
          return success({ ...data, ...LOG_ONLY, refused_rows: [] });
        }
        const { plan, terms } = await planOf(context, orgId, body, from);
        const { rows, count, digest: numbersDigest, unreadable, problems } = read.get(request) ?? NO_NUMBERS;
        if (problems.length > 0) throw validationFailure(problems);
        const key = idempotencyKeyOf(request);
        const digest = digestOf({ ...body, numbers: numbersDigest, csv: null });
        const known = key === null ? null : await stores.placements.find(orgId, key);
        if (known !== null) return success(await created(orgId, madeBefore(known, digest, reply)));
        await refuseTooMany(orgId, count);
        const batchId = newUuid();
        const claimed = key === null ? null : await stores.placements.claim(orgId, { key, digest, callId: batchId });
        if (claimed !== null) return success(await created(orgId, madeBefore(claimed, digest, reply)));
        const keep = key === null ? () => Promise.resolve(true) : () => stores.placements.keep(orgId, { key, callId: batchId });
        const { name, start } = body;
        const given = { given: givenIn(rows ?? []), count, unreadable };
        const refused_rows = await makeBatch(
          stores,
          { orgId, batchId, name: name.trim(), plan, terms, ...given, start, keep },
          context.clock,
        );
        await note(request, 'batch.create', batchId, Object.keys(body));
        return success({ ...(await one(orgId, batchId)), refused_rows });
      },
    });
    done();
  });

  app.get('/v2/batches/:batch_id', {
    config: { failures: ['NOT_FOUND'] },
    schema: {
      operationId: 'getBatch',
      tags,
      summary: 'Read a batch',
      description: 'Its state, how it dials, and its counts up to now.',
      params,
      querystring: z.strictObject(orgQuery),
      response: { 200: dataAnswer('The batch', shownBatchSchema, exampleOf(shownBatchSchema)) },
    },
    handler: async (request) => success(await one(scopeOf(request), batchIdOf(request.params))),
  });

  for (const [action, from, to, summary, description] of ACTIONS)
    app.post(`/v2/batches/:batch_id/${action}`, {
      config: { failures: ['NOT_FOUND', 'BATCH_STATE'] },
      schema: {
        operationId: `${action}Batch`,
        tags,
        summary,
        description,
        params,
        body: stopBodySchema,
        response: { 200: dataAnswer('The batch', shownBatchSchema, exampleOf(shownBatchSchema)) },
      },
      handler: async (request) => {
        const { orgId } = identityOf(request);
        const batchId = batchIdOf(request.params);
        const [run = null] = await stores.batchRuns.read(orgId, [batchId]);
        const isMoved = run !== null && (await stores.batchRuns.move(batchId, { to, from, events: [lifecycleEvent(run, to)] }));
        const batch = await one(orgId, batchId);
        if (!isMoved && batch.state !== to) throw new ApiFailure('BATCH_STATE', stateProblem(batch.state));
        if (isMoved) await note(request, `batch.${action}`, batchId);
        return success(batch);
      },
    });

  app.get('/v2/batches/:batch_id/logs', {
    config: { failures: ['NOT_FOUND'] },
    schema: {
      operationId: 'listBatchLog',
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
      operationId: 'appendBatchLog',
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

  async function one(scope: Scope, batchId: string): Promise<ShownBatch> {
    const batch = await stores.batches.get(scope, batchId);
    if (batch === null) throw noSuchBatch();
    const [found] = await shown(scope, [batch]);
    return found ?? { ...batch, ...LOG_ONLY };
  }

  /** As its creation answered. */
  async function created(orgId: string, batchId: string): Promise<CreatedBatch> {
    return { ...(await one(orgId, batchId)), refused_rows: await refusedRows(stores.batches, orgId, batchId) };
  }

  async function shown(scope: Scope, batches: readonly BatchRecord[]): Promise<readonly ShownBatch[]> {
    if (batches.length === 0) return [];
    const runs = await stores.batchRuns.read(
      scope,
      batches.map(({ batch_id: id }) => id),
    );
    return batches.map((batch, index) => {
      const run = runs[index] ?? null;
      return { ...batch, ...(run === null ? LOG_ONLY : { state: run.state, plan: run.plan, counts: run.counts, preview: run.preview }) };
    });
  }

  async function refuseTooMany(orgId: string, more: number): Promise<void> {
    const newest = await shown(orgId, await stores.batches.list(orgId, { take: 4 * MAX_RUNNING, skip: 0 }));
    const running = newest.filter(({ state }) => state !== null && !FINAL_STATES.includes(state));
    if (running.length >= MAX_RUNNING)
      throw new ApiFailure('LIMIT_REACHED', `An organization has at most ${String(MAX_RUNNING)} batches that are not over`);
    const waiting = running.reduce((sum, { counts }) => sum + (counts?.waiting ?? 0), 0);
    if (waiting + more > MAX_WAITING)
      throw new ApiFailure(
        'LIMIT_REACHED',
        `An organization has at most ${String(MAX_WAITING)} numbers that wait to be dialled; ${String(waiting)} do so now`,
      );
  }
}

const CSV_BODY = {
  description: `${CSV_COLUMNS}. The first line names the columns; a list of numbers alone needs none`,
  examples: ['phone_number,time_zone,name\n+4930123456,Europe/Berlin,Ada\n'],
};
const LOG_ONLY = { state: null, plan: null, counts: null, preview: null } as const;
/** Batches of one organization that dial, or wait, at a time. */
const MAX_RUNNING = 50;
/** Numbers of one organization in Redis, each some 150 bytes. */
const MAX_WAITING = 1_000_000;

const ACTIONS = [
  ['start', ['ready'], 'in_progress', 'Start a batch', 'It dials the numbers that its creation showed.'],
  ['pause', ['in_progress'], 'paused', 'Pause a batch', 'It begins no more calls; those in progress go on.'],
  ['resume', ['paused'], 'in_progress', 'Go on with a paused batch', 'It dials again where it was.'],
  [
    'stop',
    ['validating', 'ready', 'in_progress', 'paused'],
    'stopped',
    'Stop a batch for good',
    'It begins no more calls; those in progress go on.',
  ],
] as const satisfies readonly (readonly [string, readonly BatchState[], BatchState, string, string])[];

function stateProblem(state: BatchState | null): string {
  return state === null ? 'The batch is a log only: it dials nothing' : `The batch is ${state.replace('_', ' ')}`;
}

/** How the batch dials. Throws when the organization may not dial so. */
async function planOf(
  { stores, placeCall, agentPolicy }: RouteContext,
  orgId: string,
  body: NewBatchBody,
  text: string,
): Promise<{ readonly plan: BatchPlan; readonly terms: Omit<BatchTerms, 'orgId' | 'plan' | 'nowMs'> }> {
  const from = parseE164(text);
  const agentId = body.agent_id?.toLowerCase() ?? null;
  const [org, number, agent] = await Promise.all([
    stores.orgs.get(orgId),
    from === undefined ? null : stores.numbers.get(orgId, from),
    agentId === null ? null : stores.agents.get(orgId, agentId),
  ]);
  const webhook = body.webhook === '' ? null : (body.webhook ?? null);
  const bad = [
    ...(number?.outbound == null ? [entry('from', 'is not a number of yours that is attached for outbound calls')] : []),
    ...(agentId !== null && agent === null ? [entry('agent_id', 'is not the id of an agent of yours')] : []),
    ...(webhook !== null && !agentPolicy.isWebhookHost(new URL(webhook).hostname)
      ? [entry('webhook', 'is at a private, loopback or reserved address, which this service does not call')]
      : []),
  ];
  if (bad.length > 0 || org === null || number === null || from === undefined) throw validationFailure(bad);
  const refusal = placeCall.fromRefusal({ org, number });
  if (refusal !== null) throw new ApiFailure('DIAL_NOT_ALLOWED', refusal);
  const {
    calls_per_second,
    max_concurrent_calls,
    hours,
    retries,
    do_not_call_digit,
    ring_timeout,
    max_duration,
    metadata,
    detect_answerer,
  } = body;
  const plan = {
    from,
    agent_id: agentId,
    calls_per_second,
    max_concurrent_calls,
    hours,
    retries,
    do_not_call_digit,
    ring_timeout,
    webhook,
    max_duration: max_duration ?? null,
    metadata: metadata ?? null,
    detect_answerer,
  };
  const terms = {
    doNotCall: stores.doNotCall,
    priceOf: (to: E164) => placeCall.priceOf({ org, number, to }),
    minutes: longestCallMinutes(plan, agent, agentPolicy.maxDurationMinutes),
  };
  return { plan, terms };
}

/** The fields are in the query where the body is CSV, and are validated as the body's. */
const refuseQueryOfJson: preValidationAsyncHookHandler = async ({ headers, query }) => {
  const names = Object.keys(query as object);
  if (names.length === 0 || /^\s*text\/csv\b/i.test(headers['content-type'] ?? '')) return Promise.resolve();
  throw validationFailure(names.map((name) => entry(name.slice(0, 64), 'is a field of the body')));
};

function* givenIn(rows: readonly string[]): Generator<readonly GivenNumber[]> {
  for (const some of rows) yield JSON.parse(some) as readonly GivenNumber[];
}

function entry(path: string, message: string): ApiErrorEntry {
  return { error: 'VALIDATION', message, path };
}

function noSuchBatch(): ApiFailure {
  return new ApiFailure('NOT_FOUND', 'There is no such batch');
}

function textOf(request: FastifyRequest, bytes: Buffer): string {
  const problem = bodyProblem(request.headers, bytes);
  if (problem !== null) throw problem;
  return bytes.toString();
}
