// A thread that answers each datagram of its one peer. Plain JavaScript, so that it needs no loader.
import { Buffer } from 'node:buffer';
import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';

const { UdpSocket } = createRequire(import.meta.url)(workerData.addon);
const slots = Buffer.alloc(32 * 2_048);
const table = new Int32Array(3 * 32);
const answer = (count) => {
  for (let i = 0; i < count; i += 1) socket.send(table[3 * i + 2], slots.subarray(table[3 * i] * 2_048), table[3 * i + 1]);
};
const socket = new UdpSocket('127.0.0.1', workerData.port, slots, table, answer);
socket.addPeer('127.0.0.1', workerData.peerPort);
parentPort?.postMessage('open');
