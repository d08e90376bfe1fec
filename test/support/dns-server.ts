import { createSocket, type Socket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';

const TYPES = { A: 1, AAAA: 28, SRV: 33 } as const;
type RecordType = keyof typeof TYPES;

/** `A name` → addresses; `SRV name` → `priority weight port target`. */
export type Zone = Readonly<Record<string, readonly string[]>>;

/** A small DNS server on 127.0.0.1 that serves a zone and remembers what it was asked. */
export class DnsServer {
  readonly asked: string[] = [];

  private constructor(
    private readonly socket: Socket,
    readonly zone: Zone,
    readonly ttl: number,
  ) {
    socket.on('message', (query, from) => socket.send(this.#answer(query), from.port, from.address));
  }

  static async start(zone: Zone, ttl = 60): Promise<DnsServer> {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    return new DnsServer(socket, zone, ttl);
  }

  get address(): string {
    return `127.0.0.1:${String(this.socket.address().port)}`;
  }

  /** One that asks this server and no other. */
  resolver(): Resolver {
    const resolver = new Resolver({ timeout: 500, tries: 1 });
    resolver.setServers([this.address]);
    return resolver;
  }

  close(): void {
    this.socket.close();
  }

  #answer(query: Buffer): Buffer {
    let at = 12;
    const labels: string[] = [];
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length));
      at += length + 1;
    }
    const code = query.readUInt16BE(at + 1);
    const question = query.subarray(12, at + 5);
    const type = (Object.keys(TYPES) as RecordType[]).find((name) => TYPES[name] === code) ?? 'A';
    const key = `${type} ${labels.join('.').toLowerCase()}`;
    this.asked.push(key);
    const records = (this.zone[key] ?? []).map((text) => this.#record(type, text));
    const head = Buffer.alloc(12);
    query.copy(head, 0, 0, 2);
    head.writeUInt16BE(0x8180, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(records.length, 6);
    return Buffer.concat([head, question, ...records]);
  }

  #record(type: RecordType, text: string): Buffer {
    const data = rdata(type, text);
    const fixed = Buffer.alloc(12);
    // The name of the question, by a pointer (RFC 1035 §4.1.4).
    fixed.writeUInt16BE(0xc00c, 0);
    fixed.writeUInt16BE(TYPES[type], 2);
    fixed.writeUInt16BE(1, 4);
    fixed.writeUInt32BE(this.ttl, 6);
    fixed.writeUInt16BE(data.length, 10);
    return Buffer.concat([fixed, data]);
  }
}

function rdata(type: RecordType, text: string): Buffer {
  if (type === 'A') return Buffer.from(text.split('.').map(Number));
  if (type === 'AAAA') return Buffer.concat([Buffer.alloc(15), Buffer.from([1])]);
  const [priority, weight, port, target = ''] = text.split(' ');
  const numbers = Buffer.alloc(6);
  [priority, weight, port].forEach((value, index) => numbers.writeUInt16BE(Number(value), 2 * index));
  const labels = target.split('.').filter((label) => label !== '');
  return Buffer.concat([
    numbers,
    ...labels.map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, 'latin1')),
    Buffer.of(0),
  ]);
}
