import { WebSocketServer } from 'ws';
import { ECHO_AT, nowUs, writeTime } from './stamp.js';

// The agents: says back at once what it hears, with its own time in it.

/** Silence stays silence. */
function stamp(payload: Uint8Array): void {
  if (payload[0] !== 0xff) writeTime(payload, ECHO_AT, nowUs());
}

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false, skipUTF8Validation: true });
server.on('connection', (socket) => {
  let streamSid = '';
  socket.on('message', (data: Buffer, isBinary: boolean) => {
    if (isBinary) {
      if (data.length === 160) stamp(data);
      socket.send(data);
      return;
    }
    const message = JSON.parse(data.toString()) as { event: string; streamSid?: string; media?: { payload: string } };
    if (message.event === 'start') streamSid = message.streamSid ?? '';
    if (message.event !== 'media' || message.media === undefined) return;
    const payload = Buffer.from(message.media.payload, 'base64');
    stamp(payload);
    socket.send(JSON.stringify({ event: 'media', streamSid, media: { payload: payload.toString('base64') } }));
  });
});
server.on('listening', () => process.send?.({ ready: true, port: (server.address() as { port: number }).port }));
