import type { Socket } from 'node:net';
import type { Endpoint } from './flow.js';

// PROXY protocol version 2 (HAProxy's specification, section 2.2): a balancer states the client's address before the client's first byte.
// No SIP header can: TLS ends here.

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const HEAD_BYTES = 16;
/** UNIX socket addresses take 216 bytes; the rest is TLVs that we ignore. */
const MAX_REST_BYTES = 1_024;
const LOCAL = 0x20;
const PROXY = 0x21;
const TCP4 = 0x11;
const TCP6 = 0x21;

/** Remaining header bytes, from the first 16; `null`: not a header, or too long. */
function restBytes(head: Buffer): number | null {
  if (!head.subarray(0, SIGNATURE.length).equals(SIGNATURE)) return null;
  const command = head.readUInt8(12);
  const bytes = head.readUInt16BE(14);
  return (command !== LOCAL && command !== PROXY) || bytes > MAX_REST_BYTES ? null : bytes;
}

/** Source of the connection; `'itself'`: the balancer's health check; `null`: not stated. */
function originOf(head: Buffer, rest: Buffer): Endpoint | 'itself' | null {
  if (head.readUInt8(12) === LOCAL) return 'itself';
  switch (head.readUInt8(13)) {
    case TCP4:
      return rest.length < 12 ? null : { address: [...rest.subarray(0, 4)].join('.'), port: rest.readUInt16BE(8) };
    case TCP6:
      return rest.length < 36 ? null : { address: ipv6(rest.subarray(0, 16)), port: rest.readUInt16BE(32) };
    default:
      return null;
  }
}

/** In Node.js's notation: no leading zeros, the longest run of zeros as `::`. */
function ipv6(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(2 * index).toString(16));
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

/**
 * Reads exactly the header from an unread socket. Calls `done` once, with the origin, or `null` if the header is missing or states none;
 * never if the socket closes first.
 */
export function readProxyHeader(socket: Socket, done: (origin: Endpoint | 'itself' | null) => void): void {
  let head: Buffer | null = null;
  const finish = (origin: Endpoint | 'itself' | null): void => {
    socket.off('readable', onReadable);
    done(origin);
  };
  const onReadable = (): void => {
    head ??= socket.read(HEAD_BYTES) as Buffer | null;
    if (head === null) return;
    const bytes = head.length === HEAD_BYTES ? restBytes(head) : null;
    if (bytes === null) return finish(null);
    const rest = bytes === 0 ? Buffer.alloc(0) : (socket.read(bytes) as Buffer | null);
    if (rest !== null) finish(rest.length === bytes ? originOf(head, rest) : null);
  };
  socket.on('readable', onReadable);
}
