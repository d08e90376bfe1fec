import { loadAddon } from './addon.js';

interface NativeSocket {
  findPeer(address: string, port: number): number;
  addPeer(address: string, port: number): number;
  removePeer(peer: number): void;
  send(peer: number, buffer: Uint8Array, lengthBytes: number): void;
  growReceiveBuffer(bytes: number): number;
  counters(): [strangers: number, sendErrors: number];
  close(): void;
}

interface UdpAddon {
  readonly UdpSocket: new (
    address: string,
    port: number,
    slots: Uint8Array,
    table: Int32Array,
    onDatagrams: (count: number) => void,
  ) => NativeSocket;
}

// The value of native/udp-socket.cc.
const BATCH = 32;

/** Longer than any packet of RTP or RTCP: no Ethernet frame carries more. */
const PACKET_BYTES = 2_048;
/** The most that a UDP datagram over IPv4 carries. */
export const LONGEST_BYTES = 65_507;

/** Where datagrams of up to this length arrive: one batch at a time, of whichever socket of the thread. */
class Slots {
  readonly bytes: Uint8Array;
  /** The datagram in each slot. Most are as long as the one before. */
  readonly #datagrams: Uint8Array[];

  constructor(readonly slotBytes: number) {
    this.bytes = new Uint8Array(BATCH * slotBytes);
    this.#datagrams = Array.from({ length: BATCH }, (_, slot) => this.#cut(slot, 0));
  }

  datagram(slot: number, lengthBytes: number): Uint8Array {
    const last = this.#datagrams[slot];
    return last?.length === lengthBytes ? last : (this.#datagrams[slot] = this.#cut(slot, lengthBytes));
  }

  #cut(slot: number, lengthBytes: number): Uint8Array {
    return this.bytes.subarray(slot * this.slotBytes, slot * this.slotBytes + lengthBytes);
  }
}

const SLOTS = new Map<number, Slots>();
const TABLE = new Int32Array(3 * BATCH);

function slotsOf(maxBytes: number): Slots {
  const known = SLOTS.get(maxBytes);
  if (known !== undefined) return known;
  const slots = new Slots(maxBytes);
  SLOTS.set(maxBytes, slots);
  return slots;
}

/** @param peer a number of `addPeer` @param datagram for the time of the call only, and may be changed; empty if it was too long */
export type OnDatagram = (peer: number, datagram: Uint8Array) => void;

/**
 * A UDP socket that exchanges datagrams with known peers only, many of them a system call. The packets that were sent in one turn of the
 * event loop leave together at its end.
 */
export class UdpSocket {
  readonly #native: NativeSocket;

  /**
   * @param address a literal one
   * @param port 0: any
   * @param maxBytes longest datagram
   * @throws the system's error, with its `code`, if the port cannot be bound
   */
  constructor(
    address: string,
    readonly port: number,
    onDatagram: OnDatagram,
    maxBytes = PACKET_BYTES,
  ) {
    const slots = slotsOf(maxBytes);
    const take = (count: number): void => {
      for (let i = 0; i < count; i += 1) {
        onDatagram(TABLE[3 * i + 2] ?? -1, slots.datagram(TABLE[3 * i] ?? 0, TABLE[3 * i + 1] ?? 0));
      }
    };
    this.#native = new (loadAddon() as UdpAddon).UdpSocket(address, port, slots.bytes, TABLE, take);
  }

  /** The number of the peer with this address and port; -1: there is none. */
  findPeer(address: string, port: number): number {
    return this.#native.findPeer(address, port);
  }

  /** The peer's number, until it is removed; -1: the address and port are another peer's already. */
  addPeer(address: string, port: number): number {
    return this.#native.addPeer(address, port);
  }

  removePeer(peer: number): void {
    this.#native.removePeer(peer);
  }

  /** Copies the datagram, of at most `maxBytes`. One that the system does not take is dropped and counted. */
  send(peer: number, buffer: Uint8Array, lengthBytes: number): void {
    this.#native.send(peer, buffer, lengthBytes);
  }

  /** Requests a receive buffer; returns the bytes granted, as the system reports them: on Linux twice what packets get. */
  growReceiveBuffer(bytes: number): number {
    return this.#native.growReceiveBuffer(bytes);
  }

  /** Datagrams of unknown senders. */
  get strangers(): number {
    return this.#native.counters()[0];
  }

  /** Packets that the system did not take. */
  get sendErrors(): number {
    return this.#native.counters()[1];
  }

  /** After what was sent before. */
  close(): void {
    this.#native.close();
  }
}
