import { createSocket } from 'node:dgram';
import { createServer, isIPv6 } from 'node:net';
import { endianness } from 'node:os';
import { readText } from './read-text.js';

export interface WantedPort {
  /** The setting that changes it. */
  readonly setting: string;
  readonly protocol: 'tcp' | 'udp';
  readonly address: string;
  readonly port: number;
}

/** A range of UDP ports and the group of its two settings. */
export interface WantedRange {
  /** The group before `.port_min` and `.port_max`. */
  readonly setting: string;
  readonly address: string;
  readonly min: number;
  readonly max: number;
}

/** A sentence if any program has UDP ports of the range open; `null`: none is open, or the system does not list them. */
export function takenRange({ setting, address, min, max }: WantedRange): string | null {
  const taken = openUdpPorts(address).filter((port) => port >= min && port <= max);
  if (taken.length === 0) return null;
  const range = `of the UDP ports ${String(min)} to ${String(max)} on ${address}`;
  return `${String(taken.length)} ${range} are in use by other programs, among them ${String(taken[0])}: set ${setting}.port_min and ${setting}.port_max to a free range`;
}

/** Linux only: addresses are hexadecimal, each 32 bits in the machine's byte order. */
function openUdpPorts(address: string): number[] {
  const family = isIPv6(address) ? 'udp6' : 'udp';
  const own = family === 'udp' ? hexOfIpv4(address) : null;
  const ports = readText(`/proc/net/${family}`).matchAll(/^ *\d+: ([0-9A-F]+):([0-9A-F]{4}) /gm);
  const isOurs = (at: string): boolean => own === null || at === own || /^0+$/.test(at);
  return [...ports].filter(([, at = '']) => isOurs(at)).map(([, , port = '']) => Number.parseInt(port, 16));
}

function hexOfIpv4(address: string): string {
  const bytes = address.split('.').map((part) => Number(part).toString(16).padStart(2, '0').toUpperCase());
  return (endianness() === 'LE' ? bytes.reverse() : bytes).join('');
}

/** A sentence for each port that is taken, naming the setting to change. */
export async function takenPorts(wanted: readonly WantedPort[]): Promise<string[]> {
  const problems = await Promise.all(
    wanted.map(async (port) => {
      const code = await tryPort(port);
      if (code === undefined) return [];
      return [problemOf(port, code)];
    }),
  );
  return problems.flat();
}

function problemOf({ setting, protocol, address, port }: WantedPort, code: string): string {
  const name = `${protocol.toUpperCase()} port ${String(port)} on ${address}`;
  const variable = `TRUNKLINE_${setting.replaceAll('.', '_').toUpperCase()}`;
  switch (code) {
    case 'EADDRINUSE':
      return `${name} is in use by another program: set ${setting} (${variable}) to a free one`;
    case 'EADDRNOTAVAIL':
      return `${name} cannot be opened: ${address} is no address of this machine; correct bind_address (TRUNKLINE_BIND_ADDRESS)`;
    case 'EACCES':
      return `${name} needs root or CAP_NET_BIND_SERVICE: set ${setting} (${variable}) to one from 1024 on`;
    default:
      return `${name} cannot be opened (${code}): set ${setting} (${variable}) to another one`;
  }
}

function tryPort({ protocol, address, port }: WantedPort): Promise<string | undefined> {
  return new Promise((resolve) => {
    if (protocol === 'tcp') {
      const server = createServer();
      server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'));
      server.listen({ host: address, port, exclusive: true }, () => server.close(() => resolve(undefined)));
    } else {
      const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
      socket.once('error', (error: NodeJS.ErrnoException) => {
        socket.close();
        resolve(error.code ?? 'error');
      });
      socket.bind({ address, port, exclusive: true }, () => socket.close(() => resolve(undefined)));
    }
  });
}
