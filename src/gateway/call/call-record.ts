import type { CallSnapshot } from '../model/call-snapshot.js';
import type { OwnSide } from './call-dialog.js';
import type { DialogSnapshot } from '../ports/signalling.js';
import type { AgentRecord } from '../model/agent-record.js';
import type { Completion } from '../model/completion.js';
import {
  NO_TURNS,
  type CallerIdentity,
  type CallQuality,
  type CallRecord,
  type CallSource,
  type CallTurns,
  type StreamQuality,
} from '../model/call-record.js';
import type { LegFigures, RelayFigures, StreamFigures } from '../model/media.js';
import type { AudioCodec } from '../../rtp/codec/g711.js';
import type { BeginningCall, CallAnswer } from '../model/live-calls.js';
import type { Route } from '../model/records.js';
import type { CallNotes } from './agent-requests.js';
import type { CallState } from './state.js';
import { scriptOfForm5, type VoiceScript } from '../twilio/voice-script.js';
import { SUITE } from '../sdp/sdp-read.js';
import { REASONS, type Reason } from '../model/reasons.js';

/** What is known of a call from its INVITE, whatever becomes of it. Plain data: it is kept for a restart. */
export interface CallOrigin {
  /** UUID. */
  readonly callId: string;
  readonly sipCallId: string;
  /** The called number, or the Request-URI when it names none. */
  readonly to: string;
  readonly caller: CallerIdentity;
  readonly source: CallSource;
  readonly startedAtMs: number;
}

/** When things happened, in milliseconds of the epoch; `null`: they did not. Plain data. */
export interface CallProgress {
  readonly ringingAtMs: number | null;
  readonly answeredAtMs: number | null;
  /** The gateway was killed and took the call up again so many times. */
  readonly resumed: number;
  /** What went wrong with the connection to the agent last. */
  readonly agentError: string | null;
  /** Status callbacks that went out. */
  readonly reports: number;
}

export function beginningOf({ callId, sipCallId, caller, source, startedAtMs }: CallOrigin): BeginningCall {
  return { call_id: callId, sip_call_id: sipCallId, from: caller.number, source, started_at: new Date(startedAtMs).toISOString() };
}

export function answerOf(state: CallState, { answeredAtMs, resumed }: CallProgress): CallAnswer {
  return {
    answered_at: new Date(answeredAtMs ?? 0).toISOString(),
    agent_id: state.route?.agent?.agent_id ?? null,
    ...mediaOf(state),
    resumed,
  };
}

/** What was agreed, or chosen: a call may end before both sides of its media are connected. */
function mediaOf({ session, media }: CallState): { readonly codec: AudioCodec | null; readonly crypto_suite: string | null } {
  const chosen = session?.media ?? media;
  return { codec: chosen?.codec.name ?? null, crypto_suite: (chosen?.crypto ?? null) === null ? null : SUITE };
}

export function callRecord(
  origin: CallOrigin,
  progress: CallProgress,
  state: CallState,
  media: { readonly endpoint: LegFigures | null; readonly relay: RelayFigures | null },
  notes: CallNotes,
  end: { readonly reason: Reason; readonly atMs: number },
): CallRecord {
  const { route } = state;
  const { answeredAtMs, ringingAtMs } = progress;
  return {
    call_id: origin.callId,
    org_id: route?.org.org_id ?? null,
    agent_id: route?.agent?.agent_id ?? null,
    sip_call_id: origin.sipCallId,
    from: origin.caller.number,
    to: origin.to,
    caller: origin.caller,
    source: origin.source,
    identity: state.identity,
    reason: end.reason,
    sip_status: answeredAtMs === null ? REASONS[end.reason].sipStatus : 200,
    ...mediaOf(state),
    started_at: new Date(origin.startedAtMs).toISOString(),
    answered_at: answeredAtMs === null ? null : new Date(answeredAtMs).toISOString(),
    ended_at: new Date(end.atMs).toISOString(),
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
    stale_route: state.isStale,
    resumed: progress.resumed,
  };
}

/** What an earlier process of the gateway, or a media worker that died, had of it is lost. */
function transcriptState(
  { said }: CallNotes,
  { resumed }: CallProgress,
  reason: Reason,
): Pick<CallRecord, 'transcript_state' | 'transcript_error'> {
  const lost = resumed > 0 ? 'the gateway was restarted in the call' : reason === 'MEDIA_LOST' ? 'the media of the call was lost' : null;
  const error = said.cause ?? (said.state === null ? null : lost);
  if (said.cause !== null || error === null) return { transcript_state: said.state, transcript_error: error };
  return { transcript_state: 'partial', transcript_error: error };
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

/** What is due after a call; `null`: nothing. */
export function completionOf(record: CallRecord, agent: AgentRecord | null): Completion | null {
  if (agent === null || record.answered_at === null) return null;
  const analysisSchema = record.analysis_error === null ? null : agent.analysis_schema;
  const url = agent.webhook ?? null;
  if (url === null && analysisSchema === null) return null;
  const { call_id, transcript, analysis, from, to, reason, started_at, answered_at, ended_at, quality } = record;
  const told = { call_id, transcript, analysis, from, to, reason, started_at, answered_at, ended_at, quality };
  return { url, payload: { ...told, metadata: agent.metadata }, analysisSchema };
}

const ANALYSIS_DUE = 'A text model reads the transcript.';

/** An agent that sent a transcript and no analysis: a text model finds what its owner wants to know. */
function analysisError({ route }: CallState, { said, analysis }: CallNotes): string | null {
  const isDue = route?.agent?.analysis_schema != null && analysis === null && said.transcript.length > 0;
  return isDue ? ANALYSIS_DUE : null;
}

/** A call as it is kept for the next process of this gateway. */
export interface KeptCall {
  readonly origin: CallOrigin;
  readonly own: OwnSide;
  readonly progress: CallProgress;
  readonly dialog: DialogSnapshot;
  /** The media relay that has its session. */
  readonly node: string | null;
  readonly call: CallState;
  /** `null`: the call has no voice webhook. */
  readonly script: VoiceScript | null;
}

/** What is written is read by another version of the gateway, perhaps: it takes its own form only. */
const FORM = 6;

/** `null`: there is nothing to take up again. */
export function snapshotCall(
  call: CallState,
  parts: Omit<KeptCall, 'call' | 'dialog'> & { readonly dialog: DialogSnapshot | null },
): CallSnapshot | null {
  const { route } = call;
  if (parts.dialog === null || route === null) return null;
  return {
    call_id: parts.origin.callId,
    org_id: route.org.org_id,
    phone_number: route.number.phone_number,
    call: beginningOf(parts.origin),
    answer: answerOf(call, parts.progress),
    state: { form: FORM, ...parts, call },
  };
}

/** `undefined`: another version of the gateway wrote it. Form 5 is read too: it had no `<Start>` and no status callback before the end. */
export function readKeptCall({ state }: CallSnapshot): KeptCall | undefined {
  const kept = state as (KeptCall & { readonly form: number }) | null;
  if (kept?.form === FORM - 1) return { ...kept, progress: { ...kept.progress, reports: 0 }, script: scriptOfForm5(kept.script) };
  return kept?.form === FORM ? kept : undefined;
}
