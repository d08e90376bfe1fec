/** How far `later` is ahead of `earlier` in 16-bit serial number arithmetic (RFC 1982): -32,768 to 32,767. */
export function sequenceDelta(later: number, earlier: number): number {
  return ((later - earlier) << 16) >> 16;
}

/** How far `later` is ahead of `earlier` in 32-bit serial number arithmetic, for RTP timestamps: -2^31 to 2^31 - 1. */
export function timestampDelta(later: number, earlier: number): number {
  return (later - earlier) | 0;
}

/** The next 16-bit sequence number. */
export function nextSequence(sequenceNumber: number): number {
  return (sequenceNumber + 1) & 0xffff;
}

/** An RTP timestamp plus `ticks`, modulo 2^32. */
export function addTicks(rtpTimestamp: number, ticks: number): number {
  return (rtpTimestamp + ticks) >>> 0;
}
