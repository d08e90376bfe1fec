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

// The values of native/udp-socket.cc.
const SLOT_BYTES = 2_048;
const BATCH = 32;

/** One batch at a time, of whichever socket of the thread. */
const SLOTS = new Uint8Array(BATCH * SLOT_BYTES);
/** The datagram in each slot. Most are as long as the one before. */
const DATAGRAMS = Array.from({ length: BATCH }, (_, slot) => datagramIn(slot, 0));
const TABLE = new Int32Array(3 * BATCH);

function datagramIn(slot: number, lengthBytes: number): Uint8Array {
  return SLOTS.subarray(slot * SLOT_BYTES, slot * SLOT_BYTES + lengthBytes);
}

/** @param peer a number of `addPeer` @param datagram for the time of the call only, and may be changed; empty if it was longer than 2,048 bytes */
export type OnDatagram = (peer: number, datagram: Uint8Array) => void;

/**
 * A UDP socket that exchanges datagrams with known peers only, many of them a system call. The packets that were sent in one turn of the
 * event loop leave together at its end.
 */
export class UdpSocket {
  readonly #native: NativeSocket;

  /**
   * @param address a literal one
   * @throws the system's error, with its `code`, if the port cannot be bound
   */
  constructor(
    address: string,
    readonly port: number,
    onDatagram: OnDatagram,
  ) {
    const take = (count: number): void => {
      for (let i = 0; i < count; i += 1) {
        const slot = TABLE[3 * i] ?? 0;
        const lengthBytes = TABLE[3 * i + 1] ?? 0;
        const last = DATAGRAMS[slot];
        const datagram = last?.length === lengthBytes ? last : (DATAGRAMS[slot] = datagramIn(slot, lengthBytes));
        onDatagram(TABLE[3 * i + 2] ?? -1, datagram);
      }
    };
    this.#native = new (loadAddon() as UdpAddon).UdpSocket(address, port, SLOTS, TABLE, take);
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

  /** Copies the packet, of at most 2,048 bytes. One that the system does not take is dropped and counted. */
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
