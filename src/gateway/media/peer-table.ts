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
