import { isUtf8 } from 'node:buffer';
import { parseJson } from '../../../lib/bounded-json.js';
import { withoutNulls } from '../../../lib/without-nulls.js';
import type { Answerer } from '../../../rtp/answerer/answerer-detector.js';
import type { AgentAnswer, StreamSettings, StreamTrack } from '../../model/agent.js';
import type { StreamFormat } from '../../../agent-protocol/stream-format.js';
import { fromAgentMessage, type FromAgentMessage, type ToAgentMessage } from '../../../agent-protocol/agent-messages.js';
import { assertNever } from '../../../lib/result.js';
import { MediaText } from './media-message.js';

export type ReadMessage =
  | { readonly ok: true; readonly message: FromAgentMessage }
  /** `event`: what it said it was, if that can be read; it is no extension of ours when `isKnown` is false. */
  | { readonly ok: false; readonly isKnown: boolean; readonly event: string; readonly message: string };

const EXTENSIONS: ReadonlySet<string> = new Set([
  'configure',
  'hangup',
  'dtmf',
  'transfer',
  'transcript',
  'analysis',
  'tool',
  'do_not_call',
]);
/** An analysis and a tool's input: what is null there is the bot's own. */
const OWN_VALUES: ReadonlySet<string> = new Set(['data', 'input']);
const MAX_SHOWN_EVENT = 40;
const OPENING_BRACE = 0x7b;

/** Whether a binary message may be an object of JSON. */
export function beginsAsJson(bytes: Uint8Array): boolean {
  return bytes[0] === OPENING_BRACE;
}

/** Whether a binary message is JSON. Audio may begin with the byte of a brace, too, but is no JSON then. */
export function isJson(bytes: Uint8Array): boolean {
  return beginsAsJson(bytes) && isUtf8(bytes) && parseJson(Buffer.from(bytes).toString()).ok;
}

/** Reads a text message of an agent. */
export function readMessage(text: string): ReadMessage {
  const read = parseJson(text);
  if (!read.ok) return { ok: false, isKnown: false, event: '', message: read.error === 'not-json' ? 'not JSON' : 'nested too deep' };
  const parsed = read.value;
  // Fifty a second and call, of a bot whose messages are never written alike: no schema for these.
  if (isMedia(parsed)) return { ok: true, message: parsed };
  const result = fromAgentMessage.safeParse(withoutNulls(parsed, OWN_VALUES));
  if (result.success) return { ok: true, message: result.data };
  const event = eventOf(parsed);
  const [issue] = result.error.issues;
  return {
    ok: false,
    isKnown: EXTENSIONS.has(event),
    event: event.slice(0, MAX_SHOWN_EVENT),
    message: issue === undefined ? 'not understood' : `${issue.path.join('.')}: ${issue.message}`,
  };
}

function isMedia(parsed: unknown): parsed is Extract<FromAgentMessage, { event: 'media' }> {
  if (typeof parsed !== 'object' || parsed === null) return false;
  const { event, media } = parsed as { event?: unknown; media?: { payload?: unknown } | null };
  return event === 'media' && typeof media?.payload === 'string';
}

function eventOf(parsed: unknown): string {
  const event = typeof parsed === 'object' && parsed !== null && 'event' in parsed ? parsed.event : '';
  return typeof event === 'string' ? event : '';
}

/** What goes over the wire as audio. */
export function mediaFormatOf(format: StreamFormat): Extract<ToAgentMessage, { event: 'start' }>['start']['mediaFormat'] {
  switch (format) {
    case 'twilio':
    case 'pcmu':
      return { encoding: 'audio/x-mulaw', sampleRate: 8_000, channels: 1 };
    case 'pcma':
      return { encoding: 'audio/x-alaw', sampleRate: 8_000, channels: 1 };
    case 'pcm16-8000':
      return { encoding: 'audio/l16', sampleRate: 8_000, channels: 1 };
    case 'pcm16-16000':
      return { encoding: 'audio/l16', sampleRate: 16_000, channels: 1 };
    default:
      return assertNever(format);
  }
}

type Message<Event extends ToAgentMessage['event']> = Extract<ToAgentMessage, { event: Event }>;

