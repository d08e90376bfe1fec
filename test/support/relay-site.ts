import { afterAll, afterEach, beforeAll } from 'vitest';
import type { RelayPool } from '../../src/gateway/relay/pool.js';
import type { RtpengineNode } from '../../src/gateway/relay/node.js';
import { CallEnd, type CallEndOptions } from './media/call-end.js';

/** An rtpengine, real or played. */
export interface StartedRtpengine {
  /** A pool of this one alone. */
  pool(): RelayPool;
  node(): RtpengineNode;
  stop(): Promise<void>;
}

/** An rtpengine for the tests of a file, and the ends and calls of each of them, which end with it. */
export class RelaySite {
  #rtpengine: StartedRtpengine | undefined;
  #pool: RelayPool | undefined;
  #serial = 0;
  readonly #ends: CallEnd[] = [];
  readonly #relayIds: string[] = [];

  get pool(): RelayPool {
    if (this.#pool === undefined) throw new Error('rtpengine does not run');
    return this.#pool;
  }

  /** Of a call that is deleted after the test. */
  newRelayId(): string {
    const id = `call-${String((this.#serial += 1))}`;
    this.#relayIds.push(id);
    return id;
  }

  /** @param options of one that is encrypted */
  async newEnd(isSecure: boolean, options: CallEndOptions = {}): Promise<CallEnd> {
    const end = await CallEnd.open(isSecure ? options : { key: null });
    this.#ends.push(end);
    return end;
  }

  node(): RtpengineNode {
    if (this.#rtpengine === undefined) throw new Error('rtpengine does not run');
    return this.#rtpengine.node();
  }

  async start(starter: () => Promise<StartedRtpengine>): Promise<void> {
    this.#rtpengine = await starter();
    this.#pool = this.#rtpengine.pool();
  }

  async endTest(): Promise<void> {
    await Promise.all(this.#relayIds.splice(0).map((id) => this.pool.delete(id)));
    for (const end of this.#ends.splice(0)) await end.close();
  }

  async stop(): Promise<void> {
    this.#pool?.close();
    await this.#rtpengine?.stop();
  }
}

export function withRelay(starter: () => Promise<StartedRtpengine>): RelaySite {
  const site = new RelaySite();
  beforeAll(() => site.start(starter));
  afterEach(() => site.endTest());
  afterAll(() => site.stop());
  return site;
}
