import { parse as parseSdp } from 'sdp-transform';
import type { MediaDirection } from '../model/media.js';
import type { AudioCodec } from '../../rtp/codec/g711.js';
import type { MediaEncryption } from '../model/records.js';
import { ipFamily } from '../../lib/address.js';
import { err, ok, type Result } from '../../lib/result.js';
import type { Reason } from '../model/reasons.js';

/** One m-line, with the fields that the other side's description needs. */
export interface MediaLineHead {
  readonly type: string;
  readonly protocol: string;
  readonly payloads: string;
}

export interface NegotiatedCodec {
  readonly name: AudioCodec;
  readonly payloadType: number;
}

/** The carrier's side of the session: our choice from its offer, or its answer to ours. */
export interface CarrierMedia {
  readonly lines: readonly MediaLineHead[];
  /** Index of the chosen m-line; all others are refused with port 0. */
  readonly chosen: number;
  readonly codec: NegotiatedCodec;
  /** Payload type of telephone-event/8000 in the carrier's description: we send with it. `null`: not agreed. */
  readonly telephoneEvent: number | null;
  /** The type of our own description, where the carrier's answer has another one: the carrier may send with both. */
  readonly ownTelephoneEvent?: number;
  /** The events that both sides support, in the form of `a=fmtp`: `0-15`. */
  readonly events: string;
  /** `null`: plain RTP. */
  readonly crypto: CryptoLine | null;
  readonly address: string;
  readonly port: number;
  readonly rtcpPort: number;
  readonly direction: MediaDirection;
  /** The carrier does not want our media: `sendonly`, `inactive` or `c=0.0.0.0`. */
  readonly isHeld: boolean;
}

type SdpReason = Extract<Reason, 'BAD_SDP' | 'SRTP_REQUIRED' | 'SRTP_SUITE_UNSUPPORTED' | 'NO_COMMON_CODEC'>;

const MAX_SDP_BYTES = 32_768;
const MAX_LINES = 16;

/**
 * Reads an offer and chooses from it, or returns the reason why nothing in it is usable.
 * @param preferred the call's current codec; without it, the first in the offer wins
 */
export function readOffer(sdp: string, encryption: MediaEncryption, preferred?: AudioCodec): Result<CarrierMedia, SdpReason> {
  const session = wellFormed(sdp);
  if (session === undefined) return err('BAD_SDP');
  const { media } = session;
  const keys = cryptoValues(sdp);
  const verdicts = media.map((line, index) => readOfferedLine(line, session, keys[index] ?? [], encryption, preferred));
  // Prefer a secured line to a plain one, whatever their order.
  const accepted = verdicts.flatMap((verdict, index) => (verdict.ok ? [{ index, line: verdict.value }] : []));
  const best = accepted.find(({ line }) => line.crypto !== null) ?? accepted[0];
  if (best === undefined) return err(worstReason(verdicts.flatMap((verdict) => (verdict.ok ? [] : [verdict.error]))));
  return ok({ ...best.line, lines: media.map(headOf), chosen: best.index });
}

/** What an answer to our offer may contain. */
export interface OwnOffer {
  readonly lines: readonly MediaLineHead[];
  readonly chosen: number;
  readonly codecs: readonly NegotiatedCodec[];
  readonly telephoneEvent: number | null;
  /** In the form of `a=fmtp`. */
  readonly events: string;
  /** The tag of our `a=crypto`; `null`: we offered plain RTP. */
  readonly cryptoTag: string | null;
}