/** Writes the messages of one stream: one connection of one call. Sequence numbers, chunks and times begin anew with each. */
export class MessageWriter {
  #sequence = 0;
  readonly #media: Partial<Record<StreamTrack, MediaText>> = {};

  constructor(
    private readonly streamSid: string,
    private readonly settings: Pick<StreamSettings, 'accountSid' | 'callSid' | 'format'>,
    private readonly tracks: readonly StreamTrack[] = ['inbound'],
  ) {}

  connected(): string {
    return text<'connected'>({ event: 'connected', protocol: 'Call', version: '1.0.0' });
  }

  start(customParameters: Readonly<Record<string, string>>): string {
    const { accountSid, callSid, format } = this.settings;
    const { streamSid } = this;
    return text<'start'>({
      event: 'start',
      sequenceNumber: this.#next(),
      start: { accountSid, streamSid, callSid, tracks: [...this.tracks], mediaFormat: mediaFormatOf(format), customParameters },
      streamSid,
    });
  }

  /** With the frame `buffer[offset, offset + 160)`. The bytes of the text are valid until the next one is written. */
  media(buffer: Uint8Array, offset: number, timestampMs: number, track: StreamTrack = 'inbound'): Uint8Array {
    this.#sequence += 1;
    return (this.#media[track] ??= new MediaText(this.streamSid, track)).write(this.#sequence, timestampMs, buffer, offset);
  }

  dtmf(digit: string): string {
    const { streamSid } = this;
    return text<'dtmf'>({ event: 'dtmf', streamSid, sequenceNumber: this.#next(), dtmf: { track: 'inbound_track', digit } });
  }

  mark(name: string): string {
    const { streamSid } = this;
    return text<'mark'>({ event: 'mark', sequenceNumber: this.#next(), streamSid, mark: { name } });
  }

  stop(): string {
    const { accountSid, callSid } = this.settings;
    return text<'stop'>({ event: 'stop', sequenceNumber: this.#next(), stop: { accountSid, callSid }, streamSid: this.streamSid });
  }

  speech(event: 'speech_started' | 'speech_stopped', timestampMs: number): string {
    const speech = { timestamp: String(Math.max(0, Math.round(timestampMs))) };
    return text<typeof event>({ event, sequenceNumber: this.#next(), streamSid: this.streamSid, speech });
  }

  dropped(track: 'inbound' | 'outbound', milliseconds: number): string {
    const dropped = { track, milliseconds: Math.max(1, Math.round(milliseconds)) };
    return text<'dropped'>({ event: 'dropped', sequenceNumber: this.#next(), streamSid: this.streamSid, dropped });
  }

  error(error: Message<'error'>['error']): string {
    return text<'error'>({ event: 'error', sequenceNumber: this.#next(), streamSid: this.streamSid, error });
  }

  answer(answer: AgentAnswer): string {
    const head = { sequenceNumber: this.#next(), streamSid: this.streamSid };
    switch (answer.type) {
      case 'tool-result': {
        const tool = { id: answer.requestId, result: answer.result, httpStatus: answer.httpStatus };
        return text<'tool_result'>({ event: 'tool_result', ...head, tool });
      }
      case 'transfer-progress': {
        const { requestId: id, state, status, reason } = answer;
        const transfer = { id, state, status, ...(reason === undefined ? {} : { reason }) };
        return text<'transfer'>({ event: 'transfer', ...head, transfer });
      }
      case 'answered-by': {
        const { event } = answer;
        const greetingEnded = event.type === 'greeting-ended' ? event.by : null;
        const answerer: Answerer = event.type === 'greeting-ended' ? 'machine' : event.answerer;
        const answeredBy = { answerer, isFinal: event.type !== 'guess', greetingEnded };
        return text<'answered_by'>({ event: 'answered_by', ...head, answeredBy });
      }
      case 'refused': {
        const { request, requestId: id, code, message } = answer;
        return text<'error'>({ event: 'error', ...head, error: { request, id, code, message } });
      }
      default:
        return assertNever(answer);
    }
  }

  #next(): string {
    this.#sequence += 1;
    return String(this.#sequence);
  }
}

function text<Event extends ToAgentMessage['event']>(message: Message<Event>): string {
  return JSON.stringify(message);
}
