import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

export interface WantedPort {
  /** The setting that moves it. */
  readonly setting: string;
  readonly protocol: 'tcp' | 'udp';
  readonly address: string;
  readonly port: number;
}

/** A sentence for each port that cannot be had, naming the setting to change. */
export async function takenPorts(wanted: readonly WantedPort[]): Promise<string[]> {
  const problems = await Promise.all(
    wanted.map(async (port) => {
      const code = await tryPort(port);
      if (code === undefined) return [];
      const variable = `TRUNKLINE_${port.setting.replaceAll('.', '_').toUpperCase()}`;
      const why = code === 'EADDRINUSE' ? 'is taken by another program' : `cannot be opened (${code})`;
      return [
        `${port.protocol.toUpperCase()} port ${port.port} on ${port.address} ${why}: set ${port.setting} (${variable}) to a free one`,
      ];
    }),
  );
  return problems.flat();
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