/** Reads the answer to our offer (RFC 3264 §6): the same m-lines, and our offer's profile, a codec and tag of its key. */
export function readAnswer(sdp: string, offer: OwnOffer): Result<CarrierMedia, 'BAD_ANSWER'> {
  const session = wellFormed(sdp);
  const line = session?.media[offer.chosen];
  const offered = offer.lines[offer.chosen];
  if (session === undefined || line === undefined || offered === undefined) return err('BAD_ANSWER');
  if (session.media.length !== offer.lines.length || line.type !== offered.type || line.port === 0) return err('BAD_ANSWER');
  if (protocolOf(line).toUpperCase() !== offered.protocol.toUpperCase()) return err('BAD_ANSWER');
  const crypto = chooseCrypto(cryptoValues(sdp)[offer.chosen] ?? []) ?? null;
  // RFC 4568 §5.1.2: the answer has the tag of the line that it accepts.
  const isKeyed = crypto !== null && offer.cryptoTag !== null && Number(crypto.tag) === Number(offer.cryptoTag);
  if (offer.cryptoTag !== null && !isKeyed) return err('BAD_ANSWER');
  const codec = codecsOf(line).find(({ name, payloadType }) =>
    offer.codecs.some((ours) => ours.name === name && ours.payloadType === payloadType),
  );
  const at = placeOf(line, session);
  if (codec === undefined || at === undefined) return err('BAD_ANSWER');
  const { telephoneEvent: own } = offer;
  const events = own === null ? null : telephoneEventOf(line);
  return ok({
    ...at,
    codec,
    telephoneEvent: events?.payload ?? null,
    // RFC 3264 §6.1: an answer may map a format to a type of its own.
    ...(events === null || own === null || events.payload === own ? {} : { ownTelephoneEvent: own }),
    events: events?.events ?? '',
    crypto: offer.cryptoTag === null ? null : crypto,
    lines: session.media.map(headOf),
    chosen: offer.chosen,
  });
}

/** One of rtpengine's sides: where it receives, and its key. */
export interface RelaySide {
  readonly address: string;
  readonly rtpPort: number;
  readonly rtcpPort: number;
  readonly crypto: CryptoLine | null;
}

/** Reads rtpengine's SDP, which has one form only; `undefined` if it is not the one line of media that we requested. */
export function readRelaySdp(sdp: string): RelaySide | undefined {
  const [session = '', line = '', ...more] = sectionsOf(sdp);
  const rtpPort = Number(/^m=\S+ (\d{1,5}) /.exec(line)?.[1] ?? 0);
  if (more.length > 0 || rtpPort === 0 || !isPort(rtpPort)) return undefined;
  const address = (CONNECTION.exec(line) ?? CONNECTION.exec(session))?.[1] ?? '';
  const values = cryptoOf(line);
  if (ipFamily(address) === 0 || values.length > 1) return undefined;
  const crypto = values[0] === undefined ? null : parseCrypto(values[0]);
  if (crypto === undefined) return undefined;
  return { address, rtpPort, rtcpPort: Number(/^a=rtcp:(\d{1,5})/m.exec(line)?.[1] ?? rtpPort + 1), crypto };
}

const CONNECTION = /^c=IN IP[46] (\S+)/m;

/**
 * Whether media can flow between a relay and an address: with another family rtpengine answers, but no audio passes.
 * @param relay rtpengine's own address towards the carrier
 */
export function isReachable(address: string, relay: string): boolean {
  return isNowhere(address) || ipFamily(address) === ipFamily(relay);
}

/** RFC 3264 §8.4: the old form of hold, in which the peer receives nothing, whatever its direction attribute. */
function isNowhere(address: string): boolean {
  return address === '0.0.0.0' || address === '::';
}

type Session = ReturnType<typeof parseSdp>;
type MediaLine = Session['media'][number];

/** sdp-transform accepts almost anything and omits what it cannot read: check the required lines first. */
function wellFormed(sdp: string): Session | undefined {
  if (!sdp.startsWith('v=0') || sdp.length > MAX_SDP_BYTES || /[^\x20-\x7e\x80-\uffff\r\n\t]/.test(sdp)) return undefined;
  const isReadable = (sdp.match(/^m=.*$/gm) ?? []).every((line) => {
    const match = /^m=[a-z]+ (\d{1,5})(?:\/\d{1,5})? [A-Za-z0-9/]+ [\x21-\x7e]+(?: [\x21-\x7e]+)*\s*$/.exec(line);
    return match !== null && isPort(Number(match[1]));
  });
  if (!isReadable) return undefined;
  const session = parseSdp(sdp);
  return session.media.length === 0 || session.media.length > MAX_LINES ? undefined : session;
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 0 && port <= 65_535;
}

