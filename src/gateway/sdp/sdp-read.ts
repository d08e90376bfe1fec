import { parse as parseSdp } from 'sdp-transform';
import type { MediaDirection } from '../model/media.js';
import type { AudioCodec } from '../../rtp/codec/g711.js';
import type { MediaEncryption } from '../model/records.js';
import { ipFamily } from '../../lib/address.js';
import { err, ok, type Result } from '../../lib/result.js';
import { chooseCrypto, parseCrypto, type CryptoLine } from './crypto-line.js';
import type { Reason } from '../model/reasons.js';
import { commonEvents } from './telephone-events.js';

/** One m-line, as much as the other side's description needs of it. */
export interface MediaLineHead {
  readonly type: string;
  readonly protocol: string;
  readonly payloads: string;
}

export interface NegotiatedCodec {
  readonly name: AudioCodec;
  readonly payloadType: number;
}

/** The carrier's side of the session: what was chosen of its offer, or what it answered to ours. */
export interface CarrierMedia {
  readonly lines: readonly MediaLineHead[];
  /** Index of the m-line that is taken; all others are refused with port 0. */
  readonly chosen: number;
  readonly codec: NegotiatedCodec;
  /** Payload type of telephone-event/8000; `null`: not offered. */
  readonly telephoneEvent: number | null;
  /** The events that both sides know, as `a=fmtp` writes them: `0-15`. */
  readonly events: string;
  /** `null`: plain RTP. */
  readonly crypto: CryptoLine | null;
  readonly address: string;
  readonly port: number;
  readonly rtcpPort: number;
  readonly direction: MediaDirection;
  /** The caller does not want to hear us: `sendonly`, `inactive` or `c=0.0.0.0`. */
  readonly isHeld: boolean;
}

type SdpReason = Extract<Reason, 'BAD_SDP' | 'SRTP_REQUIRED' | 'SRTP_SUITE_UNSUPPORTED' | 'NO_COMMON_CODEC'>;

const MAX_SDP_BYTES = 32_768;
const MAX_LINES = 16;

/**
 * Reads an offer and chooses from it, or says why nothing in it can be taken.
 * @param preferred the codec of the call so far; without it the first that the offer lists
 */
export function readOffer(sdp: string, encryption: MediaEncryption, preferred?: AudioCodec): Result<CarrierMedia, SdpReason> {
  const session = wellFormed(sdp);
  if (session === undefined) return err('BAD_SDP');
  const { media } = session;
  const keys = cryptoValues(sdp);
  const verdicts = media.map((line, index) => readOfferedLine(line, session, keys[index] ?? [], encryption, preferred));
  // A secured line is preferred to a plain one, whatever their order.
  const accepted = verdicts.flatMap((verdict, index) => (verdict.ok ? [{ index, line: verdict.value }] : []));
  const best = accepted.find(({ line }) => line.crypto !== null) ?? accepted[0];
  if (best === undefined) return err(worstReason(verdicts.flatMap((verdict) => (verdict.ok ? [] : [verdict.error]))));
  return ok({ ...best.line, lines: media.map(headOf), chosen: best.index });
}

/** What an answer to an offer of ours may be. */
export interface OwnOffer {
  readonly lines: readonly MediaLineHead[];
  readonly chosen: number;
  readonly codecs: readonly NegotiatedCodec[];
  readonly telephoneEvent: number | null;
  /** The tag of our `a=crypto`; `null`: we offered plain RTP. */
  readonly cryptoTag: string | null;
}

/** Reads the answer to an offer of ours (RFC 3264 §6): the same m-lines, the profile, a codec and the key's tag of our offer. */
export function readAnswer(sdp: string, offer: OwnOffer): Result<CarrierMedia, 'BAD_ANSWER'> {
  const session = wellFormed(sdp);
  const line = session?.media[offer.chosen];
  const offered = offer.lines[offer.chosen];
  if (session === undefined || line === undefined || offered === undefined) return err('BAD_ANSWER');
  if (session.media.length !== offer.lines.length || line.type !== offered.type || line.port === 0) return err('BAD_ANSWER');
  if (protocolOf(line).toUpperCase() !== offered.protocol.toUpperCase()) return err('BAD_ANSWER');
  const crypto = chooseCrypto(cryptoValues(sdp)[offer.chosen] ?? []) ?? null;
  // RFC 4568 §5.1.2: the answer has the tag of the line that it takes.
  const isKeyed = crypto !== null && offer.cryptoTag !== null && Number(crypto.tag) === Number(offer.cryptoTag);
  if (offer.cryptoTag !== null && !isKeyed) return err('BAD_ANSWER');
  const codec = codecsOf(line).find(({ name, payloadType }) =>
    offer.codecs.some((ours) => ours.name === name && ours.payloadType === payloadType),
  );
  const at = placeOf(line, session);
  if (codec === undefined || at === undefined) return err('BAD_ANSWER');
  const events = telephoneEventOf(line);
  const isTelephoneEvent = events !== null && events.payload === offer.telephoneEvent;
  return ok({
    ...at,
    codec,
    telephoneEvent: isTelephoneEvent ? events.payload : null,
    events: isTelephoneEvent ? events.events : '',
    crypto: offer.cryptoTag === null ? null : crypto,
    lines: session.media.map(headOf),
    chosen: offer.chosen,
  });
}

