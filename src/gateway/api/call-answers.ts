import type { CallAnswerBody } from './schemas/calls-api.js';
import type { CallRecord } from '../model/call-record.js';
import type { CallInProgress } from '../model/live-calls.js';

// A call as the API shows it: one shape, whether it has ended or not.

export function endedCall<Record extends CallRecord>(record: Record): Record & { readonly state: 'ended' } {
  return { ...record, state: 'ended' };
}

export function liveCall(call: CallInProgress): CallAnswerBody {
  const { org_id, call_id, sip_call_id, from, to, source, started_at, answer } = call;
  const answeredAfterMs = answer === null ? null : Math.max(0, Date.parse(answer.answered_at) - Date.parse(started_at));
  return {
    call_id,
    state: answer === null ? 'ringing' : 'in_progress',
    org_id,
    agent_id: answer?.agent_id ?? null,
    sip_call_id,
    from,
    to,
    caller: null,
    source,
    identity: null,
    reason: null,
    sip_status: answer === null ? null : 200,
    codec: answer?.codec ?? null,
    crypto_suite: answer?.crypto_suite ?? null,
    started_at,
    answered_at: answer?.answered_at ?? null,
    ended_at: null,
    timings: { ring_ms: null, answer_ms: answeredAfterMs, first_audio_ms: null, talk_ms: null },
    quality: { endpoint: null, relay: null },
    analysis: null,
    agent_error: null,
    stale_route: null,
    resumed: answer?.resumed ?? 0,
  };
}
