import type { MediaAddress, MediaDirection } from '../model/media.js';
import {
  SUITE,
  type CryptoLine,
  type CarrierMedia,
  type MediaLineHead,
  type NegotiatedCodec,
  type OwnOffer,
  type RelaySide,
} from './sdp-read.js';

/** Our `o=` line: the id is fixed for the call; each changed description increments the version (RFC 3264 §8). */
export interface Origin {
  readonly sessionId: string;
  readonly version: number;
}

/** One audio line, for any recipient. */
interface AudioLine {
  readonly profile: string;
  readonly at: MediaAddress;
  readonly codecs: readonly NegotiatedCodec[];
  readonly telephoneEvent: number | null;
  readonly events: string;
  readonly key: CryptoLine | null;
  readonly direction: MediaDirection;
}

/** The parts of our offer to a carrier that made none. */
export const OWN_OFFER: OwnOffer = {
  lines: [{ type: 'audio', protocol: 'RTP/SAVP', payloads: '0 8 101' }],
  chosen: 0,
  codecs: [
    { name: 'PCMU', payloadType: 0 },
    { name: 'PCMA', payloadType: 8 },
  ],
  telephoneEvent: 101,
  events: '0-15',
  cryptoTag: '1',
};

/** Our offer to a carrier whose packets another carrier gets as they are: in that one's format. */
export function offerInFormat({ codec, telephoneEvent, events }: Pick<CarrierMedia, 'codec' | 'telephoneEvent' | 'events'>): OwnOffer {
  const payloads = [codec.payloadType, ...(telephoneEvent === null ? [] : [telephoneEvent])].join(' ');
  const lines = [{ type: 'audio', protocol: 'RTP/SAVP', payloads }];
  return { ...OWN_OFFER, lines, codecs: [codec], telephoneEvent, events };
}

/** Valid answers to an offer that repeats a session: its codec, its m-lines, its key's tag. */
export function repeatedOffer(media: CarrierMedia): OwnOffer {
  const { lines, chosen, codec, events, crypto } = media;
  return { lines, chosen, codecs: [codec], telephoneEvent: ownTelephoneEventOf(media), events, cryptoTag: crypto?.tag ?? null };
}

/** Valid answers to an offer that a re-INVITE without one asks for: what a new call is offered, the session's own codec first. */
export function renewedOffer(media: CarrierMedia): OwnOffer {
  const repeated = repeatedOffer(media);
  const own = [media.codec.payloadType, repeated.telephoneEvent];
  // RFC 3264 §8.3.2: a payload type keeps its meaning for the whole session.
  const others = OWN_OFFER.codecs.filter(({ name, payloadType }) => name !== media.codec.name && !own.includes(payloadType));
  const telephoneEvent = repeated.telephoneEvent ?? (own.includes(OWN_OFFER.telephoneEvent) ? null : OWN_OFFER.telephoneEvent);
  return { ...repeated, codecs: [media.codec, ...others], telephoneEvent, events: OWN_OFFER.events };
}

/**
 * The carrier's side for rtpengine: one m-line with our choice and nothing else, in the secured profile if there is a key, so that
 * rtpengine has no choice.
 */
export function canonicalSdp(media: CarrierMedia): string {
  const { codec, events, crypto, direction } = media;
  // rtpengine knows the types of our description alone, and passes packets of any other type on.
  const telephoneEvent = ownTelephoneEventOf(media);
  const at = { address: media.address, rtpPort: media.port, rtcpPort: media.rtcpPort };
  return relaySdp({ profile: profileOf(crypto), at, codecs: [codec], telephoneEvent, events, key: crypto, direction });
}

/** The endpoint's side for rtpengine: its own address, and what was agreed with the carrier. */
export function endpointSdp(media: CarrierMedia, at: MediaAddress, key: CryptoLine | null): string {
  const { codec, events } = media;
  const telephoneEvent = ownTelephoneEventOf(media);
  return relaySdp({ profile: profileOf(key), at, codecs: [codec], telephoneEvent, events, key, direction: 'sendrecv' });
}

/** The agent side of an offer that the carrier has not received yet. */
export function endpointOffer(at: MediaAddress, key: CryptoLine | null, { codecs, telephoneEvent, events } = OWN_OFFER): string {
  return relaySdp({ profile: profileOf(key), at, codecs, telephoneEvent, events, key, direction: 'sendrecv' });
}

