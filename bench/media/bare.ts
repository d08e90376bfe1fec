import { createSocket } from 'node:dgram';
import { WebSocket } from 'ws';
import type { CarrierSide, EndpointOrder, FarSide } from './messages.js';
import { takeOrders } from '../support/orders.js';

// The bridge that the endpoint is held against, as people write one in an afternoon: WebSocket by `ws`, RTP by `node:dgram` with a socket a
// call, Twilio's messages by `JSON` and base64. It sends each frame on when it comes: no SRTP, no order, no pacing, no limits, no checks.
//
// THIS FILE IS FROZEN. Figures of later years compare only if the bridge stays as it is: change neither what it does nor how. What the
// benchmark's processes send each other (`messages.ts`) may change its types, not its work.

const HEADER_BYTES = 12;
const FRAME_SAMPLES = 160;
let botUrl = '';

async function open({ id, port }: CarrierSide): Promise<FarSide> {
  const streamSid = `MZ${id}`;
  const udp = createSocket('udp4');
  await new Promise<void>((resolve) => udp.bind(0, '127.0.0.1', resolve));
  const socket = new WebSocket(botUrl);
  await new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  const ssrc = udp.address().port;
  let sequence = 0;
  let timestamp = 0;
  let chunk = 0;
  let sequenceNumber = 1;

  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as { event: string; media?: { payload: string } };
    if (message.event !== 'media' || message.media === undefined) return;
    const payload = Buffer.from(message.media.payload, 'base64');
    sequence += 1;
    timestamp += FRAME_SAMPLES;
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt8(0x80, 0);
    header.writeUInt16BE(sequence & 0xffff, 2);
    header.writeUInt32BE(timestamp >>> 0, 4);
    header.writeUInt32BE(ssrc, 8);
    udp.send(Buffer.concat([header, payload]), port, '127.0.0.1');
  });

  udp.on('message', (datagram) => {
    const payload = datagram.subarray(HEADER_BYTES).toString('base64');
    chunk += 1;
    sequenceNumber += 1;
    socket.send(
      JSON.stringify({
        event: 'media',
        sequenceNumber: String(sequenceNumber),
        media: { track: 'inbound', chunk: String(chunk), timestamp: String(chunk * 20), payload },
        streamSid,
      }),
    );
  });

  socket.send(JSON.stringify({ event: 'connected', protocol: 'Call', version: '1.0.0' }));
  socket.send(
    JSON.stringify({
      event: 'start',
      sequenceNumber: '1',
      start: { streamSid, tracks: ['inbound'], mediaFormat: { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 } },
      streamSid,
    }),
  );
  return { id, port: udp.address().port, key: null };
}

async function obey(order: EndpointOrder): Promise<unknown> {
  switch (order.type) {
    case 'set-up':
      botUrl = order.botUrl;
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
