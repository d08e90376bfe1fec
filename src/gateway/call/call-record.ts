import type { AgentRecord } from '../model/agent-record.js';
import type { Completion } from '../model/completion.js';
import { NO_TURNS, type CallLeg, type CallQuality, type CallRecord, type CallTurns, type StreamQuality } from '../model/call-record.js';
import type { LegFigures, RelayFigures, StreamFigures } from '../model/media.js';
import { isoTime } from '../../lib/clock.js';
import type { AudioCodec } from '../../rtp/codec/g711.js';
import type { CallAnswer } from '../model/live-calls.js';
import type { Route } from '../model/records.js';
import type { PlacedEnd } from '../ports/ports.js';
import type { Call, CallNotes, CallProgress, LegNote } from './call.js';
import type { CallState } from './state.js';
import { SUITE } from '../sdp/sdp-read.js';
import { REASONS, type Reason } from '../model/reasons.js';

export function answerOf({ state, progress }: Pick<Call, 'state' | 'progress'>): CallAnswer {
  const { answeredAtMs, resumed, agentError, signallingError } = progress;
  return {
    answered_at: isoTime(answeredAtMs ?? 0),
    agent_id: agentIdOf(state.route),
    agent_error: agentError,
    signalling_error: signallingError,
    ...mediaOf(state),
    resumed,
  };
}

/** The settings that a placed call was given alone have no id. */
function agentIdOf(route: Route | null): string | null {
  const id = route?.agent?.agent_id ?? '';
  return id === '' ? null : id;
}

/** The status of the final response to the INVITE as it went over the wire; `null`: there was none. */
function sipStatusOf({ placing }: CallState, { answeredAtMs, refusalStatus }: CallProgress, reason: Reason): number | null {
  if (answeredAtMs !== null) return 200;
  if (placing !== null) return placing.status;
  // The SIP server answers a CANCEL by itself.
  return refusalStatus ?? (reason === 'CALLER_CANCELLED' ? REASONS[reason].sipStatus : null);
}

/** What the relay knows of a silence. `null`: nothing arrived, or there was none. */
function silenceDetail(reason: Reason, relay: RelayFigures | null): string | null {
  if (reason !== 'MEDIA_TIMEOUT' || relay === null) return null;
  const { packets, errors } = relay.fromCarrier;
  if (packets > 0 || errors === 0) return null;
  return `${String(errors)} packets arrived, and none decrypts with the key of the carrier's description: wrong key, MKI or rollover counter`;
}

/** What was agreed, or chosen: a call may end before both sides of its media are connected. */
function mediaOf({ session, media }: CallState): { readonly codec: AudioCodec | null; readonly crypto_suite: string | null } {
  const chosen = session?.media ?? media;
  return { codec: chosen?.codec.name ?? null, crypto_suite: (chosen?.crypto ?? null) === null ? null : SUITE };
}

export function callRecord(
  { origin, progress, state, notes }: Pick<Call, 'origin' | 'progress' | 'state' | 'notes'>,
  media: { readonly endpoint: LegFigures | null; readonly relay: RelayFigures | null },
  end: { readonly reason: Reason; readonly atMs: number },
): CallRecord {
  const { route } = state;
  const { answeredAtMs, ringingAtMs } = progress;
  return {
    call_id: origin.callId,
    org_id: route?.org.org_id ?? origin.orgId ?? null,
    agent_id: agentIdOf(route),
    direction: origin.direction,
    parent_call_id: origin.parentCallId ?? null,
    sip_call_id: origin.sipCallId,
    from: origin.caller.number,
    to: origin.to,
    caller: { ...origin.caller, headers: { ...origin.caller.headers, ...state.namedHeaders } },
    source: origin.source,
    identity: state.identity,
    reason: end.reason,
    reason_detail: progress.reasonDetail ?? silenceDetail(end.reason, media.relay),
    sip_status: sipStatusOf(state, progress, end.reason),
    ...mediaOf(state),
    started_at: isoTime(origin.startedAtMs),
    answered_at: answeredAtMs === null ? null : isoTime(answeredAtMs),
    ended_at: isoTime(end.atMs),
    timings: {
      ring_ms: since(origin.startedAtMs, ringingAtMs),
      answer_ms: since(origin.startedAtMs, answeredAtMs),
      first_audio_ms: rounded(media.endpoint?.firstAudioMs ?? null),
      talk_ms: answeredAtMs === null ? null : since(answeredAtMs, end.atMs),
    },
    turns: turnsOf(media.endpoint),
    quality: qualityOf(media.endpoint, media.relay),
    samples: media.endpoint?.samples ?? [],
    transcript: notes.said.transcript,
    ...transcriptState(notes, progress, end.reason),
    analysis: notes.analysis,
    analysis_error: analysisError(state, notes),
    analysis_rejected: notes.rejected,
    agent_error: progress.agentError,
    signalling_error: progress.signallingError,
    q850_cause: progress.q850Cause ?? null,
    answered_by: progress.answeredBy,
    legs: progress.legs.map((leg) => legOf(leg, end.atMs)),
    stale_route: state.isStale,
    resumed: progress.resumed,
    summed_calls: null,
  };
}

/** One that goes on when the call ends is ended with it. */
function legOf({ callId, to, answeredAtMs, endedAtMs, reason }: LegNote, callEndedAtMs: number): CallLeg {
  return {
    call_id: callId,
    to,
    reason: reason ?? 'PEER_HANGUP',
    answered_at: answeredAtMs === null ? null : isoTime(answeredAtMs),
    ended_at: isoTime(endedAtMs ?? callEndedAtMs),
  };
}

