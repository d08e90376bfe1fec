// A worker thread: so many datagrams of one byte to each of the ports, as fast as they go.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { workerData } from 'node:worker_threads';

const { ports, count } = workerData;
const socket = createSocket('udp4');
socket.bind(0, '127.0.0.1');
await once(socket, 'listening');
const byte = Buffer.of(0);
for (const { address, port } of ports)
  await Promise.all(Array.from({ length: count }, () => new Promise((resolve) => socket.send(byte, port, address, resolve))));
socket.close();
