import { isoTime } from '../lib/clock.js';

/** An application's command: the first line of a frame's payload, and the SIP text after it. */
export type AppCommand =
  | { readonly verb: 'authenticate'; readonly id: string; readonly secret: string; readonly tags: readonly string[] }
  | { readonly verb: 'ping'; readonly id: string }
  | { readonly verb: 'route' | 'remove_route'; readonly id: string; readonly method: string }
  | {
      readonly verb: 'sip';
      readonly id: string;
      readonly transactionId: string;
      readonly dialogId: string;
      readonly routeUrl: string;
      readonly text: string;
    }
  | ProxyCommand
  /** No verb, or an unknown one: answer NO and close the connection. */
  | { readonly verb: 'invalid'; readonly id: string; readonly reason: 'Invalid message format' | 'Unknown message type' };

export interface ProxyCommand {
  readonly verb: 'proxy';
  readonly id: string;
  readonly transactionId: string;
  readonly remainInDialog: boolean;
  /** Report every final response, not just the end. */
  readonly fullResponse: boolean;
  readonly followRedirects: boolean;
  readonly isSerial: boolean;
  readonly provisionalTimeoutMs: number | null;
  readonly finalTimeoutMs: number | null;
  readonly targets: readonly string[];
  readonly text: string;
}

function parseProxy(id: string, fields: readonly string[], text: string): ProxyCommand {
  return {
    verb: 'proxy',
    id,
    transactionId: fields[0] ?? '',
    remainInDialog: fields[1] !== undefined && fields[1] !== '',
    fullResponse: fields[2] !== undefined && fields[2] !== '',
    followRedirects: fields[3] !== undefined && fields[3] !== '',
    isSerial: fields[4] !== 'simultaneous',
    provisionalTimeoutMs: parseDuration(fields[5] ?? ''),
    finalTimeoutMs: parseDuration(fields[6] ?? ''),
    targets: fields.slice(7).filter((target) => target !== ''),
    text,
  };
}

/** `2s`, `1500ms`; anything else: no limit. */
function parseDuration(text: string): number | null {
  const match = /^(\d{1,6})(ms|s)$/.exec(text);
  return match === null ? null : Number(match[1]) * (match[2] === 's' ? 1_000 : 1);
}

export function parseCommand(payload: string): AppCommand {
  const lineEnd = payload.indexOf('\r\n');
  const line = lineEnd < 0 ? payload : payload.slice(0, lineEnd);
  const [id = '', verb, ...fields] = line.split('|');
  switch (verb) {
    case undefined:
      return { verb: 'invalid', id, reason: 'Invalid message format' };
    case 'authenticate':
      return { verb, id, secret: fields[0] ?? '', tags: (fields[1] ?? '').split(',').filter((tag) => tag !== '') };
    case 'ping':
      return { verb, id };
    case 'route':
    case 'remove_route':
      return { verb, id, method: fields[0] ?? '' };
    case 'sip':
      return {
        verb,
        id,
        transactionId: fields[0] ?? '',
        dialogId: fields[1] ?? '',
        routeUrl: fields[2] ?? '',
        text: lineEnd < 0 ? '' : payload.slice(lineEnd + 2),
      };
    case 'proxy':
      return parseProxy(id, fields, lineEnd < 0 ? '' : payload.slice(lineEnd + 2));
    default:
      return { verb: 'invalid', id, reason: 'Unknown message type' };
  }
}

/** Source or destination of a message. */
export interface FramePeer {
  /** `tls`, `tcp`, `udp`. */
  readonly protocol: string;
  /** '' and 0 for messages that the server made. */
  readonly address: string;
  readonly port: number;
}

export interface SipFrame {
  readonly source: 'network' | 'application';
  readonly sizeBytes: number;
  readonly peer: FramePeer;
  readonly time: string;
  readonly transactionId: string;
  readonly dialogId: string;
  /** Only for a new request outside dialogs: the listener that received it. */
  readonly receivedOn: { readonly address: string; readonly port: number } | null;
  readonly text: string;
}

/** `<id>|sip|…`: a SIP message for the application. */
export function formatSip(id: string, frame: SipFrame): string {
  const { peer, receivedOn } = frame;
  const tail = receivedOn === null ? '' : `${receivedOn.address}|${receivedOn.port}|`;
  return `${id}|sip|${frame.source}|${frame.sizeBytes}|${peer.protocol}|${peer.address}|${peer.port}|${frame.time}|${frame.transactionId}|${frame.dialogId}|${tail}\r\n${frame.text}`;
}

