import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';

// A ClientHello written by hand: no library on this side refuses what is offered, as today's do with old versions and ciphers.

export type HelloAnswer = { readonly cipher: number; readonly compression: number; readonly version: number } | { readonly alert: number };

export interface Hello {
  /** 0x0300 SSLv3, 0x0301 TLS 1.0, 0x0302 TLS 1.1, 0x0303 TLS 1.2. */
  readonly version: number;
  readonly ciphers: readonly number[];
  /** Methods: 0 none, 1 DEFLATE. */
  readonly compressions?: readonly number[];
}

/** Sends one; resolves with what the server chose, or the alert by which it refused. 0: closed without a word. */
export function sayHello(port: number, hello: Hello): Promise<HelloAnswer> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(recordOf(hello)));
    let received = Buffer.alloc(0);
    const settle = (answer: HelloAnswer): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.on('error', () => settle({ alert: 0 }));
    socket.on('close', () => resolve({ alert: 0 }));
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const answer = answerOf(received);
      if (answer !== undefined) settle(answer);
    });
  });
}

/** What the server takes of these, in the order in which it would. */
export async function acceptedCiphers(port: number, version: number, offered: readonly number[]): Promise<number[]> {
  const accepted: number[] = [];
  for (;;) {
    const answer = await sayHello(port, { version, ciphers: offered.filter((cipher) => !accepted.includes(cipher)) });
    if ('alert' in answer) return accepted;
    accepted.push(answer.cipher);
  }
}

function recordOf({ version, ciphers, compressions = [0] }: Hello): Buffer {
  const body = Buffer.concat([
    uint16(version),
    randomBytes(32),
    Buffer.of(0),
    uint16(2 * ciphers.length),
    ...ciphers.map(uint16),
    Buffer.of(compressions.length, ...compressions),
    // SSLv3 has no extensions.
    version === 0x0300 ? Buffer.alloc(0) : extensions(),
  ]);
  const handshake = Buffer.concat([Buffer.of(1, 0), uint16(body.length), body]);
  return Buffer.concat([Buffer.of(22), uint16(Math.min(version, 0x0301)), uint16(handshake.length), handshake]);
}

function extensions(): Buffer {
  const extension = (type: number, content: Buffer): Buffer => Buffer.concat([uint16(type), uint16(content.length), content]);
  const list = (values: readonly number[]): Buffer => Buffer.concat([uint16(2 * values.length), ...values.map(uint16)]);
  const all = Buffer.concat([
    // supported_groups: X25519, P-256, P-384. ec_point_formats: uncompressed. signature_algorithms: RSA and ECDSA with SHA-2 and SHA-1.
    extension(10, list([0x001d, 0x0017, 0x0018])),
    extension(11, Buffer.of(1, 0)),
    extension(13, list([0x0401, 0x0501, 0x0601, 0x0804, 0x0805, 0x0806, 0x0403, 0x0201])),
  ]);
  return Buffer.concat([uint16(all.length), all]);
}

/** RFC 5246 §7.4.1.3, §7.2. `undefined`: not all of it is there yet. */
function answerOf(data: Buffer): HelloAnswer | undefined {
  if (data.length < 7) return undefined;
  if (data[0] === 21) return { alert: data[6] ?? 0 };
  const sessionId = data[43];
  if (sessionId === undefined || data.length < 47 + sessionId) return undefined;
  const at = 44 + sessionId;
  return { version: data.readUInt16BE(9), cipher: data.readUInt16BE(at), compression: data[at + 2] ?? 0 };
}

function uint16(value: number): Buffer {
  return Buffer.of(value >> 8, value & 0xff);
}
