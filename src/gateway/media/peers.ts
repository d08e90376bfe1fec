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
  /** In the order in which their calls ended. */
  readonly #peers: RestingPeer[] = [];
  readonly #byPort = new Map<number, RestingPeer[]>();

  /** Adds the peer of an ended call. */
  add(callId: string, address: string, port: number, ssrc: number | undefined, nowMs: number): void {
    this.#forget(nowMs);
    const peer = { callId, address, port, ssrc, untilMs: nowMs + REST_MS };
    this.#peers.push(peer);
    const samePort = this.#byPort.get(port);
    if (samePort === undefined) this.#byPort.set(port, [peer]);
    else samePort.push(peer);
  }

  has(address: string, port: number, nowMs: number): boolean {
    this.#forget(nowMs);
    return this.#byPort.get(port)?.some((peer) => peer.address === address) ?? false;
  }

  /** SSRCs of other calls from there, which this call must ignore. */
  sources(callId: string, address: string, port: number, nowMs: number): ShunnedSource[] {
    this.#forget(nowMs);
    return (this.#byPort.get(port) ?? []).flatMap((peer) =>
      peer.callId !== callId && peer.address === address && peer.ssrc !== undefined ? [{ ssrc: peer.ssrc, untilMs: peer.untilMs }] : [],
    );
  }

  #forget(nowMs: number): void {
    for (let [oldest] = this.#peers; oldest !== undefined && oldest.untilMs <= nowMs; [oldest] = this.#peers) {
      this.#peers.shift();
      const samePort = this.#byPort.get(oldest.port);
      samePort?.shift();
      if (samePort?.length === 0) this.#byPort.delete(oldest.port);
    }
  }
}