/** What rtpengine tells of one of its sides: where it receives, and its key. */
export interface RelaySide {
  readonly address: string;
  readonly rtpPort: number;
  readonly rtcpPort: number;
  readonly crypto: CryptoLine | null;
}

/** Reads an SDP of rtpengine's; `undefined` when it is not the one audio line that was asked for. */
export function readRelaySdp(sdp: string): RelaySide | undefined {
  const session = parseSdp(sdp);
  const line = session.media[0];
  if (session.media.length !== 1 || line === undefined || line.port === 0) return undefined;
  const values = cryptoValues(sdp)[0] ?? [];
  const address = line.connection?.ip ?? session.connection?.ip ?? '';
  if (ipFamily(address) === 0 || values.length > 1) return undefined;
  const crypto = values[0] === undefined ? null : parseCrypto(values[0]);
  if (crypto === undefined) return undefined;
  return { address, rtpPort: line.port, rtcpPort: line.rtcp?.port ?? line.port + 1, crypto };
}

/**
 * Whether media can go between a relay and an address: with another family rtpengine answers, and nothing is heard.
 * @param relay its own address towards the carrier
 */
export function isReachable(address: string, relay: string): boolean {
  return isNowhere(address) || ipFamily(address) === ipFamily(relay);
}

/** RFC 3264 §8.4: the old spelling of hold, under which the peer receives nothing whatever it says of directions. */
function isNowhere(address: string): boolean {
  return address === '0.0.0.0' || address === '::';
}

type Session = ReturnType<typeof parseSdp>;
type MediaLine = Session['media'][number];

/** sdp-transform takes almost anything and leaves out what it cannot read: the lines that are counted on are checked first. */
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

function headOf(line: MediaLine): MediaLineHead {
  return { type: line.type, protocol: protocolOf(line), payloads: payloadsOf(line) };
}

/** The reason that says most: a suite that does not fit means more than a line that is no audio. */
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

/** Where the carrier receives, and in which directions media goes. */
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
    rtcpPort: isPort(line.rtcp?.port ?? -1) ? (line.rtcp?.port ?? 0) : line.port + 1,
    direction,
    isHeld: direction === 'sendonly' || direction === 'inactive',
  };
}

function withoutReceiving(direction: MediaDirection): MediaDirection {
  return direction === 'sendrecv' || direction === 'sendonly' ? 'sendonly' : 'inactive';
}

function sessionDirection(session: Session): MediaDirection | undefined {
  // sdp-transform keeps a session-level direction where its types have none.
  return (session as { direction?: MediaDirection }).direction;
}

/** SAVP and SAVPF need a usable key; AVP with one is taken as secured (RFC 8643); plain AVP only when the number allows it. */
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
      // DTLS (UDP/TLS/RTP/SAVP) and the like: no keys in the SDP.
      return err(/TLS/.test(protocol) ? 'SRTP_REQUIRED' : 'BAD_SDP');
  }
}

/** The `a=crypto` values of each m-line, as text: sdp-transform's split of them loses what a strict check needs. */
function cryptoValues(sdp: string): string[][] {
  return sdp
    .split(/\r?\n(?=m=)/)
    .slice(1)
    .map((section) => [...section.matchAll(/^a=crypto:([^\r\n]*)/gim)].map((match) => (match[1] ?? '').trim()));
}

/** The rtpmap lines that could be read: sdp-transform yields entries without a name, or with a number for one, for the others, whatever its types say. */
function mappingsOf(line: MediaLine): MediaLine['rtp'] {
  return line.rtp.filter(({ codec }: { codec?: unknown }) => typeof codec === 'string');
}

/** sdp-transform reads whatever looks like a number as one, whatever its types say. */
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

/** PCMU and PCMA in the order of the m-line. Static payload types need no rtpmap (RFC 3551). */
function codecsOf(line: MediaLine): NegotiatedCodec[] {
  return payloadTypesOf(line).flatMap((payloadType) => {
    const mapped = mappingsOf(line).find(({ payload }) => payload === payloadType);
    const name = mapped?.codec.toUpperCase() ?? (payloadType === 0 ? 'PCMU' : payloadType === 8 ? 'PCMA' : '');
    const isTelephone = mapped === undefined || (mapped.rate === 8_000 && (mapped.encoding ?? 1) === 1);
    return (name === 'PCMU' || name === 'PCMA') && isTelephone ? [{ name, payloadType }] : [];
  });
}

/** The telephone-event of the clock that PCMU and PCMA have, with the events that both sides know (RFC 4733 §2.5.1). */
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
