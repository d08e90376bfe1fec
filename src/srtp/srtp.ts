import { randomBytes } from 'node:crypto';
import { err, ok, type Result } from '../lib/result.js';
import { loadAddon } from './addon.js';

/** 128-bit master key and 112-bit master salt of AES_CM_128_HMAC_SHA1_80 (RFC 4568 §6.1). */
export const MASTER_KEY_AND_SALT_BYTES = 30;
/** What `protectRtp` adds: the 80-bit tag (RFC 3711 §5.2). */
export const SRTP_TRAILER_BYTES = 10;
/** What `protectRtcp` adds: E flag and index, and the 80-bit tag (RFC 3711 §3.4). */
export const SRTCP_TRAILER_BYTES = 14;
/** The longest packet that a session takes. */
export const MAX_SRTP_PACKET_BYTES = 2_048;

export type SrtpErrorCode =
  | 'out-of-bounds'
  | 'too-short'
  | 'too-long'
  | 'no-trailer-room'
  | 'malformed'
  | 'auth-failed'
  | 'replayed'
  | 'key-expired'
  | 'failed';

/** A packet that could not be protected or unprotected. A wrong key shows as `auth-failed`. */
export class SrtpError extends Error {
  override readonly name = 'SrtpError';
  constructor(readonly code: SrtpErrorCode) {
    super(`SRTP: ${code}`);
  }
}

/** `send` protects, `receive` unprotects. */
export type SrtpDirection = 'send' | 'receive';

interface NativeSession {
  transform(operation: number, buffer: Uint8Array, table: Int32Array): number;
  close(): void;
}

interface SrtpAddon {
  readonly SrtpSession: new (masterKeyAndSalt: Uint8Array, isReceiver: boolean) => NativeSession;
}

// The order and the values of native/srtp-session.cc.
const OPERATION = { protectRtp: 0, unprotectRtp: 1, protectRtcp: 2, unprotectRtcp: 3 } as const;
const ERROR_CODES: readonly SrtpErrorCode[] = [
  'out-of-bounds',
  'too-short',
  'too-long',
  'no-trailer-room',
  'malformed',
  'auth-failed',
  'replayed',
  'key-expired',
  'failed',
];

/** The meaning of a negative number in a batch table or from a `try…` method. */
export function srtpErrorCode(result: number): SrtpErrorCode {
  return ERROR_CODES[-result - 1] ?? 'failed';
}

/** A table for `packets` packets of one batch call: (offset, length, capacity) each, in bytes. See `SrtpSession`. */
export function newBatchTable(packets: number): Int32Array {
  return new Int32Array(3 * packets);
}

/**
 * One direction of an SRTP and SRTCP session, for any number of SSRCs, with replay protection. Works in place.
 *
 * The batch methods take a table of (offset, length, capacity) triples (`newBatchTable`): packet i lies at
 * `buffer[offset, offset + length)` and may grow up to `capacity` bytes. Each length is overwritten with the packet's new length or
 * with a negative number (`srtpErrorCode`); the number of failed packets is returned. Nothing is allocated.
 *
 * The single-packet methods take a packet at the start of `buffer`, which may grow up to the end of `buffer`. `protect…` and
 * `unprotect…` return the new length or throw `SrtpError`; `try…` return a negative number instead of throwing.
 */
export class SrtpSession {
  readonly #native: NativeSession;
  readonly #single = newBatchTable(1);
  #isClosed = false;

  /**
   * @param masterKeyAndSalt 30 bytes, copied
   * @throws RangeError when the key has another length
   */
  constructor(
    masterKeyAndSalt: Uint8Array,
    private readonly direction: SrtpDirection,
  ) {
    if (masterKeyAndSalt.byteLength !== MASTER_KEY_AND_SALT_BYTES) {
      throw new RangeError(`an SRTP key has ${MASTER_KEY_AND_SALT_BYTES} bytes, not ${masterKeyAndSalt.byteLength}`);
    }
    this.#native = new (loadAddon() as SrtpAddon).SrtpSession(masterKeyAndSalt, direction === 'receive');
  }

  protectRtp(buffer: Uint8Array, lengthBytes: number): number {
    return orThrow(this.tryProtectRtp(buffer, lengthBytes));
  }