/** Our offer to a carrier that made none. `undefined` if rtpengine gave no key. */
export function ownOfferSdp(relay: RelaySide, origin: Origin, offer = OWN_OFFER): string | undefined {
  const { codecs, telephoneEvent, events, cryptoTag } = offer;
  if (relay.crypto === null || cryptoTag === null || relay.crypto.mki !== null) return undefined;
  const key = { ...relay.crypto, tag: cryptoTag };
  const line: AudioLine = { profile: 'RTP/SAVP', at: relay, codecs, telephoneEvent, events, key, direction: 'sendrecv' };
  return carrierSdp(relay, origin, audioLines(line));
}

/** Our answer in an agreed session; its direction follows the carrier's own (RFC 3264 §6.1). */
export function sessionSdp(media: CarrierMedia, relay: RelaySide, origin: Origin): string | undefined {
  return describedSdp(media, repeatedOffer(media), relay, origin, answerTo(media.direction));
}

/** Our offer in an agreed session. */
export function sessionOfferSdp(media: CarrierMedia, offer: OwnOffer, relay: RelaySide, origin: Origin): string | undefined {
  return describedSdp(media, offer, relay, origin, 'sendrecv');
}

/**
 * Our side of an agreed session: every m-line in order and in its own profile, all but one refused with port 0; exactly one key, with the
 * agreed tag. `undefined` if rtpengine's side does not match the agreement.
 */
function describedSdp(
  { crypto, lines, chosen }: CarrierMedia,
  { codecs, telephoneEvent, events }: OwnOffer,
  relay: RelaySide,
  origin: Origin,
  direction: MediaDirection,
): string | undefined {
  if ((crypto === null) !== (relay.crypto === null)) return undefined;
  if (crypto !== null && Number(relay.crypto?.tag) !== Number(crypto.tag)) return undefined;
  // The key is rtpengine's; the tag keeps the carrier's spelling.
  const key = crypto === null || relay.crypto === null ? null : { ...relay.crypto, tag: crypto.tag };
  const at = { address: relay.address, rtpPort: relay.rtpPort, rtcpPort: relay.rtcpPort };
  const lineOf = (line: MediaLineHead, index: number): string[] =>
    index === chosen
      ? audioLines({ profile: line.protocol, at, codecs, telephoneEvent, events, key, direction })
      : [`m=${line.type} 0 ${line.protocol} ${line.payloads}`];
  return carrierSdp(relay, origin, lines.flatMap(lineOf));
}

function carrierSdp(relay: RelaySide, origin: Origin, media: readonly string[]): string {
  return sdpOf(`trunkline ${origin.sessionId} ${origin.version}`, relay.address, media);
}

/** An SDP for rtpengine: one audio line, at most one key. */
function relaySdp(line: AudioLine): string {
  return sdpOf('- 1 1', line.at.address, audioLines(line));
}

function sdpOf(origin: string, address: string, media: readonly string[]): string {
  const family = address.includes(':') ? 'IP6' : 'IP4';
  const all = ['v=0', `o=${origin} IN ${family} ${address}`, 's=-', `c=IN ${family} ${address}`, 't=0 0', ...media];
  return `${all.join('\r\n')}\r\n`;
}

function audioLines({ profile, at, codecs, telephoneEvent, events, key, direction }: AudioLine): string[] {
  const payloads = [...codecs.map(({ payloadType }) => payloadType), ...(telephoneEvent === null ? [] : [telephoneEvent])].join(' ');
  return [
    `m=audio ${at.rtpPort} ${profile} ${payloads}`,
    ...codecs.map(({ name, payloadType }) => `a=rtpmap:${payloadType} ${name}/8000`),
    ...(telephoneEvent === null ? [] : [`a=rtpmap:${telephoneEvent} telephone-event/8000`, `a=fmtp:${telephoneEvent} ${events}`]),
    ...(key === null ? [] : [`a=crypto:${key.tag} ${SUITE} inline:${key.inline}${key.mki === null ? '' : `|${key.mki}`}`]),
    `a=rtcp:${at.rtcpPort}`,
    'a=ptime:20',
    `a=${direction}`,
  ];
}

/** The type that our own descriptions give telephone-event. */
function ownTelephoneEventOf({ telephoneEvent, ownTelephoneEvent }: CarrierMedia): number | null {
  return ownTelephoneEvent ?? telephoneEvent;
}

function profileOf(key: CryptoLine | null): string {
  return key === null ? 'RTP/AVP' : 'RTP/SAVP';
}

/** RFC 3264 §6.1. */
function answerTo(direction: MediaDirection): MediaDirection {
  switch (direction) {
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
