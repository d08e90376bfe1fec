import { boundToProcess, currentProcess, type Possession } from './process.js';
import { later } from './time.js';

export interface From {
  readonly address: string;
  readonly port: number;
}

interface Bound extends Possession {
  readonly take: (datagrams: readonly Datagram[]) => void;
  readonly waiting: Datagram[];
}

interface Datagram {
  readonly bytes: Uint8Array;
  readonly from: From;
}

const FIRST_EPHEMERAL = 50_000;

/** Every datagram of a world stays in this process. All addresses are one host: the port alone decides. */
export class WorldDatagrams {
  readonly #bound = new Map<number, Bound>();
  #nextPort = FIRST_EPHEMERAL;
  #toLose = 0;

  /** As many of the next ones get lost. */
  lose(count: number): void {
    this.#toLose = count;
  }

  /** @param port 0: any @returns the port, and what ends it. Throws EADDRINUSE. */
  bind(port: number, onDatagrams: (datagrams: readonly Datagram[]) => void): { readonly port: number; readonly close: () => void } {
    const own = port === 0 ? (this.#nextPort += 1) : port;
    if (this.#bound.has(own)) throw Object.assign(new Error(`bind EADDRINUSE 127.0.0.1:${String(own)}`), { code: 'EADDRINUSE' });
    const owner = currentProcess();
    const close = (): void => {
      if (this.#bound.get(own) === bound) this.#bound.delete(own);
      owner?.closed(bound);
    };
    const bound: Bound = { take: boundToProcess(onDatagrams), waiting: [], cut: close };
    this.#bound.set(own, bound);
    owner?.opened(bound);
    return { port: own, close };
  }

  /** One to a port where nobody is disappears. */
  send(bytes: Uint8Array, from: From, to: number): void {
    if (currentProcess()?.isDead === true) return;
    const bound = this.#bound.get(to);
    if (bound === undefined) return;
    if (this.#toLose > 0) {
      this.#toLose -= 1;
      return;
    }
    // A copy, which `slice` of a Buffer is not.
    bound.waiting.push({ bytes: new Uint8Array(bytes), from });
    if (bound.waiting.length > 1) return;
    later(() => {
      const datagrams = bound.waiting.splice(0);
      if (this.#bound.get(to) === bound) bound.take(datagrams);
    });
  }
}

let datagrams: WorldDatagrams | null = null;

export function worldDatagrams(): WorldDatagrams {
  datagrams ??= new WorldDatagrams();
  return datagrams;
}

export function closeDatagrams(): void {
  datagrams = null;
}

const BATCH = 32;

/** In place of the native addon's socket: src/srtp/udp-socket.ts says what it does. */
export class WorldUdpSocket {
  readonly #peers = new Map<string, number>();
  readonly #addresses = new Map<number, From>();
  readonly #bound: { readonly port: number; readonly close: () => void };
  #nextPeer = 0;
  #strangers = 0;

  constructor(
    private readonly address: string,
    port: number,
    private readonly slots: Uint8Array,
    private readonly table: Int32Array,
    private readonly onDatagrams: (count: number) => void,
  ) {
    this.#bound = worldDatagrams().bind(port, (given) => this.#take(given));
  }

  findPeer(address: string, port: number): number {
    return this.#peers.get(`${address} ${String(port)}`) ?? -1;
  }

  addPeer(address: string, port: number): number {
    const key = `${address} ${String(port)}`;
    if (this.#peers.has(key)) return -1;
    const peer = (this.#nextPeer += 1);
    this.#peers.set(key, peer);
    this.#addresses.set(peer, { address, port });
    return peer;
  }

  removePeer(peer: number): void {
    const at = this.#addresses.get(peer);
    this.#addresses.delete(peer);
    if (at !== undefined) this.#peers.delete(`${at.address} ${String(at.port)}`);
  }

  send(peer: number, buffer: Uint8Array, lengthBytes: number): void {
    const to = this.#addresses.get(peer);
    const from = { address: this.address === '0.0.0.0' ? '127.0.0.1' : this.address, port: this.#bound.port };
    if (to !== undefined) worldDatagrams().send(buffer.subarray(0, lengthBytes), from, to.port);
  }

  growReceiveBuffer(bytes: number): number {
    return 2 * bytes;
  }

  counters(): [strangers: number, sendErrors: number] {
    return [this.#strangers, 0];
  }

  close(): void {
    this.#bound.close();
  }

  #take(datagrams: readonly Datagram[]): void {
    const slotBytes = this.slots.length / BATCH;
    let count = 0;
    const flush = (): void => {
      if (count > 0) this.onDatagrams(count);
      count = 0;
    };
    for (const { bytes, from } of datagrams) {
      const peer = this.findPeer(from.address, from.port);
      if (peer < 0) {
        this.#strangers += 1;
        continue;
      }
      const length = bytes.length > slotBytes ? 0 : bytes.length;
      this.slots.set(bytes.subarray(0, length), count * slotBytes);
      this.table.set([count, length, peer], 3 * count);
      count += 1;
      if (count === BATCH) flush();
    }
    flush();
  }
}