/** What an earlier process of the gateway, or a media worker that died, had of it is lost. */
function transcriptState(
  { said }: CallNotes,
  { resumed }: CallProgress,
  reason: Reason,
): Pick<CallRecord, 'transcript_state' | 'transcript_error'> {
  const lost = resumed > 0 ? 'the gateway was restarted in the call' : isMediaLost(reason) ? 'the media of the call was lost' : null;
  const error = said.cause ?? (said.state === null ? null : lost);
  if (said.cause !== null || error === null) return { transcript_state: said.state, transcript_error: error };
  return { transcript_state: 'partial', transcript_error: error };
}

function isMediaLost(reason: Reason): boolean {
  return reason === 'MEDIA_LOST' || reason === 'MEDIA_MOVE_REFUSED';
}

function turnsOf(endpoint: LegFigures | null): CallTurns {
  if (endpoint === null) return NO_TURNS;
  const sorted = [...endpoint.turnDelaysMs].sort((a, b) => a - b);
  // The nearest rank.
  const percentile = (part: number): number | null => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? null;
  return {
    first_audio_ms: rounded(endpoint.agentAudioMs),
    delays_ms: endpoint.turnDelaysMs,
    p50_ms: percentile(0.5),
    p95_ms: percentile(0.95),
  };
}

function qualityOf(endpoint: LegFigures | null, relay: RelayFigures | null): CallQuality {
  return {
    endpoint:
      endpoint === null
        ? null
        : {
            packets_sent: endpoint.packetsSent,
            packets_received: endpoint.packetsReceived,
            packets_lost: endpoint.packetsLost,
            jitter_ms: rounded(endpoint.jitterMs) ?? 0,
            round_trip_ms: rounded(endpoint.roundTripMs),
            digits_received: endpoint.digitsReceived,
            frames_late: endpoint.framesLate,
          },
    relay: relay === null ? null : { from_carrier: streamQuality(relay.fromCarrier), from_agent: streamQuality(relay.fromAgent) },
  };
}

function streamQuality({ packets, bytes, errors, lost, jitterMs, roundTripMs, mos }: StreamFigures): StreamQuality {
  return { packets, bytes, errors, lost, jitter_ms: rounded(jitterMs), round_trip_ms: rounded(roundTripMs), mos };
}

/** Milliseconds to a tenth. */
function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 10) / 10;
}

/** The wall clock may be set back. */
function since(fromMs: number, toMs: number | null): number | null {
  return toMs === null ? null : Math.max(0, toMs - fromMs);
}

/** As the organization keeps it: whether the transcript, and for how long. */
export function withRetention(record: CallRecord, route: Route | null): { readonly record: CallRecord; readonly transcriptDays?: number } {
  const days = route?.org.transcript_days ?? null;
  if (days === null) return { record };
  return days > 0 ? { record, transcriptDays: days } : { record: { ...record, transcript: [], transcript_error: NOT_KEPT } };
}

const NOT_KEPT = 'the organization keeps no transcripts';

/** What the record of a placed call leaves out; `undefined`: the call came in. */
export function placedEnd(record: CallRecord, { progress, state }: Pick<Call, 'progress' | 'state'>): PlacedEnd | undefined {
  const { answeredAtMs, acknowledgedAtMs } = progress;
  if (state.placing === null) return undefined;
  const { first_audio_ms: heardMs } = record.turns;
  // An agent that spoke before a restart is not in the figures.
  const sinceAckMs = record.resumed > 0 ? (heardMs ?? 0) : heardMs;
  const ackMs = answeredAtMs === null ? 0 : (since(answeredAtMs, acknowledgedAtMs ?? null) ?? 0);
  return { isDialled: state.lateOffer !== null, silentMs: sinceAckMs === null ? null : ackMs + sinceAckMs };
}

/** What is due after a call; `null`: nothing. */
export function completionOf(record: CallRecord, agent: AgentRecord | null): Completion | null {
  // The owner of a placed call needs to know that nobody answered.
  if (agent === null || (record.answered_at === null && record.direction === 'inbound')) return null;
  const analysisSchema = record.analysis_error === null ? null : agent.analysis_schema;
  const url = agent.webhook ?? null;
  if (url === null && analysisSchema === null) return null;
  const { call_id, transcript, analysis, from, to, reason, started_at, answered_at, ended_at, quality, legs } = record;
  const placed = record.direction === 'outbound' ? { direction: record.direction, answered_by: record.answered_by } : {};
  const transferred = legs.length === 0 ? {} : { legs };
  const cause = record.q850_cause === null ? {} : { q850_cause: record.q850_cause };
  const told = {
    call_id,
    ...placed,
    ...cause,
    ...transferred,
    transcript,
    analysis,
    from,
    to,
    reason,
    started_at,
    answered_at,
    ended_at,
    quality,
  };
  return { url, payload: { ...told, metadata: agent.metadata }, analysisSchema };
}

const ANALYSIS_DUE = 'A text model reads the transcript.';

/** An agent that sent a transcript and no analysis: a text model finds what its owner wants to know. */
function analysisError({ route }: CallState, { said, analysis }: CallNotes): string | null {
  const isDue = route?.agent?.analysis_schema != null && analysis === null && said.transcript.length > 0;
  return isDue ? ANALYSIS_DUE : null;
}
