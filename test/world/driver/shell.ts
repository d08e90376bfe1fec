import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';

/** In place of the shell of src/gateway/agents/speech.ts: each text is spoken as a tone of its own, a tenth of a second for each word. */
export class WorldShell extends EventEmitter {
  readonly pid = undefined;
  readonly stdin = new PassThrough();
  readonly stdout = Object.assign(new PassThrough(), { ref: () => undefined, unref: () => undefined });

  constructor() {
    super();
    Object.assign(this.stdin, { ref: () => undefined, unref: () => undefined });
    let text = '';
    this.stdin.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines)
        this.stdout.write(`${Buffer.concat([spokenWav(line.split(' ').slice(2).join(' ')), Buffer.from(' 0')]).toString('base64')}\n`);
    });
  }

  unref(): void {
    return;
  }

  kill(): boolean {
    return true;
  }
}

const RATE_HZ = 8_000;

/** The tone of a text. */
export function toneOf(text: string): number {
  let sum = 0;
  for (const character of text) sum = (31 * sum + (character.codePointAt(0) ?? 0)) % 20;
  return 400 + 50 * sum;
}

function spokenWav(text: string): Buffer {
  const samples = new Int16Array((RATE_HZ / 10) * text.split(' ').length);
  const hz = toneOf(text);
  for (let at = 0; at < samples.length; at += 1) samples[at] = Math.round(8_000 * Math.sin((2 * Math.PI * hz * at) / RATE_HZ));
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + samples.byteLength, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(RATE_HZ, 24);
  head.writeUInt32LE(2 * RATE_HZ, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36);
  head.writeUInt32LE(samples.byteLength, 40);
  return Buffer.concat([head, Buffer.from(samples.buffer)]);
}