const MAX_TOKEN = 32;

/** What an answer repeats of a line that it refuses (RFC 3264 §6): of its formats one is enough, and no word of a stranger's is long. */
function headOf(line: MediaLine): MediaLineHead {
  const [format = ''] = payloadsOf(line).split(' ', 1);
  return { type: line.type.slice(0, MAX_TOKEN), protocol: protocolOf(line).slice(0, MAX_TOKEN), payloads: format.slice(0, MAX_TOKEN) };
}

/** The most specific reason: an unsuitable suite ranks above a line without audio. */
function worstReason(reasons: readonly SdpReason[]): SdpReason {
  for (const reason of ['SRTP_SUITE_UNSUPPORTED', 'SRTP_REQUIRED', 'NO_COMMON_CODEC'] as const) if (reasons.includes(reason)) return reason;
  return 'BAD_SDP';
}

function readOfferedLine(
  line: MediaLine,
  session: Session,
  keys: readonly string[],
  encryption: MediaEncryption,
  preferred: AudioCodec | undefined,
): Result<Omit<CarrierMedia, 'lines' | 'chosen'>, SdpReason> {
  if (line.type !== 'audio' || line.port === 0) return err('BAD_SDP');
  const security = chooseSecurity(protocolOf(line).toUpperCase(), keys, encryption);
  if (!security.ok) return security;
  const offered = codecsOf(line);
  const codec = offered.find(({ name }) => name === preferred) ?? offered[0];
  if (codec === undefined) return err('NO_COMMON_CODEC');
  const at = placeOf(line, session);
  if (at === undefined) return err('BAD_SDP');
  const events = telephoneEventOf(line);
  return ok({ ...at, codec, telephoneEvent: events?.payload ?? null, events: events?.events ?? '', crypto: security.value });
}

/** Where the carrier receives, and in which directions media flows. */
function placeOf(
  line: MediaLine,
  session: Session,
): Pick<CarrierMedia, 'address' | 'port' | 'rtcpPort' | 'direction' | 'isHeld'> | undefined {
  const { ip: address, version } = line.connection ?? session.connection ?? { ip: '', version: 0 };
  if (ipFamily(address) === 0 || ipFamily(address) !== version) return undefined;
  const stated = line.direction ?? sessionDirection(session) ?? 'sendrecv';
  const direction = isNowhere(address) ? withoutReceiving(stated) : stated;
  return {
    address,
    port: line.port,
    rtcpPort: statedRtcpPort(line, address) ?? line.port + 1,
    direction,
    isHeld: direction === 'sendonly' || direction === 'inactive',
  };
}

/** RFC 863. Offers with ICE name it where no port is known yet (RFC 8829 §5.2.1). */
const DISCARD_PORT = 9;

/** The port of `a=rtcp` (RFC 3605); `undefined`: there is none, or it stands for one that is not known yet. */
function statedRtcpPort({ rtcp }: MediaLine, mediaAddress: string): number | undefined {
  if (rtcp === undefined || !isPort(rtcp.port) || rtcp.port === 0 || rtcp.port === DISCARD_PORT) return undefined;
  return isNowhere(rtcp.address ?? mediaAddress) && !isNowhere(mediaAddress) ? undefined : rtcp.port;
}

function withoutReceiving(direction: MediaDirection): MediaDirection {
  return direction === 'sendrecv' || direction === 'sendonly' ? 'sendonly' : 'inactive';
}

function sessionDirection(session: Session): MediaDirection | undefined {
  // sdp-transform keeps a session-level direction that its types omit.
  return (session as { direction?: MediaDirection }).direction;
}

