import { createSocket, type Socket } from 'node:dgram';

/** What a HEP3 packet says, by the description of the protocol (sipcapture/HEP, rev. 36). */
export interface HepPacket {
  readonly family: number;
  readonly protocol: number;
  readonly source: string;
  readonly destination: string;
  readonly atMs: number;
  readonly payloadType: number;
  readonly captureId: number;
  readonly password: string | undefined;
  readonly payload: string;
  readonly correlationId: string;
}

const SIZES: Readonly<Record<number, number>> = { 1: 1, 2: 1, 3: 4, 4: 4, 5: 16, 6: 16, 7: 2, 8: 2, 9: 4, 10: 4, 11: 1, 12: 4 };

/** Strict: every length must be right, every chunk known, of vendor 0 and there once. */
export function decodeHep(packet: Buffer): HepPacket {
  if (packet.toString('latin1', 0, 4) !== 'HEP3') throw new Error('no HEP3');
  if (packet.readUInt16BE(4) !== packet.length) throw new Error(`the length says ${String(packet.readUInt16BE(4))}`);
  const chunks = new Map<number, Buffer>();
  for (let at = 6; at < packet.length;) {
    const [vendor, type, length] = [packet.readUInt16BE(at), packet.readUInt16BE(at + 2), packet.readUInt16BE(at + 4)];
    if (vendor !== 0 || length < 6 || at + length > packet.length) throw new Error(`bad chunk at ${String(at)}`);
    if (chunks.has(type)) throw new Error(`chunk ${String(type)} twice`);
    if (SIZES[type] !== undefined && SIZES[type] !== length - 6) throw new Error(`chunk ${String(type)} has ${String(length - 6)} bytes`);
    chunks.set(type, packet.subarray(at + 6, at + length));
    at += length;
  }
  const of = (type: number): Buffer => {
    const value = chunks.get(type);
    if (value === undefined) throw new Error(`no chunk ${String(type)}`);
    return value;
  };
  const address = (v4: number, v6: number): string =>
    of(1)[0] === 2 ? [...of(v4)].join('.') : `[${of(v6).toString('hex').match(/.{4}/g)?.join(':') ?? ''}]`;
  return {
    family: of(1).readUInt8(),
    protocol: of(2).readUInt8(),
    source: `${address(3, 5)}:${String(of(7).readUInt16BE())}`,
    destination: `${address(4, 6)}:${String(of(8).readUInt16BE())}`,
    atMs: of(9).readUInt32BE() * 1_000 + of(10).readUInt32BE() / 1_000,
    payloadType: of(11).readUInt8(),
    captureId: of(12).readUInt32BE(),
    password: chunks.get(14)?.toString(),
    payload: of(15).toString(),
    correlationId: of(17).toString(),
  };
}

/** A Homer collector that keeps what it gets. */
export class HepCollector {
  readonly packets: HepPacket[] = [];

  private constructor(
    private readonly socket: Socket,
    readonly port: number,
  ) {
    socket.on('message', (message) => this.packets.push(decodeHep(message)));
  }

  static async open(): Promise<HepCollector> {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    return new HepCollector(socket, socket.address().port);
  }

  close(): void {
    this.socket.close();
  }
}
