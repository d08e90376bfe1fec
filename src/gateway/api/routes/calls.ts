import type { RouteContext, ZodApp } from '../context.js';
import { z } from 'zod';
import {
  callFoundSchema,
  callPageSchema,
  callQualitySchema,
  callsQuerySchema,
  stopBodySchema,
  traceSchema,
  type CallAnswerBody,
  type CallDetail,
  type CallsQuery,
  endedCall,
  liveCall,
} from '../schemas/calls-api.js';
import { parseE164 } from '../../model/e164.js';
import { uuidParam, DEFAULT_PAGE_LIMIT, orgQuery } from '../schemas/page-query.js';
import type { CallPage, CallQuery, Scope } from '../../ports/stores.js';
import { messageAnswer, successAnswer } from '../answers.js';
import { identityOf, scopeOf } from '../auth.js';
import { beforeOf, nextOf } from '../cursor.js';
import { ApiFailure } from '../failure.js';

type AnsweredPage = CallPage<CallAnswerBody>;

const tags = ['Calls'];

const params = z.object({
  call_id: uuidParam('The id of the call', '153ee546-05b9-4d95-bd6d-f899f082d48b'),
});

/** The routes of calls: list, read, stop. Registered behind authentication. */
export function callRoutes(app: ZodApp, { stores, reads, control, note }: RouteContext): void {
  const listEnded = async (scope: Scope, query: CallQuery): Promise<AnsweredPage> => {
    const { calls, next } = await reads.calls(scope, query);
    return { calls: calls.map(endedCall), next };
  };
  const listLive = async (scope: Scope, query: CallQuery, state: CallsQuery['state']): Promise<AnsweredPage> => {
    const { calls, next } = await reads.liveCalls(scope, query);
    return { calls: calls.map(liveCall).filter((call) => state === 'live' || call.state === state), next };
  };
  const find = async (scope: Scope, callId: string): Promise<CallDetail | null> => {
    // One whose end Redis could not take stays in the list for a while.
    const [record, live] = await Promise.all([reads.call(scope, callId), reads.liveCall(scope, callId)]);
    if (record !== null) return endedCall(record);
    // Between its end and its record the last state is shown; a later request gets the record.
    const shown = live ?? (await reads.endingCall(scope, callId));
    if (shown === null) return null;
    const transcript = live === null ? [] : await control.transcript(scope, live);
    return { ...liveCall(shown), transcript, analysis_rejected: null };
  };

  app.get('/v1/calls', {
    schema: {
      operationId: 'listCalls',
      tags,
      summary: 'List calls',
      description:
        'Ended and refused calls, newest first; with `state=live`, calls in progress on all gateways. With `sip_call_id`, the newest 200 with that Call-ID, from an index. One request scans at most 1000 calls: with a filter, a page may hold ' +
        'fewer than `limit` or none, and still have a `next`.',
      querystring: callsQuerySchema,
      response: { 200: successAnswer('A page of calls', callPageSchema) },
    },
    handler: async (request) => {
      const query = queryOf(request.query);
      const { state = 'ended' } = request.query;
      const scope = scopeOf(request);
      const { calls, next } = await (state === 'ended' ? listEnded(scope, query) : listLive(scope, query, state));
      return { status: 'success' as const, calls, next: nextOf('calls', next) };
    },
  });

  app.get('/v1/calls/:call_id', {
    config: { failures: ['NOT_FOUND'] },
    schema: {
      operationId: 'getCall',
      tags,
      summary: 'Read one call',
      description:
        'Includes the transcript, which the list omits. For a call in progress, values not known yet are null, and the transcript is what was said until now.',
      params,
      querystring: z.strictObject(orgQuery),
      response: { 200: successAnswer('The call', callFoundSchema) },
    },
    handler: async (request) => {
      const callId = callIdOf(request.params);
      const call = callId === null ? null : await find(scopeOf(request), callId);
      if (call === null) throw noSuchCall();
      return { status: 'success' as const, call };
    },
  });

  app.get('/v1/calls/:call_id/trace', {
    config: { failures: ['NOT_FOUND', 'GATEWAY_UNAVAILABLE'] },
    schema: {
      operationId: 'getCallTrace',
      tags,
      summary: 'Read the trace of a call',
      description:
        "SIP messages, commands to rtpengine, the agent's requests with their answers, and the gateway's decisions, oldest first; for a call in " +
        'progress, up to now. Media keys, credentials and tokens are masked. Empty when no trace is stored.',
      params,
      querystring: z.strictObject(orgQuery),
      response: { 200: successAnswer('The trace', traceSchema) },
    },
    handler: async (request) => {
      const scope = scopeOf(request);
      const callId = callIdOf(request.params);
      const live = callId === null ? null : await control.trace(scope, callId);
      if (live !== null) return { status: 'success' as const, trace: live };
      const record = callId === null ? null : await reads.call(scope, callId);
      if (record !== null) return { status: 'success' as const, trace: await reads.trace(record) };
      if (callId === null || (await reads.endingCall(scope, callId)) === null) throw noSuchCall();
      return { status: 'success' as const, trace: [] };
    },
  });

  app.get('/v1/calls/:call_id/quality', {
    config: { failures: ['NOT_FOUND', 'GATEWAY_UNAVAILABLE'] },
    schema: {
      operationId: 'getCallQuality',
      tags,
      summary: 'Read the quality of a call over time',
      description:
        "Loss, jitter and MOS of both directions: the caller's audio as the gateway received it, and the agent's audio from the caller's RTCP reports. For a call in progress, up to now. Empty without audio.",
      params,
      querystring: z.strictObject(orgQuery),
      response: { 200: successAnswer('The samples', callQualitySchema) },
    },
    handler: async (request) => {
      const scope = scopeOf(request);
      const callId = callIdOf(request.params);
      const live = callId === null ? null : await control.quality(scope, callId);
      if (live !== null) return { status: 'success' as const, live: true, samples: live };
      const record = callId === null ? null : await reads.call(scope, callId);
      if (record !== null) return { status: 'success' as const, live: false, samples: record.samples };
      if (callId === null || (await reads.endingCall(scope, callId)) === null) throw noSuchCall();
      return { status: 'success' as const, live: false, samples: [] };
    },
  });

  app.post('/v1/calls/:call_id/stop', {
    config: { failures: ['NOT_FOUND', 'GATEWAY_UNAVAILABLE'] },
    schema: {
      operationId: 'stopCall',
      tags,
      summary: 'End a call in progress',
      description:
        'The gateway with the call sends BYE, or 603 before the answer; CANCEL to a number that rings. The record gets API_STOPPED or DECLINED.',
      params,
      body: stopBodySchema,
      response: { 200: messageAnswer('The gateway of the call ends it', 'Call 153ee546-05b9-4d95-bd6d-f899f082d48b is being ended') },
    },
    handler: async (request) => {
      const { orgId } = identityOf(request);
      const callId = callIdOf(request.params);
      if (callId !== null && (await control.stop(orgId, callId, 'API_STOPPED'))) {
        await note(request, 'call.stop', callId);
        return { status: 'success' as const, message: `Call ${callId} is being ended` };
      }
      const record = callId === null ? null : await stores.calls.get(orgId, callId);
      throw new ApiFailure('NOT_FOUND', record === null ? 'There is no such call in progress' : 'The call has ended');
    },
  });
}

function noSuchCall(): ApiFailure {
  return new ApiFailure('NOT_FOUND', 'There is no such call');
}

/** `null`: it is no id. */
function callIdOf({ call_id: text }: z.output<typeof params>): string | null {
  return z.uuid().safeParse(text).data?.toLowerCase() ?? null;
}

function queryOf(query: CallsQuery): CallQuery {
  const to = query.phone_number === undefined ? undefined : parseE164(query.phone_number);
  return {
    limit: Number(query.limit ?? DEFAULT_PAGE_LIMIT),
    ...beforeOf('calls', query.before),
    ...(to === undefined ? {} : { to }),
    ...(query.from === undefined ? {} : { from: query.from }),
    ...(query.reason === undefined ? {} : { reason: query.reason }),
    ...(query.sip_call_id === undefined ? {} : { sipCallId: query.sip_call_id }),
    ...(query.since === undefined ? {} : { sinceMs: Date.parse(query.since) }),
    ...(query.until === undefined ? {} : { untilMs: Date.parse(query.until) }),
  };
}
