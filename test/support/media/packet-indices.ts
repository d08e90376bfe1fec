import { createHmac } from 'node:crypto';
import { deriveKey } from './aes-cm.js';

const TAG_BYTES = 10;
/** Above the rollovers that a test can see. */
const MOST_ROLLOVERS = 8;

/** The packet indices that a sender has used under each of its keys and SSRCs, read by authentication alone: no replay list hides one. */
export class PacketIndices {
  readonly #keys = new Map<string, { readonly rtp: Buffer; readonly rtcp: Buffer }>();
  readonly #seen = new Set<string>();
  /** Those that came twice: RFC 3711 §9.1 forbids it. */
  readonly twice: string[] = [];

  /** @param inlineKey master key and salt, base64 */
  addKey(inlineKey: string): void {
    const master = Buffer.from(inlineKey, 'base64');
    this.#keys.set(inlineKey, { rtp: deriveKey(master, 1, 20), rtcp: deriveKey(master, 4, 20) });
  }

  get keys(): number {
    return this.#keys.size;
  }

  /** How many packets of each sort were read. */
  count(sort: 'rtp' | 'rtcp'): number {
    return [...this.#seen].filter((use) => use.startsWith(`${sort} `)).length;
  }

  onRtp(datagram: Buffer): void {
    for (const [key, { rtp }] of this.#keys) {
      for (let rollovers = 0; rollovers < MOST_ROLLOVERS; rollovers += 1) {
        const counter = Buffer.alloc(4);
        counter.writeUInt32BE(rollovers);
        if (!isTagged(datagram, rtp, counter)) continue;
        this.#take(`rtp ${key} ${String(datagram.readUInt32BE(8))} ${String(rollovers * 65_536 + datagram.readUInt16BE(2))}`);
        return;
      }
    }
  }

  onRtcp(datagram: Buffer): void {
    for (const [key, { rtcp }] of this.#keys) {
      if (!isTagged(datagram, rtcp)) continue;
      const index = datagram.readUInt32BE(datagram.length - TAG_BYTES - 4) & 0x7fff_ffff;
      this.#take(`rtcp ${key} ${String(datagram.readUInt32BE(4))} ${String(index)}`);
      return;
    }
  }

  #take(use: string): void {
    if (this.#seen.has(use)) this.twice.push(use);
    this.#seen.add(use);
  }
}

function isTagged(datagram: Buffer, key: Buffer, counter: Buffer = Buffer.alloc(0)): boolean {
  const end = datagram.length - TAG_BYTES;
  const tag = createHmac('sha1', key).update(datagram.subarray(0, end)).update(counter).digest();
  return tag.subarray(0, TAG_BYTES).equals(datagram.subarray(end));
}
