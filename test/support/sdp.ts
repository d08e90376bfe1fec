/** 30 bytes of key and salt in base64. */
export const KEY = 'd0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj';
export const OTHER_KEY = 'NzB4d1BINUAvLEw6UzF3WSJ+PSdFcGdUJShpX1Zj';

/** RFC 863: where no program of the machine listens, as one may at a port that the system gives. */
const DISCARD = 9;

export interface OfferParts {
  readonly profile?: string;
  readonly payloads?: string;
  readonly rtpmap?: readonly string[];
  readonly crypto?: readonly string[];
  readonly direction?: string;
  readonly address?: string;
  readonly port?: number;
  readonly extra?: readonly string[];
}

/** A carrier's usual offer, with parts of it changed. */
export function offerSdp(parts: OfferParts = {}): string {
  const { profile = 'RTP/SAVP', payloads = '0 8 101', address = '127.0.0.1', port = DISCARD, direction = 'sendrecv', extra = [] } = parts;
  const rtpmap = parts.rtpmap ?? ['0 PCMU/8000', '8 PCMA/8000', '101 telephone-event/8000'];
  const crypto = parts.crypto ?? [`1 AES_CM_128_HMAC_SHA1_80 inline:${KEY}`];
  return [
    'v=0',
    `o=carrier 1 1 IN IP4 ${address}`,
    's=-',
    `c=IN IP4 ${address}`,
    't=0 0',
    `m=audio ${String(port)} ${profile} ${payloads}`,
    ...rtpmap.map((value) => `a=rtpmap:${value}`),
    ...crypto.map((value) => `a=crypto:${value}`),
    ...extra,
    `a=${direction}`,
    '',
  ].join('\r\n');
}
