import { qualitySampleSchema } from './schemas/calls-api.js';
import { z } from 'zod';
import { type TraceEntry, traceEntrySchema } from '../model/call-trace.js';
import type { QualitySample } from '../../rtp/quality.js';
import { callRecordSchema, type CallRecord } from '../model/call-record.js';
import type { CallInProgress, CallTarget, LiveCall, LiveCalls, StopReason } from '../model/live-calls.js';
import type { ScopedReads } from './scoped-reads.js';
import type { Scope, Stores } from '../ports/stores.js';
import { ApiFailure } from './failure.js';

const targetSchema = z.union([
  z.strictObject({ url: z.url().max(2_000), method: z.enum(['GET', 'POST']) }),
  z.strictObject({ twiml: z.string().max(65_536) }),
]);

/** What one gateway asks another about a call that is there. */
const gatewayRequestSchema = z.discriminatedUnion('do', [
  z.strictObject({ do: z.literal('stop'), call_id: z.uuid(), reason: z.enum(['AGENT_HANGUP', 'API_STOPPED']) }),
  z.strictObject({ do: z.literal('redirect'), call_id: z.uuid(), to: targetSchema }),
  z.strictObject({ do: z.literal('trace'), call_id: z.uuid() }),
  z.strictObject({ do: z.literal('transcript'), call_id: z.uuid() }),
  z.strictObject({ do: z.literal('quality'), call_id: z.uuid() }),
]);

type GatewayRequest = z.output<typeof gatewayRequestSchema>;

const stopAnswerSchema = z.strictObject({ isStopped: z.boolean() });

const redirectAnswerSchema = z.strictObject({ isRedirected: z.boolean() });

/** `null`: the call has ended. */
const traceAnswerSchema = z.strictObject({ trace: z.array(traceEntrySchema).nullable() });

/** `null`: the call has ended. */
const transcriptAnswerSchema = z.strictObject({ transcript: callRecordSchema.shape.transcript.nullable() });

/** `null`: the call has ended. */
const qualityAnswerSchema = z.strictObject({ samples: z.array(qualitySampleSchema).nullable() });

/** What this gateway answers to another one. Rejects what is no request: then the other one hears nothing. */
export async function answerGateway(calls: LiveCalls, body: unknown): Promise<object> {
  const request = gatewayRequestSchema.parse(body);
  switch (request.do) {
    case 'trace':
      return { trace: calls.trace(request.call_id) };
    case 'transcript':
      return { transcript: calls.transcript(request.call_id) };
    case 'quality':
      return { samples: await calls.quality(request.call_id) };
    case 'redirect':
      return { isRedirected: calls.redirect(request.call_id, request.to) };
    case 'stop':
      return { isStopped: calls.stop(request.call_id, request.reason) };
  }
}

const ANSWER_LIMIT_MS = 2_000;
const RETRY_AFTER_S = 2;

/** Calls in progress of an organization, or of all for an operator, on this gateway or another one. */
export class CallControl {
  constructor(
    private readonly here: LiveCalls,
    private readonly stores: Pick<Stores, 'bus'>,
    private readonly reads: Pick<ScopedReads, 'liveCall'>,
  ) {}

  /** `null`: none, or of another organization. */
  async find(scope: Scope, callId: string): Promise<LiveCall | null> {
    const local = this.#here(scope, callId);
    if (local !== null) return local;
    const call = await this.reads.liveCall(scope, callId);
    if (call === null) return null;
    const { org_id: orgId, direction, from, to, started_at: startedAt, answer, parent_call_id: parentCallId } = call;
    const parent = parentCallId === undefined ? {} : { parentCallId };
    const answeredAtMs = answer === null ? null : Date.parse(answer.answered_at);
    return { callId, orgId, direction, from, to, startedAtMs: Date.parse(startedAt), answeredAtMs, ...parent };
  }

  /** False: there is no such call in progress. Throws GATEWAY_UNAVAILABLE when the call's gateway does not answer. */
  async stop(scope: Scope, callId: string, reason: StopReason): Promise<boolean> {
    if (this.#here(scope, callId) !== null) return this.here.stop(callId, reason);
    const call = await this.reads.liveCall(scope, callId);
    if (call === null) return false;
    return (await this.#ask(call.gateway, { do: 'stop', call_id: callId, reason }, stopAnswerSchema)).isStopped;
  }

  /** False: there is no such answered call in progress. Throws GATEWAY_UNAVAILABLE when the call's gateway does not answer. */
  async redirect(scope: Scope, callId: string, to: CallTarget): Promise<boolean> {
    if (this.#here(scope, callId) !== null) return this.here.redirect(callId, to);
    const call = await this.reads.liveCall(scope, callId);
    if (call === null) return false;
    return (await this.#ask(call.gateway, { do: 'redirect', call_id: callId, to }, redirectAnswerSchema)).isRedirected;
  }

  /** What happened in a call in progress; `null`: there is none. */
  async trace(scope: Scope, callId: string): Promise<readonly TraceEntry[] | null> {
    if (this.#here(scope, callId) !== null) return this.here.trace(callId);
    const call = await this.reads.liveCall(scope, callId);
    return call === null ? null : (await this.#ask(call.gateway, { do: 'trace', call_id: callId }, traceAnswerSchema)).trace;
  }

  /** What was said in a call in progress; empty where its gateway does not answer. */
  async transcript(scope: Scope, { call_id: callId, gateway }: CallInProgress): Promise<CallRecord['transcript']> {
    if (this.#here(scope, callId) !== null) return this.here.transcript(callId) ?? [];
    const answer = await this.#ask(gateway, { do: 'transcript', call_id: callId }, transcriptAnswerSchema).catch(() => null);
    return answer?.transcript ?? [];
  }

  /** How a call in progress sounded until now; `null`: there is none. */
  async quality(scope: Scope, callId: string): Promise<readonly QualitySample[] | null> {
    if (this.#here(scope, callId) !== null) return this.here.quality(callId);
    const call = await this.reads.liveCall(scope, callId);
    return call === null ? null : (await this.#ask(call.gateway, { do: 'quality', call_id: callId }, qualityAnswerSchema)).samples;
  }

  #here(scope: Scope, callId: string): LiveCall | null {
    const call = this.here.find(callId);
    return call !== null && (scope === null || call.orgId === scope) ? call : null;
  }

  async #ask<Answer extends z.ZodType>(gateway: string, request: GatewayRequest, schema: Answer): Promise<z.output<Answer>> {
    const answer = schema.safeParse(await this.stores.bus.request(gateway, request, ANSWER_LIMIT_MS));
    if (answer.success) return answer.data;
    throw new ApiFailure('GATEWAY_UNAVAILABLE', 'The gateway that has the call does not answer. Try again.', {
      headers: { 'retry-after': String(RETRY_AFTER_S) },
    });
  }
}
