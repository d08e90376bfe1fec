import { parse as parseSdp } from 'sdp-transform';
import type { AudioCodec } from '../../contracts/media.js';
import type { MediaEncryption } from '../../contracts/records.js';
import { ipFamily } from '../../lib/ip-address.js';
import { err, ok, type Result } from '../../lib/result.js';
import { chooseCrypto, parseCrypto, SUITE, type CryptoLine } from './crypto-line.js';
import type { Reason } from './reasons.js';

export type Direction = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive';

/** One m-line of an offer, as much as its answer needs. */
interface OfferedLine {
  readonly type: string;
  readonly protocol: string;
  readonly payloads: string;
}

/** An offer that can be answered: what was chosen of it. */
export interface NegotiableOffer {
  readonly lines: readonly OfferedLine[];
  /** Index of the m-line that is taken; all others are refused with port 0. */
  readonly chosen: number;
  readonly codec: { readonly name: AudioCodec; readonly payloadType: number };
  /** Payload type of telephone-event/8000; `null`: not offered. */
  readonly telephoneEvent: number | null;
  /** `null`: plain RTP. */
  readonly crypto: CryptoLine | null;
  readonly address: string;
  readonly port: number;
  readonly rtcpPort: number;
  readonly direction: Direction;
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
export function readOffer(sdp: string, encryption: MediaEncryption, preferred?: AudioCodec): Result<NegotiableOffer, SdpReason> {
  if (!isWellFormed(sdp)) return err('BAD_SDP');
  const session = parseSdp(sdp);
  const { media } = session;
  if (media.length === 0 || media.length > MAX_LINES) return err('BAD_SDP');
  const keys = cryptoValues(sdp);
  const verdicts = media.map((line, index) => readLine(line, session, keys[index] ?? [], encryption, preferred));
  // A secured line is preferred to a plain one, whatever their order.
  const accepted = verdicts.flatMap((verdict, index) => (verdict.ok ? [{ index, line: verdict.value }] : []));
  const best = accepted.find(({ line }) => line.crypto !== null) ?? accepted[0];
  if (best === undefined) return err(worstReason(verdicts.flatMap((verdict) => (verdict.ok ? [] : [verdict.error]))));
  return ok({
    ...best.line,
    lines: media.map((line) => ({ type: line.type, protocol: line.protocol, payloads: payloadsOf(line) })),
    chosen: best.index,
  });
}

/** sdp-transform takes almost anything and leaves out what it cannot read: the lines that are counted on are checked first. */
function isWellFormed(sdp: string): boolean {
  if (!sdp.startsWith('v=0') || sdp.length > MAX_SDP_BYTES || /[^\x20-\x7e\x80-\uffff\r\n\t]/.test(sdp)) return false;
  return (sdp.match(/^m=.*$/gm) ?? []).every((line) => {
    const match = /^m=[a-z]+ (\d{1,5})(?:\/\d{1,5})? [A-Za-z0-9/]+ [\x21-\x7e]+(?: [\x21-\x7e]+)*\s*$/.exec(line);
    return match !== null && isPort(Number(match[1]));
  });
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 0 && port <= 65_535;
}

type Session = ReturnType<typeof parseSdp>;
type MediaLine = Session['media'][number];

/** The reason that says most: a suite that does not fit means more than a line that is no audio. */
function worstReason(reasons: readonly SdpReason[]): SdpReason {
  for (const reason of ['SRTP_SUITE_UNSUPPORTED', 'SRTP_REQUIRED', 'NO_COMMON_CODEC'] as const) if (reasons.includes(reason)) return reason;
  return 'BAD_SDP';
}

function readLine(
  line: MediaLine,
  session: Session,
  keys: readonly string[],
  encryption: MediaEncryption,
  preferred: AudioCodec | undefined,
): Result<Omit<NegotiableOffer, 'lines' | 'chosen'>, SdpReason> {
  const protocol = line.protocol.toUpperCase();
  if (line.type !== 'audio' || line.port === 0) return err('BAD_SDP');
  const security = chooseSecurity(protocol, keys, encryption);
  if (!security.ok) return security;
  const codec = chooseCodec(line, preferred);
  if (codec === undefined) return err('NO_COMMON_CODEC');
  const address = line.connection?.ip ?? session.connection?.ip ?? '';
  if (ipFamily(address) === 0) return err('BAD_SDP');
  const direction = line.direction ?? sessionDirection(session) ?? 'sendrecv';
  return ok({
    codec,
    telephoneEvent:
      mappingsOf(line).find(({ codec: name, rate }) => name.toLowerCase() === 'telephone-event' && rate === 8_000)?.payload ?? null,
    crypto: security.value,
    address,
    port: line.port,
    rtcpPort: isPort(line.rtcp?.port ?? -1) ? (line.rtcp?.port ?? 0) : line.port + 1,
    direction,
    // RFC 3264 §8.4: the old spelling of hold.
    isHeld: direction === 'sendonly' || direction === 'inactive' || address === '0.0.0.0' || address === '::',
  });
}

function sessionDirection(session: Session): Direction | undefined {
  // sdp-transform keeps a session-level direction where its types have none.
  return (session as { direction?: Direction }).direction;
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

/** sdp-transform reads a single payload type as a number, whatever its types say. */
function payloadsOf(line: MediaLine): string {
  return String(line.payloads);
}

/** PCMU or PCMA, the preferred one or whichever the offer lists first. Static payload types need no rtpmap (RFC 3551). */
function chooseCodec(line: MediaLine, preferred: AudioCodec | undefined): NegotiableOffer['codec'] | undefined {
  const offered: NegotiableOffer['codec'][] = [];
  for (const text of payloadsOf(line).split(' ')) {
    const payloadType = Number(text);
    if (!Number.isInteger(payloadType)) continue;
    const mapped = mappingsOf(line).find(({ payload }) => payload === payloadType);
    const name = mapped?.codec.toUpperCase() ?? (payloadType === 0 ? 'PCMU' : payloadType === 8 ? 'PCMA' : '');
    const isTelephone = mapped === undefined || (mapped.rate === 8_000 && (mapped.encoding ?? 1) === 1);
    if ((name === 'PCMU' || name === 'PCMA') && isTelephone) offered.push({ name, payloadType });
  }
  return offered.find(({ name }) => name === preferred) ?? offered[0];
}

/**
 * The offer that rtpengine gets: one m-line with what was chosen and nothing else, always in the secured profile when there is a key,
 * so that rtpengine can choose nothing of its own.
 */
export function canonicalOffer(offer: NegotiableOffer): string {
  return insideSdp(offer, { ...offer, rtpPort: offer.port }, offer.crypto, offer.direction);
}

/** What the endpoint answers rtpengine: its own address, the chosen codec. */
export function endpointAnswer(offer: NegotiableOffer, endpoint: SdpAddress, key: SdpKey | null): string {
  return insideSdp(offer, endpoint, key, 'sendrecv');
}

interface SdpAddress {
  readonly address: string;
  readonly rtpPort: number;
  readonly rtcpPort: number;
}

type SdpKey = Pick<CryptoLine, 'tag' | 'inline'>;

/** The SDPs that rtpengine gets: one audio line, what was chosen of the offer, at most one key. */
function insideSdp(offer: NegotiableOffer, at: SdpAddress, key: SdpKey | null, direction: Direction): string {
  const family = at.address.includes(':') ? 'IP6' : 'IP4';
  return lines([
    'v=0',
    `o=- 1 1 IN ${family} ${at.address}`,
    's=-',
    `c=IN ${family} ${at.address}`,
    't=0 0',
    ...audioLines(offer, key === null ? 'RTP/AVP' : 'RTP/SAVP', at, key, direction),
  ]);
}

/** The one audio line of every SDP that we write. */
function audioLines(offer: NegotiableOffer, profile: string, at: SdpAddress, key: SdpKey | null, direction: Direction): string[] {
  const { codec, telephoneEvent } = offer;
  const payloads = [codec.payloadType, ...(telephoneEvent === null ? [] : [telephoneEvent])].join(' ');
  return [
    `m=audio ${at.rtpPort} ${profile} ${payloads}`,
    `a=rtpmap:${codec.payloadType} ${codec.name}/8000`,
    ...(telephoneEvent === null ? [] : [`a=rtpmap:${telephoneEvent} telephone-event/8000`, `a=fmtp:${telephoneEvent} 0-15`]),
    ...(key === null ? [] : [`a=crypto:${key.tag} ${SUITE} inline:${key.inline}`]),
    `a=rtcp:${at.rtcpPort}`,
    'a=ptime:20',
    `a=${direction}`,
  ];
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
 * The answer to the carrier: every m-line of the offer in order and in its own profile, the others refused with port 0;
 * exactly one key, with the offered tag. `undefined` when rtpengine's side does not carry what the offer needs.
 */
export function carrierAnswer(
  offer: NegotiableOffer,
  relay: RelaySide,
  origin: { readonly sessionId: string; readonly version: number },
): string | undefined {
  if ((offer.crypto === null) !== (relay.crypto === null)) return undefined;
  if (offer.crypto !== null && (Number(relay.crypto?.tag) !== Number(offer.crypto.tag) || relay.crypto?.hasMki === true)) return undefined;
  const family = relay.address.includes(':') ? 'IP6' : 'IP4';
  // The key is rtpengine's, the tag the carrier's own spelling of it.
  const key = offer.crypto === null || relay.crypto === null ? null : { tag: offer.crypto.tag, inline: relay.crypto.inline };
  const media = offer.lines.flatMap((line, index) =>
    index === offer.chosen
      ? audioLines(offer, line.protocol, relay, key, answerDirection(offer))
      : [`m=${line.type} 0 ${line.protocol} ${line.payloads}`],
  );
  return lines([
    'v=0',
    `o=trunkline ${origin.sessionId} ${origin.version} IN ${family} ${relay.address}`,
    's=-',
    `c=IN ${family} ${relay.address}`,
    't=0 0',
    ...media,
  ]);
}

/** RFC 3264 §6.1. */
function answerDirection(offer: NegotiableOffer): Direction {
  switch (offer.direction) {
    case 'sendonly':
      return 'recvonly';
    case 'recvonly':
      return 'sendonly';
    case 'inactive':
      return 'inactive';
    case 'sendrecv':
      return 'sendrecv';
  }
}

function lines(all: readonly string[]): string {
  return `${all.join('\r\n')}\r\n`;
}