  unprotectRtp(buffer: Uint8Array, lengthBytes: number): number {
    return orThrow(this.tryUnprotectRtp(buffer, lengthBytes));
  }

  protectRtcp(buffer: Uint8Array, lengthBytes: number): number {
    return orThrow(this.tryProtectRtcp(buffer, lengthBytes));
  }

  unprotectRtcp(buffer: Uint8Array, lengthBytes: number): number {
    return orThrow(this.tryUnprotectRtcp(buffer, lengthBytes));
  }

  tryProtectRtp(buffer: Uint8Array, lengthBytes: number): number {
    return this.#one('send', OPERATION.protectRtp, buffer, lengthBytes);
  }

  tryUnprotectRtp(buffer: Uint8Array, lengthBytes: number): number {
    return this.#one('receive', OPERATION.unprotectRtp, buffer, lengthBytes);
  }

  tryProtectRtcp(buffer: Uint8Array, lengthBytes: number): number {
    return this.#one('send', OPERATION.protectRtcp, buffer, lengthBytes);
  }

  tryUnprotectRtcp(buffer: Uint8Array, lengthBytes: number): number {
    return this.#one('receive', OPERATION.unprotectRtcp, buffer, lengthBytes);
  }

  protectRtpBatch(buffer: Uint8Array, table: Int32Array): number {
    return this.#batch('send', OPERATION.protectRtp, buffer, table);
  }

  unprotectRtpBatch(buffer: Uint8Array, table: Int32Array): number {
    return this.#batch('receive', OPERATION.unprotectRtp, buffer, table);
  }

  protectRtcpBatch(buffer: Uint8Array, table: Int32Array): number {
    return this.#batch('send', OPERATION.protectRtcp, buffer, table);
  }

  unprotectRtcpBatch(buffer: Uint8Array, table: Int32Array): number {
    return this.#batch('receive', OPERATION.unprotectRtcp, buffer, table);
  }

  /** Wipes the keys and frees the session. A session that is not closed is freed when it is garbage collected. */
  close(): void {
    this.#isClosed = true;
    this.#native.close();
  }

  #one(direction: SrtpDirection, operation: number, buffer: Uint8Array, lengthBytes: number): number {
    this.#single[0] = 0;
    this.#single[1] = lengthBytes;
    this.#single[2] = buffer.byteLength;
    this.#batch(direction, operation, buffer, this.#single);
    return this.#single[1];
  }

  #batch(direction: SrtpDirection, operation: number, buffer: Uint8Array, table: Int32Array): number {
    if (this.#isClosed) throw new Error('the SRTP session is closed');
    if (direction !== this.direction) throw new Error(`the SRTP session is for the direction ${this.direction}`);
    return this.#native.transform(operation, buffer, table);
  }
}

function orThrow(result: number): number {
  if (result < 0) throw new SrtpError(srtpErrorCode(result));
  return result;
}

/** A fresh master key and salt: 30 random bytes. */
export function generateSrtpKey(): Uint8Array {
  return new Uint8Array(randomBytes(MASTER_KEY_AND_SALT_BYTES));
}

/** The `inline:` key parameter of a=crypto, without lifetime and MKI (RFC 4568 §6.1). */
export function formatInlineKey(masterKeyAndSalt: Uint8Array): string {
  return `inline:${Buffer.from(masterKeyAndSalt).toString('base64')}`;
}

export type InlineKeyError = 'not-inline' | 'not-base64' | 'wrong-length';

/**
 * The 30 bytes of an `inline:` key parameter (RFC 4568 §6.1). What stands behind the first `|` (lifetime, MKI) is not looked at.
 * The errors never contain the key.
 */
export function parseInlineKey(text: string): Result<Uint8Array, InlineKeyError> {
  const match = /^inline:([^|]*)(?:\|.*)?$/i.exec(text.trim());
  if (match === null) return err('not-inline');
  const base64 = match[1] ?? '';
  // Buffer.from skips what is not base64; RFC 4568 §9.2 allows the alphabet and padding only.
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) return err('not-base64');
  const bytes = Buffer.from(base64, 'base64');
  return bytes.byteLength === MASTER_KEY_AND_SALT_BYTES ? ok(new Uint8Array(bytes)) : err('wrong-length');
}
