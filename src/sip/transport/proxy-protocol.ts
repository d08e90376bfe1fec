import type { Socket } from 'node:net';
import type { Endpoint } from './flow.js';

// PROXY protocol version 2 (the specification of HAProxy, section 2.2): what a balancer in front of us says about the connection that it
// hands on, before the first byte of its client. A header of another kind cannot tell it: TLS ends here.

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const HEAD_BYTES = 16;
/** Addresses of UNIX sockets take 216 bytes; what more there is says things that we do not ask for. */
const MAX_REST_BYTES = 1_024;
const LOCAL = 0x20;
const PROXY = 0x21;
const TCP4 = 0x11;
const TCP6 = 0x21;

/** From the first 16 bytes: how many more the header has; `null`: not a header, or too long. */
function restBytes(head: Buffer): number | null {
  if (!head.subarray(0, SIGNATURE.length).equals(SIGNATURE)) return null;
  const command = head.readUInt8(12);
  const bytes = head.readUInt16BE(14);
  return (command !== LOCAL && command !== PROXY) || bytes > MAX_REST_BYTES ? null : bytes;
}

/** Where the connection comes from; `'itself'`: from the balancer (its health check); `null`: the header does not say it. */
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

/** As Node.js writes addresses of sockets: without leading zeros, the longest run of zeros as `::`. */
function ipv6(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(2 * index).toString(16));
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

/**
 * Reads the header from a socket that nobody reads yet, and nothing beyond it. `done` runs once: with the origin, or with `null` when
 * there is no header or one that says nothing; not when the socket is closed before.
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
