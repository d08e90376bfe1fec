import { ipFamily } from './address.js';

/** A socket in Linux's table of UDP sockets. */
export interface UdpSocket {
  readonly address: string;
  readonly port: number;
}

const HEADING = /^\s*sl\s+local_address\s/;

/**
 * How many datagrams the kernel dropped for these sockets because their receive buffers were full: the last column of `/proc/net/udp` or
 * `/proc/net/udp6`. `null`: the text is no such table.
 */
export function droppedDatagrams(table: string, sockets: readonly UdpSocket[]): number | null {
  if (!HEADING.test(table)) return null;
  const wanted = new Set(sockets.map(socketKey));
  let sum = 0;
  for (const line of table.split('\n').slice(1)) {
    const columns = line.trim().split(/\s+/);
    const drops = Number(columns.at(-1));
    if (columns.length >= 13 && wanted.has(columns[1] ?? '') && Number.isSafeInteger(drops)) sum += drops;
  }
  return sum;
}

/** How the table names a socket. */
export function socketKey({ address, port }: UdpSocket): string {
  return `${hexAddress(address)}:${port.toString(16).toUpperCase().padStart(4, '0')}`;
}

const WAITING = /^ *\d+: ([0-9A-F]+:[0-9A-F]{4}) \S+ [0-9A-F]{2} [0-9A-F]{8}:(?!00000000)([0-9A-F]{8}) /gm;

/** Bytes that wait in the receive queues of sockets, by `socketKey`; sockets without any are left out. */
export function waitingBytes(table: string): Map<string, number> {
  return new Map([...table.matchAll(WAITING)].map(([, key = '', bytes = '']) => [key, Number.parseInt(bytes, 16)]));
}

/** An address in the table's form: 32-bit words in the machine's byte order, which is little-endian where Node.js runs. */
function hexAddress(address: string): string {
  const bytes = ipFamily(address) === 6 ? ipv6Bytes(address) : address.split('.').map(Number);
  let hex = '';
  for (let word = 0; word < bytes.length; word += 4) {
    for (let byte = word + 3; byte >= word; byte -= 1) hex += (bytes[byte] ?? 0).toString(16).toUpperCase().padStart(2, '0');
  }
  return hex;
}

function ipv6Bytes(address: string): number[] {
  const [head = '', tail] = address.split('%')[0]?.split('::') ?? [];
  const groups = (text: string): number[] => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)));
  const [before, after] = [groups(head), groups(tail ?? '')];
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  return [...before, ...Array.from({ length: Math.max(0, zeros) }, () => 0), ...after].flatMap((group) => [group >> 8, group & 0xff]);
}
