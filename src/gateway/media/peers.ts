/** Values by a peer's address and port; a look-up allocates no key per packet. */
export class PeerTable<T> {
  readonly #byPort = new Map<number, { readonly address: string; readonly value: T }[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  find(address: string, port: number): T | undefined {
    const peers = this.#byPort.get(port);
    if (peers === undefined) return undefined;
    for (const peer of peers) if (peer.address === address) return peer.value;
    return undefined;
  }

  /** False if the peer is present already. */
  add(address: string, port: number, value: T): boolean {
    if (this.find(address, port) !== undefined) return false;
    const peers = this.#byPort.get(port);
    if (peers === undefined) this.#byPort.set(port, [{ address, value }]);
    else peers.push({ address, value });
    this.#size += 1;
    return true;
  }

  remove(address: string, port: number): void {
    const peers = this.#byPort.get(port);
    const index = peers?.findIndex((peer) => peer.address === address) ?? -1;
    if (peers === undefined || index < 0) return;
    peers.splice(index, 1);
    if (peers.length === 0) this.#byPort.delete(port);
    this.#size -= 1;
  }
}

/** After a call, packets still in flight must not reach the next call of the same peer on the same sockets. */
const REST_MS = 2_000;

interface RestingPeer {
  readonly callId: string;
  readonly address: string;
  readonly port: number;
  /** SSRC of the call's RTP; `undefined`: none arrived. */
  readonly ssrc: number | undefined;
  readonly untilMs: number;
}

/** A source to ignore until a time. */
export interface ShunnedSource {
  readonly ssrc: number;
  readonly untilMs: number;
}

/** Recent peers of a pair of sockets. */
export class RestingPeers {
  readonly #peers: RestingPeer[] = [];

  /** Adds the peer of an ended call. */
  add(callId: string, address: string, port: number, ssrc: number | undefined, nowMs: number): void {
    this.#forget(nowMs);
    this.#peers.push({ callId, address, port, ssrc, untilMs: nowMs + REST_MS });
  }

  has(address: string, port: number, nowMs: number): boolean {
    this.#forget(nowMs);
    return this.#peers.some((peer) => peer.address === address && peer.port === port);
  }

  /** SSRCs of other calls from there, which this call must ignore. */
  sources(callId: string, address: string, port: number, nowMs: number): ShunnedSource[] {
    this.#forget(nowMs);
    return this.#peers.flatMap((peer) =>
      peer.callId !== callId && peer.address === address && peer.port === port && peer.ssrc !== undefined
        ? [{ ssrc: peer.ssrc, untilMs: peer.untilMs }]
        : [],
    );
  }

  #forget(nowMs: number): void {
    while (this.#peers[0] !== undefined && this.#peers[0].untilMs <= nowMs) this.#peers.shift();
  }
}
