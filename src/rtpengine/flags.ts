// Flags that rtpengine 10.5 was seen to honour; docs/rtpengine.md holds what was tried and what it answered.

export type NgCommand = 'ping' | 'offer' | 'answer' | 'delete' | 'query' | 'list';

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

export interface RelayLegs {
  /** Names of rtpengine's interfaces; `null`: it has one and is not ours to name. */
  readonly interfaces: { readonly outside: string; readonly inside: string } | null;
  readonly insideSrtp: boolean;
}

export interface OfferArguments {
  readonly callId: string;
  readonly fromTag: string;
  readonly sdp: string;
}

/** `offer` from the carrier's side: SRTP outside, RTP (or SRTP) inside, no ICE, DTLS or rtcp-mux on either. */
export function offerCommand(args: OfferArguments, legs: RelayLegs): Record<string, unknown> {
  return {
    'call-id': args.callId,
    'from-tag': args.fromTag,
    sdp: args.sdp,
    'transport-protocol': legs.insideSrtp ? 'RTP/SAVP' : 'RTP/AVP',
    ICE: 'remove',
    DTLS: 'off',
    // `demux` alone still answers a=rtcp-mux: both are needed for RTCP on RTP+1.
    'rtcp-mux': ['demux', 'reject'],
    replace: ['origin', 'session-connection'],
    SDES: UNWANTED_SUITES.map((suite) => `no-${suite}`),
    codec: { strip: ['all'], except: ['PCMU', 'PCMA', 'telephone-event'] },
    ...(legs.interfaces === null ? {} : { direction: [legs.interfaces.outside, legs.interfaces.inside] }),
  };
}

export function answerCommand(args: OfferArguments & { readonly toTag: string }): Record<string, unknown> {
  return {
    'call-id': args.callId,
    'from-tag': args.fromTag,
    'to-tag': args.toTag,
    sdp: args.sdp,
    DTLS: 'off',
    // Else the inside address shows in the outside o= line.
    replace: ['origin', 'session-connection'],
  };
}

export function deleteCommand(callId: string): Record<string, unknown> {
  return { 'call-id': callId };
}
