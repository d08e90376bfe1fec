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
export function parseCrypto(value: string): CryptoLine | undefined {
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
