import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** Sends so many datagrams of one byte to a port, as fast as they go, from a stranger's address. rtpengine 10.5 reads the port no more after some hundred. */
export async function burst(to: { readonly address: string; readonly port: number }, count: number): Promise<void> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const byte = Buffer.of(0);
  await Promise.all(Array.from({ length: count }, () => new Promise((resolve) => socket.send(byte, to.port, to.address, resolve))));
  socket.close();
}
