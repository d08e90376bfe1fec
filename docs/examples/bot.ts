// A voice bot for Trunkline, or for Twilio Media Streams: greets with a tone, then says back what it hears, answers each key
// with a tone of its own, and hangs up on #. Run it: npx tsx docs/examples/bot.ts --port 9000
import { parseArgs } from 'node:util';
import { WebSocketServer } from 'ws';

type Message =
  | { event: 'start'; start: { callSid: string; customParameters: Record<string, string> }; streamSid: string }
  | { event: 'media'; media: { payload: string } }
  | { event: 'dtmf'; dtmf: { digit: string } }
  | { event: 'mark'; mark: { name: string } };

const { port } = parseArgs({ options: { port: { type: 'string', default: '9000' } } }).values;
const server = new WebSocketServer({ host: '127.0.0.1', port: Number(port) });
server.on('listening', () => console.log(`The bot listens on ws://127.0.0.1:${port}/`));
server.on('connection', (socket) => {
  let streamSid = '';
  let speaking = 'greeting'; // Until this mark comes back, which it does when all before it was heard.
  const send = (message: object): void => socket.send(JSON.stringify({ ...message, streamSid }));
  const say = (audio: string): void => send({ event: 'media', media: { payload: audio } });
  const sayAll = (audio: string, name: string): void => {
    speaking = name;
    send({ event: 'clear' });
    say(audio);
    send({ event: 'mark', mark: { name } });
  };
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as Message;
    if (message.event === 'start') {
      ({ streamSid } = message);
      sayAll(tone(440, 1_000), 'greeting');
    } else if (message.event === 'media' && speaking === '') say(message.media.payload);
    else if (message.event === 'dtmf' && message.dtmf.digit === '#') sayAll(tone(350, 500), 'goodbye');
    else if (message.event === 'dtmf') sayAll(tone(500 + 100 * Number.parseInt(message.dtmf.digit, 16), 500), 'key');
    else if (message.event === 'mark' && message.mark.name === 'goodbye') socket.close();
    else if (message.event === 'mark' && message.mark.name === speaking) speaking = '';
  });
});

/** G.711 µ-law at 8 kHz, base64: `*` has no pitch, so it is silence. */
function tone(hertz: number, milliseconds: number): string {
  const sampleAt = (n: number): number => (Number.isNaN(hertz) ? 0 : Math.round(8_000 * Math.sin((2 * Math.PI * hertz * n) / 8_000)));
  return Buffer.from(Array.from({ length: 8 * milliseconds }, (_, n) => muLaw(sampleAt(n)))).toString('base64');
}

function muLaw(sample: number): number {
  const magnitude = Math.min(Math.abs(sample) + 132, 32_767);
  const exponent = 24 - Math.clz32(magnitude);
  return ~((sample < 0 ? 0x80 : 0) | (exponent << 4) | ((magnitude >> (exponent + 3)) & 0x0f)) & 0xff;
}
