import { createSocket, type RemoteInfo } from 'node:dgram';
import { WebSocket } from 'ws';
import type { CarrierSide, EndpointOrder, FarSide } from './messages.js';
import { takeOrders } from '../support/orders.js';

// What is held against the endpoint: a bridge of a few lines that does nothing but move bytes, with one send for each receive: no SRTP, no
// order, no pacing, no limits, no checks. It says what sockets, base64 and JSON cost on this machine.

interface Bridge {
  readonly port: number;
  readonly socket: WebSocket;
  sequence: number;
  timestamp: number;
}

const bridges = new Map<number, Bridge>();
/** As many as the calls of one of the carrier's sockets, which tells its calls apart by our port. */
const SOCKETS = 32;
let botUrl = '';

const sockets = Array.from({ length: SOCKETS }, () =>
  createSocket({ type: 'udp4', recvBufferSize: 4 << 20, lookup: (host, _options, done) => done(null, host, 4) }),
);
for (const udp of sockets) udp.on('message', forward);

function forward(datagram: Buffer, from: RemoteInfo): void {
  // Each call has an SSRC of its own.
  const bridge = bridges.get(datagram.readUInt32BE(8));
  if (bridge === undefined || bridge.port !== from.port) return;
  const payload = datagram.toString('base64', 12, 172);
  bridge.sequence += 1;
  bridge.socket.send(
    `{"event":"media","sequenceNumber":"${String(bridge.sequence)}","media":{"track":"inbound","chunk":"1","timestamp":"1","payload":"${payload}"},"streamSid":"x"}`,
  );
}

async function open({ id, port }: CarrierSide): Promise<FarSide> {
  const index = Number(id.slice('bench-'.length));
  const socket = new WebSocket(botUrl, { perMessageDeflate: false });
  const bridge = { port, socket, sequence: 0, timestamp: 0 };
  const udp = sockets[index % SOCKETS];
  if (udp === undefined) throw new Error('no such socket');
  const packet = Buffer.alloc(172);
  packet[0] = 0x80;
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as { media: { payload: string } };
    Buffer.from(message.media.payload, 'base64').copy(packet, 12);
    bridge.timestamp += 160;
    packet.writeUInt16BE(bridge.sequence & 0xffff, 2);
    packet.writeUInt32BE(bridge.timestamp >>> 0, 4);
    packet.writeUInt32BE(0x20000 + index, 8);
    udp.send(packet, 0, 172, port, '127.0.0.1');
  });
  await new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  bridges.set(0x10000 + index, bridge);
  return { id, port: udp.address().port, key: null };
}

async function obey(order: EndpointOrder): Promise<unknown> {
  switch (order.type) {
    case 'set-up':
      botUrl = order.botUrl;
      for (const udp of sockets) await new Promise<void>((resolve) => udp.bind(0, '127.0.0.1', () => resolve()));
      return undefined;
    case 'open': {
      const far: FarSide[] = [];
      for (const side of order.calls) far.push(await open(side));
      return far;
    }
    case 'counters':
      return {};
    case 'collect':
      return globalThis.gc?.();
  }
}

takeOrders(obey);
