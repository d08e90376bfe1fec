// Flags that rtpengine 10.5 honours; docs/rtpengine.md holds what was tried and the results.

export type NgCommand = 'ping' | 'offer' | 'answer' | 'delete' | 'query' | 'list' | 'statistics';

/** Otherwise one side's ports change when the other side's far end moves. */
const KEEP_PORTS = 'port-latching';

/**
 * Otherwise a carrier whose port changes without a re-INVITE (NAT) gets no more audio. For the SDP's sender, and only if rtpengine ends
 * its SRTP: then a packet that does not authenticate moves nothing. With plain RTP, or SRTP that passes through, any packet would.
 */
const FOLLOW_MEDIA = 'media handover';

/**
 * rtpengine learns no address from the agent side's packets: the SDP names the right one. Otherwise a late packet of a leg that was just
 * replaced takes the call's audio along, for good if the new one sends nothing within 3 s.
 */
const TRUST_SDP = 'asymmetric';

/** The two ends of a call; their names are its tags in rtpengine. */
export type RelaySide = 'carrier' | 'agent';

// 10.5 silently ignores `SDES: only-…`: exclude every other suite by name.
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
  /** Who makes the offer, also in the command for its answer. */
  readonly offerer: RelaySide;
  readonly sdp: string;
  /** rtpengine decrypts the carrier's SRTP: the other leg is plain RTP. */
  readonly endsSrtp: boolean;
}

export interface OfferFlags {
  /** Names of rtpengine's interfaces; `null`: it has one, or they are not ours to choose. */
  readonly interfaces: RelayInterfaces | null;
  /** Whether the recipient of the offer uses SRTP. */
  readonly isSecure: boolean;
}

/**
 * `offer`: SRTP or plain RTP towards the recipient; no ICE, DTLS or rtcp-mux on either side. Without a to-tag: rtpengine identifies the
 * other side of an existing call, no matter who made the first offer.
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
    // `demux` alone still answers a=rtcp-mux: RTCP on RTP+1 needs both.
    'rtcp-mux': ['demux', 'reject'],
    // `zero-address`: a carrier's c=0.0.0.0 (hold in RFC 2543) must not become the inside address.
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
  if (sender === 'agent') return [KEEP_PORTS, TRUST_SDP];
  return endsSrtp ? [KEEP_PORTS, FOLLOW_MEDIA] : [KEEP_PORTS];
}

export function answerCommand({ callId, offerer, sdp, endsSrtp }: NegotiationArguments): Record<string, unknown> {
  const answerer = offerer === 'carrier' ? 'agent' : 'carrier';
  return {
    'call-id': callId,
    'from-tag': offerer,
    'to-tag': answerer,
    sdp,
    DTLS: 'off',
    // Otherwise the outside o= line has the inside address.
    replace: ['origin', 'session-connection'],
    flags: flagsOf(answerer, endsSrtp),
  };
}

/** Without a tag rtpengine frees the call, whatever its tags; only with one does the response have figures. */
export function deleteCommand(callId: string, tag: RelaySide | null): Record<string, unknown> {
  // At once: otherwise session and ports stay for rtpengine's own delay.
  return { 'call-id': callId, 'delete-delay': 0, ...(tag === null ? {} : { 'from-tag': tag }) };
}