export interface SentEcho {
  readonly peer: FramePeer;
  readonly time: string;
  readonly transactionId: string;
  readonly text: string;
}

/** Confirms a sent response. */
export function formatResponseSent(id: string, answered: string, echo: SentEcho, dialogId: string): string {
  const { peer } = echo;
  return `${id}|response|${answered}|OK|application|${echo.text.length}|${peer.protocol}|${peer.address}|${peer.port}|${echo.time}|${echo.transactionId}|${dialogId}||Msg sent:|\r\n${echo.text}`;
}

/** Confirms a sent request: one field fewer, no dialog id. */
export function formatRequestSent(id: string, answered: string, echo: SentEcho): string {
  const { peer } = echo;
  return `${id}|response|${answered}|OK|application|${echo.text.length}|${peer.protocol}|${peer.address}|${peer.port}|${echo.time}|${echo.transactionId}|Msg sent:|\r\n${echo.text}`;
}

/** A final response of a target of `proxy`; more may follow. */
export function formatProxied(id: string, answered: string, echo: Omit<SentEcho, 'transactionId'>): string {
  const { peer } = echo;
  return `${id}|response|${answered}|OK|network|${echo.text.length}|${peer.protocol}|${peer.address}|${peer.port}|${echo.time}|||continue\r\n${echo.text}`;
}

/** `<id>|cdr:<event>|…`: `detail` is the role of `start` and the reason of `stop`. */
export function formatCdr(
  id: string,
  event: 'attempt' | 'start' | 'stop',
  source: 'network' | 'application',
  time: string,
  detail: string,
  text: string,
): string {
  return `${id}|cdr:${event}|${source}|${time}${event === 'attempt' ? '' : `|${detail}`}\r\n${text}`;
}

/** `OK` and its fields, `NO` (the connection then closes) or `NOK`. */
export function formatAnswer(id: string, answered: string, verdict: 'OK' | 'NO' | 'NOK', ...fields: readonly string[]): string {
  return [id, 'response', answered, verdict, ...fields].join('|');
}

let cachedMs = -1;
let cachedText = '';

/** UTC wall clock `HH:MM:SS.uuuuuu`; cached for a millisecond. */
export function frameTime(wallMs: number): string {
  if (wallMs === cachedMs) return cachedText;
  const micros = Math.floor((wallMs - Math.floor(wallMs / 1_000) * 1_000) * 1_000);
  cachedMs = wallMs;
  cachedText = `${isoTime(wallMs).slice(11, 19)}.${String(micros).padStart(6, '0')}`;
  return cachedText;
}

/** Prefixes the payload with its length in bytes. Text is a byte string, so its length is its size. */
export function encodeFrame(payload: string): string {
  return `${payload.length}#${payload}`;
}

type FrameItem = { readonly type: 'frame'; readonly payload: string } | { readonly type: 'error'; readonly reason: string };

/** Cuts a byte stream into frames: `<decimal length>#<payload>`. A malformed stream yields one error. */
export class FrameDecoder {
  #pending = '';
  #spoiled = false;

  constructor(private readonly maxPayloadBytes: number) {}

  push(bytes: string): FrameItem[] {
    if (this.#spoiled) return [];
    this.#pending = this.#pending === '' ? bytes : this.#pending + bytes;
    const items: FrameItem[] = [];
    let at = 0;
    for (;;) {
      const hash = this.#pending.indexOf('#', at);
      const digits = this.#pending.slice(at, hash < 0 ? undefined : hash);
      if (!/^\d{0,7}$/.test(digits) || (hash >= 0 && digits === ''))
        return this.#spoil(items, 'a frame must begin with its length in digits');
      if (hash < 0) break;
      const length = Number(digits);
      if (length > this.maxPayloadBytes)
        return this.#spoil(items, `a frame of ${length} bytes is over the limit of ${this.maxPayloadBytes}`);
      const end = hash + 1 + length;
      if (end > this.#pending.length) break;
      // Length zero is valid and ignored.
      if (length > 0) items.push({ type: 'frame', payload: this.#pending.slice(hash + 1, end) });
      at = end;
    }
    this.#pending = this.#pending.slice(at);
    return items;
  }

  #spoil(items: FrameItem[], reason: string): FrameItem[] {
    this.#spoiled = true;
    this.#pending = '';
    items.push({ type: 'error', reason });
    return items;
  }
}
