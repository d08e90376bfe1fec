import { afterAll, afterEach, beforeAll } from 'vitest';
import type { RelayPool } from '../../src/gateway/relay/pool.js';
import { newEnd, type CallEnd } from './relayed-call.js';
import { RunningRtpengine } from './rtpengine.js';

/** A real rtpengine for the tests of a file, and the ends and calls of each of them, which end with it. */
export class RelaySite {
  #rtpengine: RunningRtpengine | undefined;
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

  async newEnd(isSecure: boolean): Promise<CallEnd> {
    const end = await newEnd(isSecure);
    this.#ends.push(end);
    return end;
  }

  async start(): Promise<void> {
    this.#rtpengine = await RunningRtpengine.start(100);
    this.#pool = this.#rtpengine.pool();
  }

  async endTest(): Promise<void> {
    await Promise.all(this.#relayIds.splice(0).map((id) => this.pool.delete(id)));
    for (const { peer } of this.#ends.splice(0)) await peer.close();
  }

  async stop(): Promise<void> {
    this.#pool?.close();
    await this.#rtpengine?.stop();
  }
}

export function withRelay(): RelaySite {
  const site = new RelaySite();
  beforeAll(() => site.start());
  afterEach(() => site.endTest());
  afterAll(() => site.stop());
  return site;
}
