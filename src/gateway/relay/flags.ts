// Flags that rtpengine 10.5 was seen to honour; docs/rtpengine.md holds what was tried and what it answered.

export type NgCommand = 'ping' | 'offer' | 'answer' | 'delete' | 'query' | 'list' | 'statistics';

/** Else one side's ports change when the other side's far end moves. */
const KEEP_PORTS = ['port-latching'];

/**
 * Else a carrier whose port changes without a word (NAT) hears nothing from then on. Of whoever sends the SDP, and only where rtpengine
 * ends its SRTP: a packet that does not authenticate moves nothing then; of plain RTP, and of SRTP that passes through, any packet does.
 */
const FOLLOW_MEDIA = 'media handover';

/** The two ends of a call; their names are its tags in rtpengine. */
export type RelaySide = 'carrier' | 'agent';

// `SDES: only-…` is silently ignored by 10.5: every other suite is named.
const UNWANTED_SUITES = [
  'AEAD_AES_256_GCM',
  'AEAD_AES_128_GCM',
  'AES_256_CM_HMAC_SHA1_80',
  'AES_256_CM_HMAC_SHA1_32',
  'AES_192_CM_HMAC_SHA1_80',
  'AES_192_CM_HMAC_SHA1_32',
  'AES_CM_128_HMAC_SHA1_32',
  'F8_128_HMAC_SHA1_80',
  'F8_128_HMAC_SHA1_32',
  'NULL_HMAC_SHA1_80',
  'NULL_HMAC_SHA1_32',
] as const;

export interface RelayInterfaces {
  readonly outside: string;
  readonly inside: string;
}

export interface NegotiationArguments {
  readonly callId: string;
  /** Who makes the offer, in the command for its answer too. */
  readonly offerer: RelaySide;
  readonly sdp: string;
  /** rtpengine reads the carrier's SRTP: the other leg is plain RTP. */
  readonly endsSrtp: boolean;
}

export interface OfferFlags {
  /** Names of rtpengine's interfaces; `null`: it has one and is not ours to name. */
  readonly interfaces: RelayInterfaces | null;
  /** Whether the side that gets the offer speaks SRTP. */
  readonly isSecure: boolean;
}

/**
 * `offer`: SRTP or plain RTP towards the side that gets it; no ICE, DTLS or rtcp-mux on either. Without a to-tag: rtpengine knows
 * the other side of a call that it has, whoever made the first offer.
 */
export function offerCommand({ callId, offerer, sdp, endsSrtp }: NegotiationArguments, flags: OfferFlags): Record<string, unknown> {
  const { interfaces } = flags;
  return {
    'call-id': callId,
    'from-tag': offerer,
    sdp,
    'transport-protocol': flags.isSecure ? 'RTP/SAVP' : 'RTP/AVP',
    ICE: 'remove',
    DTLS: 'off',
    // `demux` alone still answers a=rtcp-mux: both are needed for RTCP on RTP+1.
    'rtcp-mux': ['demux', 'reject'],
    // `zero-address`: a carrier's c=0.0.0.0 (hold as it was in RFC 2543) must not become the address of the inside.
    replace: ['origin', 'session-connection', 'zero-address'],
    flags: flagsOf(offerer, endsSrtp),
    SDES: UNWANTED_SUITES.map((suite) => `no-${suite}`),
    codec: { strip: ['all'], except: ['PCMU', 'PCMA', 'telephone-event'] },
    ...(interfaces === null ? {} : { direction: directionOf(offerer, interfaces) }),
  };
}

function directionOf(offerer: RelaySide, { outside, inside }: RelayInterfaces): readonly string[] {
  return offerer === 'carrier' ? [outside, inside] : [inside, outside];
}

function flagsOf(sender: RelaySide, endsSrtp: boolean): readonly string[] {
  return sender === 'carrier' && endsSrtp ? [...KEEP_PORTS, FOLLOW_MEDIA] : KEEP_PORTS;
}

export function answerCommand({ callId, offerer, sdp, endsSrtp }: NegotiationArguments): Record<string, unknown> {
  const answerer = offerer === 'carrier' ? 'agent' : 'carrier';
  return {
    'call-id': callId,
    'from-tag': offerer,
    'to-tag': answerer,
    sdp,
    DTLS: 'off',
    // Else the inside address shows in the outside o= line.
    replace: ['origin', 'session-connection'],
    flags: flagsOf(answerer, endsSrtp),
  };
}

/** Without a tag the call is freed whoever is in it; only with one does the answer tell figures. */
export function deleteCommand(callId: string, tag: RelaySide | null): Record<string, unknown> {
  // At once: else the session, and its ports, stay for rtpengine's own delay.
  return { 'call-id': callId, 'delete-delay': 0, ...(tag === null ? {} : { 'from-tag': tag }) };
}
