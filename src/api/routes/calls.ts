import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import {
  callFoundSchema,
  callPageSchema,
  callsQuerySchema,
  type CallAnswerBody,
  type CallDetail,
  type CallsQuery,
} from '../../contracts/calls-api.js';
import { parseE164 } from '../../contracts/e164.js';
import type { CallPage, CallQuery, Stores } from '../../store/stores.js';
import { failureAnswers, successAnswer } from '../answers.js';
import { identityOf } from '../auth.js';
import { endedCall, liveCall } from '../call-answers.js';
import { cursorOf, memberOf } from '../call-cursor.js';
import { ApiFailure, validationFailure } from '../failure.js';

export interface CallRoutesOptions {
  readonly stores: Pick<Stores, 'calls' | 'live'>;
}

type AnsweredPage = CallPage<CallAnswerBody>;

const DEFAULT_LIMIT = 50;
const tags = ['Calls'];
const security = [{ apiKey: [] }];
const FAILURES = ['UNAUTHENTICATED', 'ORG_DISABLED', 'RATE_LIMITED', 'INTERNAL', 'STORE_UNAVAILABLE', 'VALIDATION'] as const;

/** GET /v1/calls and GET /v1/calls/{call_id}. Registered behind authentication. */
export const callRoutes: FastifyPluginAsyncZod<CallRoutesOptions> = async (app, { stores }) => {
  const listEnded = async (orgId: string, query: CallQuery): Promise<AnsweredPage> => {
    const { calls, next } = await stores.calls.list(orgId, query);
    return { calls: calls.map(endedCall), next };
  };
  const listLive = async (orgId: string, query: CallQuery): Promise<AnsweredPage> => {
    const { calls, next } = await stores.live.list(orgId, query);
    return { calls: calls.map(liveCall), next };
  };
  const find = async (orgId: string, callId: string): Promise<CallDetail | null> => {
    const live = await stores.live.get(orgId, callId);
    if (live !== null) return { ...liveCall(live), transcript: [] };
    const record = await stores.calls.get(orgId, callId);
    return record === null ? null : endedCall(record);
  };

  app.get('/v1/calls', {
    schema: {
      tags,
      security,
      summary: 'List calls',
      description:
        'Calls that ended or were refused, newest first; with `state=live` those in progress, on whichever gateway. One request looks at 1000 calls at most: under a filter a page may hold ' +
        'fewer than `limit`, or none, and have a `next` all the same.',
      querystring: callsQuerySchema,
      response: { 200: successAnswer('A page of calls', callPageSchema), ...failureAnswers(FAILURES) },
    },
    handler: async (request) => {
      const query = queryOf(request.query);
      const { orgId } = identityOf(request);
      const { calls, next } = request.query.state === 'live' ? await listLive(orgId, query) : await listEnded(orgId, query);
      return { status: 'success' as const, calls, next: next === null ? null : cursorOf(next) };
    },
  });

  app.get('/v1/calls/:call_id', {
    schema: {
      tags,
      security,
      summary: 'Read one call',
      description: 'With its transcript, which the list leaves out. One in progress has null where nothing is known yet.',
      params: z.object({
        call_id: z
          .string()
          .max(100)
          .meta({ description: 'UUID', examples: ['153ee546-05b9-4d95-bd6d-f899f082d48b'] }),
      }),
      response: { 200: successAnswer('The call', callFoundSchema), ...failureAnswers([...FAILURES, 'NOT_FOUND']) },
    },
    handler: async (request) => {
      const id = z.uuid().safeParse(request.params.call_id);
      const call = id.success ? await find(identityOf(request).orgId, id.data.toLowerCase()) : null;
      if (call === null) throw new ApiFailure('NOT_FOUND', 'There is no such call');
      return { status: 'success' as const, call };
    },
  });
  return Promise.resolve();
};

function queryOf(query: CallsQuery): CallQuery {
  const before = query.before === undefined ? undefined : memberOf(query.before);
  if (before === null) throw validationFailure([{ error: 'VALIDATION', message: 'is not the next of a page', path: 'before' }]);
  const to = query.phone_number === undefined ? undefined : parseE164(query.phone_number);
  return {
    limit: Number(query.limit ?? DEFAULT_LIMIT),
    ...(before === undefined ? {} : { before }),
    ...(to === undefined ? {} : { to }),
    ...(query.from === undefined ? {} : { from: parseE164(query.from) ?? query.from }),
    ...(query.reason === undefined ? {} : { reason: query.reason }),
    ...(query.since === undefined ? {} : { sinceMs: Date.parse(query.since) }),
    ...(query.until === undefined ? {} : { untilMs: Date.parse(query.until) }),
  };
}
