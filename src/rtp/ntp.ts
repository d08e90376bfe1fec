/** Seconds from 1900-01-01 to 1970-01-01 (RFC 5905 §6). */
const UNIX_EPOCH_IN_NTP_SECONDS = 2_208_988_800;

/** A 64-bit NTP timestamp as two halves (RFC 3550 §4). */
export interface NtpTimestamp {
  readonly seconds: number;
  readonly fraction: number;
}

/** @param unixMs milliseconds since the Unix epoch */
export function ntpFromUnixMs(unixMs: number): NtpTimestamp {
  const wholeSeconds = Math.floor(unixMs / 1_000);
  return {
    seconds: (wholeSeconds + UNIX_EPOCH_IN_NTP_SECONDS) >>> 0,
    fraction: Math.floor(((unixMs - wholeSeconds * 1_000) / 1_000) * 2 ** 32) >>> 0,
  };
}

/** The middle 32 bits, in units of 1/65,536 s, as in LSR and DLSR (RFC 3550 §4). */
export function middle32(ntp: NtpTimestamp): number {
  return ((ntp.seconds << 16) | (ntp.fraction >>> 16)) >>> 0;
}

/**
 * The round trip by a report block of the peer: A - LSR - DLSR (RFC 3550 §6.4.1), in milliseconds. `null` before the peer received a
 * sender report, or if clocks make the figure negative or longer than a minute. Clocks that count whole milliseconds may make that of a
 * near peer negative by less than two: it is 0.
 */
export function roundTripMs(nowMiddle32: number, lastSenderReport: number, delaySinceLastSenderReport: number): number | null {
  if (lastSenderReport === 0) return null;
  const units = (nowMiddle32 - lastSenderReport - delaySinceLastSenderReport) | 0;
  const result = (units * 1_000) / 65_536;
  return result <= -2 || result > 60_000 ? null : Math.max(0, result);
}
