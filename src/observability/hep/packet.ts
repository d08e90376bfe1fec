import { isIPv6, SocketAddress } from 'node:net';

// Homer Encapsulation Protocol, version 3: `HEP3`, the total length, then chunks of vendor, type, length and value.

export interface HepEndpoint {
  readonly address: string;
  readonly port: number;
}

export interface HepMessage {
  readonly from: HepEndpoint;
  readonly to: HepEndpoint;
  /** `tls`, `tcp`, `udp`. */
  readonly transport: string;
  readonly atMs: number;
  readonly callId: string;
  readonly protocol: 'sip' | 'rtcp';
  /** A SIP message, or RTCP as JSON. */
  readonly text: string;
}

export interface HepIdentity {
  readonly captureId: number;
  /** `null`: none is sent. */
  readonly password: string | null;
}

const CHUNK_HEAD_BYTES = 6;
const HEAD_BYTES = 6;
const AF_INET = 2;
const AF_INET6 = 10;
const IPPROTO_TCP = 6;
const IPPROTO_UDP = 17;
/** HEP's protocol numbers. */
const PROTOCOLS = { sip: 1, rtcp: 5 } as const;
/** The longest UDP datagram. */
const MAX_TEXT_BYTES = 60_000;

/** One message as one packet. Both addresses must have the same family. */
export function hepPacket({ from, to, transport, atMs, callId, protocol, text }: HepMessage, { captureId, password }: HepIdentity): Buffer {
  const isV6 = isIPv6(from.address);
  const chunks = [
    number8(0x01, isV6 ? AF_INET6 : AF_INET),
    number8(0x02, transport === 'udp' ? IPPROTO_UDP : IPPROTO_TCP),
    chunk(isV6 ? 0x05 : 0x03, addressBytes(from.address)),
    chunk(isV6 ? 0x06 : 0x04, addressBytes(to.address)),
    number16(0x07, from.port),
    number16(0x08, to.port),
    number32(0x09, Math.floor(atMs / 1_000)),
    number32(0x0a, Math.floor((atMs % 1_000) * 1_000)),
    number8(0x0b, PROTOCOLS[protocol]),
    number32(0x0c, captureId),
    ...(password === null ? [] : [chunk(0x0e, Buffer.from(password))]),
    chunk(0x0f, Buffer.from(text).subarray(0, MAX_TEXT_BYTES)),
    chunk(0x11, Buffer.from(callId).subarray(0, 1_000)),
  ];
  const head = Buffer.from('HEP3\0\0', 'latin1');
  head.writeUInt16BE(
    chunks.reduce((sum, { length }) => sum + length, HEAD_BYTES),
    4,
  );
  return Buffer.concat([head, ...chunks]);
}

function chunk(type: number, value: Buffer): Buffer {
  const head = Buffer.alloc(CHUNK_HEAD_BYTES);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(CHUNK_HEAD_BYTES + value.length, 4);
  return Buffer.concat([head, value]);
}

function number8(type: number, value: number): Buffer {
  return chunk(type, Buffer.from([value]));
}

function number16(type: number, value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return chunk(type, bytes);
}

function number32(type: number, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return chunk(type, bytes);
}

function addressBytes(address: string): Buffer {
  if (!isIPv6(address)) return Buffer.from(address.split('.').map(Number));
  // In canonical form: groups without leading zeros, `::` for the longest run of zeros, an IPv4 tail in dots.
  const plain = new SocketAddress({ address: address.replace(/%.*$/, ''), family: 'ipv6' }).address;
  const hex = plain.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_all, ...bytes: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.slice(0, 4).map(Number);
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
  const [head = '', tail = ''] = hex.split('::');
  const groups = (part: string): number[] => (part === '' ? [] : part.split(':').map((group) => parseInt(group, 16)));
  const [first, last] = [groups(head), hex.includes('::') ? groups(tail) : []];
  const all = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}
