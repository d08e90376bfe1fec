import { z } from 'zod';
import { sipHeaders } from './sip-headers.js';

// Every message on an agent's WebSocket. The first group of each direction is Twilio Media Streams, word for word; the second are
// extensions, which an agent gets only when it used one itself.

/** Longest text of one message of an agent: 40 minutes of speech in one piece would still fit no queue. */
export const MAX_AGENT_MESSAGE_BYTES = 2 * 1_024 * 1_024;

const requestId = z.string().min(1).max(128);
const streamSid = z.string().max(64).optional();
/** Counts, chunks and times are strings, as Twilio's are. */
const numberText = z.string().regex(/^\d+$/);

const encoding = z.enum(['audio/x-mulaw', 'audio/x-alaw', 'audio/l16']);

/** `inbound`: what the caller says. `outbound`: what the caller hears. */
const track = z.enum(['inbound', 'outbound']);

/** What the gateway sends. */
export const toAgentMessage = z.discriminatedUnion('event', [
  z.strictObject({ event: z.literal('connected'), protocol: z.literal('Call'), version: z.literal('1.0.0') }),
  z.strictObject({
    event: z.literal('start'),
    sequenceNumber: numberText,
    start: z.strictObject({
      accountSid: z.string().regex(/^AC[0-9a-f]{32}$/),
      streamSid: z.string().regex(/^MZ[0-9a-f]{32}$/),
      callSid: z.string().regex(/^CA[0-9a-f]{32}$/),
      /** `outbound`: of `<Start><Stream>` only. */
      tracks: z.array(track).min(1).max(2),
      mediaFormat: z.strictObject({ encoding, sampleRate: z.union([z.literal(8_000), z.literal(16_000)]), channels: z.literal(1) }),
      customParameters: z.record(z.string(), z.string()),
    }),
    streamSid: z.string(),
  }),
  z.strictObject({
    event: z.literal('media'),
    sequenceNumber: numberText,
    media: z.strictObject({
      track,
      chunk: numberText,
      /** Milliseconds of the track's audio before this piece. */
      timestamp: numberText,
      /** 20 ms of G.711 µ-law, base64. */
      payload: z.base64(),
    }),
    streamSid: z.string(),
  }),
  z.strictObject({
    event: z.literal('dtmf'),
    streamSid: z.string(),
    sequenceNumber: numberText,
    dtmf: z.strictObject({ track: z.literal('inbound_track'), digit: z.string().regex(/^[0-9*#A-D]$/) }),
  }),
  z.strictObject({
    event: z.literal('mark'),
    sequenceNumber: numberText,
    streamSid: z.string(),
    mark: z.strictObject({ name: z.string() }),
  }),
  z.strictObject({
    event: z.literal('stop'),
    sequenceNumber: numberText,
    stop: z.strictObject({ accountSid: z.string(), callSid: z.string() }),
    streamSid: z.string(),
  }),
  ...(['speech_started', 'speech_stopped'] as const).map((event) =>
    z.strictObject({
      event: z.literal(event),
      sequenceNumber: numberText,
      streamSid: z.string(),
      /** As in `media`: when the caller began, or the first moment after the last word. */
      speech: z.strictObject({ timestamp: numberText }),
    }),
  ),
  z.strictObject({
    event: z.literal('tool_result'),
    sequenceNumber: numberText,
    streamSid: z.string(),
    tool: z.strictObject({ id: requestId, result: z.unknown(), httpStatus: z.int().nullable() }),
  }),
  z.strictObject({
    event: z.literal('transfer'),
    sequenceNumber: numberText,
    streamSid: z.string(),
    /** `status`: what the other side answered; `null`: nothing in time. `reason`: why a call of ours to the target failed; else omitted. */
    transfer: z.strictObject({
      id: requestId.nullable(),
      state: z.enum(['accepted', 'answered', 'failed', 'ended']),
      status: z.int().nullable(),
      reason: z.string().optional(),
    }),
  }),
  z.strictObject({
    event: z.literal('dropped'),
    sequenceNumber: numberText,
    streamSid: z.string(),
    /** `inbound`: the agent read too slowly, and the oldest audio is gone. `outbound`: it spoke too far ahead, and the newest is. */
    dropped: z.strictObject({ track, milliseconds: z.int().min(1) }),
  }),
  z.strictObject({
    event: z.literal('answered_by'),
    sequenceNumber: numberText,
    streamSid: z.string(),
    /** Who answered a call that was placed with `detect_answerer`. `isFinal` false: a first guess. `greetingEnded`: how a machine's greeting ended; `null`: it goes on. */
    answeredBy: z.strictObject({
      answerer: z.enum(['person', 'machine', 'fax', 'unknown']),
      isFinal: z.boolean(),
      greetingEnded: z.enum(['beep', 'silence']).nullable(),
    }),
  }),
  z.strictObject({
    event: z.literal('error'),
    sequenceNumber: numberText,
    streamSid: z.string(),
    /** `request`: the event that was refused. */
    error: z.strictObject({ request: z.string(), id: requestId.nullable(), code: z.string(), message: z.string() }),
  }),
]);

const digits = z.string().regex(/^[0-9*#A-Da-d]{1,64}$/, 'must be 1 to 64 of 0-9, *, #, A-D');
const transcriptEntry = z.strictObject({
  speaker: z.enum(['agent', 'caller']),
  text: z.string().min(1).max(10_000),
  at_ms: z.int().min(0).max(86_400_000).optional(),
});

/** What an agent sends. Fields that are not named here are ignored, as Twilio does. */
export const fromAgentMessage = z.discriminatedUnion('event', [
  z.object({ event: z.literal('media'), streamSid, media: z.object({ payload: z.string() }) }),
  z.object({ event: z.literal('mark'), streamSid, mark: z.object({ name: z.string().max(1_024) }) }),
  z.object({ event: z.literal('clear'), streamSid }),
  z.object({
    event: z.literal('configure'),
    streamSid,
    configure: z.strictObject({
      /** `speech_started` and `speech_stopped` are wanted. */
      speech_events: z.boolean().optional(),
      /** The caller's first word clears what is queued, and gives its marks back. */
      barge_in: z.boolean().optional(),
      /** In place of the agent's `interruption_threshold`, in milliseconds. */
      end_of_speech_ms: z.int().min(20).max(10_000).optional(),
      /** `dropped` is wanted. */
      drop_events: z.boolean().optional(),
    }),
  }),
  z.object({
    event: z.literal('hangup'),
    streamSid,
    /** `speech` (the default): when all that is queued was played. `sip_headers`: of the BYE. */
    hangup: z.strictObject({ after: z.enum(['speech', 'now']).optional(), sip_headers: sipHeaders.optional() }).optional(),
  }),
  z.object({
    event: z.literal('dtmf'),
    streamSid,
    dtmf: z.strictObject({ digits, duration_ms: z.int().min(40).max(5_000).optional() }),
  }),
  z.object({
    event: z.literal('transfer'),
    streamSid,
    /**
     * `briefing`: spoken to the person who answers, before the caller is joined. `step`: `consult`: the agent talks with the answerer, while the
     * caller hears music; the others follow, without `to`: all three talk, the agent leaves, or the other party does. `sip_headers`: of the REFER
     * and its Refer-To, or of the INVITE of a call of ours.
     */
    transfer: z.union([
      z.strictObject({
        id: requestId.optional(),
        to: z.string().min(1).max(512),
        briefing: z.string().min(1).max(2_000).optional(),
        step: z.literal('consult').optional(),
        sip_headers: sipHeaders.optional(),
      }),
      z.strictObject({ id: requestId.optional(), step: z.enum(['conference', 'complete', 'cancel']) }),
    ]),
  }),
  z.object({
    event: z.literal('transcript'),
    streamSid,
    transcript: z.strictObject({ entries: z.array(transcriptEntry).min(1).max(100) }),
  }),
  z.object({
    event: z.literal('analysis'),
    streamSid,
    analysis: z.strictObject({ id: requestId.optional(), data: z.record(z.string(), z.unknown()) }),
  }),
  z.object({
    event: z.literal('do_not_call'),
    streamSid,
    /** With an id, `tool_result` answers it. */
    do_not_call: z.strictObject({ id: requestId.optional() }).optional(),
  }),
  z.object({
    event: z.literal('tool'),
    streamSid,
    tool: z.strictObject({ id: requestId, name: z.string().min(1).max(128), input: z.unknown() }),
  }),
]);

export type FromAgentMessage = z.infer<typeof fromAgentMessage>;
export type ToAgentMessage = z.infer<typeof toAgentMessage>;