/** SAVP and SAVPF need a usable key; AVP with one counts as secured (RFC 8643); plain AVP only if the number allows it. */
function chooseSecurity(protocol: string, values: readonly string[], encryption: MediaEncryption): Result<CryptoLine | null, SdpReason> {
  const chosen = chooseCrypto(values) ?? null;
  switch (protocol) {
    case 'RTP/SAVP':
    case 'RTP/SAVPF':
      return chosen === null ? err(values.length === 0 ? 'SRTP_REQUIRED' : 'SRTP_SUITE_UNSUPPORTED') : ok(chosen);
    case 'RTP/AVP':
    case 'RTP/AVPF':
      if (chosen !== null) return ok(chosen);
      if (encryption === 'optional') return ok(null);
      return err(values.length === 0 ? 'SRTP_REQUIRED' : 'SRTP_SUITE_UNSUPPORTED');
    default:
      // Such as DTLS (UDP/TLS/RTP/SAVP): no keys in the SDP.
      return err(/TLS/.test(protocol) ? 'SRTP_REQUIRED' : 'BAD_SDP');
  }
}

/** The `a=crypto` values of each m-line as text: sdp-transform's split loses what a strict check needs. */
function cryptoValues(sdp: string): string[][] {
  return sectionsOf(sdp).slice(1).map(cryptoOf);
}

/** That of the session, then those of each m-line. */
function sectionsOf(sdp: string): string[] {
  return sdp.split(/\r?\n(?=m=)/);
}

function cryptoOf(section: string): string[] {
  return [...section.matchAll(/^a=crypto:([^\r\n]*)/gim)].map((match) => (match[1] ?? '').trim());
}

/** The readable rtpmap lines. For the others sdp-transform yields entries without a name, or with a number as name, against its types. */
function mappingsOf(line: MediaLine): MediaLine['rtp'] {
  return line.rtp.filter(({ codec }: { codec?: unknown }) => typeof codec === 'string');
}

/** sdp-transform converts whatever looks like a number, against its types. */
function protocolOf({ protocol }: { readonly protocol: unknown }): string {
  return String(protocol);
}

function payloadsOf(line: MediaLine): string {
  return String(line.payloads);
}

/** The payload types of the m-line, in order. */
function payloadTypesOf(line: MediaLine): number[] {
  return payloadsOf(line)
    .split(' ')
    .map(Number)
    .filter((payloadType) => Number.isInteger(payloadType));
}

/** PCMU and PCMA in the m-line's order. Static payload types need no rtpmap (RFC 3551). */
function codecsOf(line: MediaLine): NegotiatedCodec[] {
  return payloadTypesOf(line).flatMap((payloadType) => {
    const mapped = mappingsOf(line).find(({ payload }) => payload === payloadType);
    const name = mapped?.codec.toUpperCase() ?? (payloadType === 0 ? 'PCMU' : payloadType === 8 ? 'PCMA' : '');
    const isTelephone = mapped === undefined || (mapped.rate === 8_000 && (mapped.encoding ?? 1) === 1);
    return (name === 'PCMU' || name === 'PCMA') && isTelephone ? [{ name, payloadType }] : [];
  });
}

/** The telephone-event with the clock of PCMU and PCMA, and the events that both sides support (RFC 4733 §2.5.1). */
function telephoneEventOf(line: MediaLine): { readonly payload: number; readonly events: string } | null {
  const listed = payloadTypesOf(line);
  for (const { payload, codec, rate } of mappingsOf(line)) {
    if (codec.toLowerCase() !== 'telephone-event' || rate !== 8_000 || !listed.includes(payload)) continue;
    const format = line.fmtp.find((entry) => entry.payload === payload);
    const events = commonEvents(format?.config);
    if (events !== '') return { payload, events };
  }
  return null;
}

/** RFC 4733 §3.2: the digits, `*`, `#` and A to D. */
const LAST_EVENT = 15;

/**
 * The supported events of an `a=fmtp` value (`0-15`, `0-11,66`), in the same form; '' if none is.
 * Without the line, or with an unreadable one, the peer supports the digits (RFC 4733 §2.5.1.1).
 */
export function commonEvents(format: unknown): string {
  // sdp-transform converts a lone number.
  const text = typeof format === 'number' ? String(format) : typeof format === 'string' ? format : '';
  const listed = /(?:^|;)\s*(?:events=)?(\d[\d,\s-]*)\s*(?:;|$)/i.exec(text)?.[1];
  if (listed === undefined) return `0-${LAST_EVENT}`;
  const known = new Set<number>();
  for (const part of listed.split(',')) {
    const [first = NaN, last = first] = part.split('-').map((bound) => Number.parseInt(bound, 10));
    for (let event = first; event <= Math.min(last, LAST_EVENT); event += 1) known.add(event);
  }
  return ranges([...known].sort((a, b) => a - b));
}

