import { WebSocketServer, type WebSocket } from 'ws';
import { ECHO_AT, nowUs, writeTime } from './stamp.js';

// The agents: says back at once what it hears, with its own time in it. Also at the address of a provider of voice models, in its protocol.

/** Silence stays silence. */
function stamp(payload: Uint8Array): void {
  if (payload[0] !== 0xff) writeTime(payload, ECHO_AT, nowUs());
}

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false, skipUTF8Validation: true });
/** 20 ms in 24 kHz: the times of a caller's words do not outlive another rate. */
const GEMINI_AUDIO = Buffer.alloc(960, 0x21).toString('base64');

function openAi(socket: WebSocket): void {
  const send = (event: object): void => socket.send(JSON.stringify(event));
  send({ type: 'session.created', session: { type: 'realtime' } });
  socket.on('message', (data: Buffer) => {
    const event = JSON.parse(data.toString()) as { type: string; audio?: string };
    if (event.type === 'session.update') {
      send({ type: 'session.updated', session: { type: 'realtime' } });
      send({ type: 'response.created', response: { id: 'r' } });
    }
    if (event.type !== 'input_audio_buffer.append') return;
    const payload = Buffer.from(event.audio ?? '', 'base64');
    stamp(payload);
    send({ type: 'response.output_audio.delta', response_id: 'r', item_id: 'i', delta: payload.toString('base64') });
  });
}

function deepgram(socket: WebSocket): void {
  socket.on('message', (data: Buffer, isBinary: boolean) => {
    if (!isBinary) return socket.send(JSON.stringify({ type: 'SettingsApplied' }));
    stamp(data);
    socket.send(data);
  });
}

function gemini(socket: WebSocket): void {
  const parts = [{ inlineData: { mimeType: 'audio/pcm;rate=24000', data: GEMINI_AUDIO } }];
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as { setup?: object };
    socket.send(JSON.stringify(message.setup === undefined ? { serverContent: { modelTurn: { parts } } } : { setupComplete: {} }));
  });
}

const PROVIDERS: Readonly<Record<string, (socket: WebSocket) => void>> = { 'openai-realtime': openAi, deepgram, 'gemini-live': gemini };

server.on('connection', (socket, { url }) => {
  const provider = PROVIDERS[(url ?? '').split(/[/?]/)[1] ?? ''];
  if (provider !== undefined) return provider(socket);
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
