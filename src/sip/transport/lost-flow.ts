import type { Endpoint, Flow, TransportName } from './flow.js';

/** The way to a peer that an earlier process had. */
export class LostFlow implements Flow {
  readonly isOpen = false;
  readonly reliable: boolean;

  constructor(
    readonly transport: TransportName,
    readonly remote: Endpoint,
    readonly local: Endpoint,
  ) {
    this.reliable = transport !== 'UDP';
  }

  send(): void {
    // Nobody is there.
  }

  close(): void {
    // It is.
  }
}