function ranges(events: readonly number[]): string {
  const spans: [number, number][] = [];
  for (const event of events) {
    const span = spans.at(-1);
    if (span?.[1] === event - 1) span[1] = event;
    else spans.push([event, event]);
  }
  return spans.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)).join(',');
}

/** A usable `a=crypto` line (RFC 4568) for AES_CM_128_HMAC_SHA1_80. */
export interface CryptoLine {
  /** As offered: 1 to 9 digits, leading zeros kept. */
  readonly tag: string;
  /** Base64 of 16 bytes of master key and 14 of salt. */
  readonly inline: string;
  /** Master key identifier as `value:length in bytes`; `null`: packets carry none. */
  readonly mki: string | null;
}

export const SUITE = 'AES_CM_128_HMAC_SHA1_80';

const KEY_BYTES = 30;
/** RFC 4568 §6.1. */
const MAX_MKI_BYTES = 128;
/**
 * Session parameters (RFC 4568 §6.3) that require nothing of us: a hint of the replay window, no new keys during the call, and optional
 * ones (`-`). Any other changes the keys (KDR) or the packets (FEC_ORDER, UNENCRYPTED_SRTP, …), or is unknown: such a line is refused.
 */
const HARMLESS_PARAM = /^(?:WSH=\d{1,9}|KDR=0|-.*)$/i;

/**
 * The line to answer with: the first valid one without an MKI, else the first with one. `values` are the attribute's values in order.
 * A line of another suite, with a duplicate tag, a key of the wrong length or an unsupported session parameter is invalid.
 */
export function chooseCrypto(values: readonly string[]): CryptoLine | undefined {
  const tags = values.map((value) => /^(\d{1,9})\s/.exec(value)?.[1]);
  const candidates = values.flatMap((value, index) => {
    const tag = tags[index];
    if (tag === undefined || tags.filter((other) => other !== undefined && Number(other) === Number(tag)).length > 1) return [];
    const line = parseCrypto(value);
    return line === undefined ? [] : [line];
  });
  return candidates.find(({ mki }) => mki === null) ?? candidates[0];
}

/** Reads one value; `undefined` if it is not a usable line of the suite. */
function parseCrypto(value: string): CryptoLine | undefined {
  const [tag = '', suite = '', keyParams = '', ...sessionParams] = value.trim().split(/\s+/);
  if (!/^\d{1,9}$/.test(tag) || suite.toUpperCase() !== SUITE) return undefined;
  if (!sessionParams.every((param) => HARMLESS_PARAM.test(param))) return undefined;
  // Several keys in one line (`;`) need MKIs to distinguish them.
  const match = /^inline:([A-Za-z0-9+/]{40}=*)((?:\|[^|;]*)*)$/i.exec(keyParams);
  if (match === null) return undefined;
  const inline = match[1] ?? '';
  if (Buffer.from(inline, 'base64').length !== KEY_BYTES) return undefined;
  const extras = (match[2] ?? '').split('|').slice(1);
  const mkis = extras.filter((extra) => extra.includes(':'));
  const lifetimes = extras.filter((extra) => !extra.includes(':'));
  if (mkis.length > 1 || !mkis.every(isMki)) return undefined;
  if (lifetimes.length > 1 || !lifetimes.every((lifetime) => /^(2\^\d{1,2}|\d{1,15})$/.test(lifetime))) return undefined;
  return { tag, inline, mki: mkis[0] ?? null };
}

/** `value:length`: the value is a decimal number that fits into `length` bytes. */
function isMki(text: string): boolean {
  const [, value = '', length = ''] = /^(\d{1,310}):(\d{1,3})$/.exec(text) ?? [];
  const bytes = Number(length);
  return bytes >= 1 && bytes <= MAX_MKI_BYTES && BigInt(value) < 1n << BigInt(8 * bytes);
}
