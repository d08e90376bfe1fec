import type { GatewayBus } from '../../../src/gateway/ports/stores.js';

/** With stores in memory there is one gateway: it asks itself, or nobody. */
export class MemoryBus implements GatewayBus {
  #handler: ((body: unknown) => unknown) | undefined;

  request(_instance: string, body: unknown): Promise<unknown> {
    return Promise.resolve(this.#handler === undefined ? null : this.#handler(body));
  }

  onRequest(handler: (body: unknown) => unknown): void {
    this.#handler = handler;
  }
}
