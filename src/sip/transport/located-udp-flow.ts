import { isIP } from 'node:net';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import { defaultPort } from './service-location.js';
import type { Endpoint, Flow, FlowListener, Target } from './flow.js';
import type { UdpPeers } from './udp-listener.js';

/** Bounds the retransmissions queued during the lookup. */
const MAX_WAITING = 16;

/** A UDP peer given by name: queues messages until its address is known. */
export class LocatedUdpFlow implements Flow {
  readonly transport = 'UDP' as const;
  readonly reliable = false;
  #remote: Endpoint;
  #isLocated = false;
  #isOpen = true;
  #failure: string | null = null;
  readonly #waiting: string[] = [];

  constructor(
    target: Target,
    private readonly owner: UdpPeers,
    locate: (target: Target) => Promise<readonly Endpoint[]>,
    private readonly listener: FlowListener,
    log: Log,
  ) {
    this.#remote = { address: target.host, port: target.port ?? defaultPort('UDP') };
    const family = isIP(owner.local.address);
    locate(target)
      .then((endpoints) => {
        const endpoint = endpoints.find(({ address }) => isIP(address) === family);
        if (endpoint === undefined) throw new Error(`${target.host} has no IPv${family} address`);
        this.#located(endpoint);
      })
      .catch((error: unknown) => {
        this.#failure = `no server of ${target.host} was found: ${errorText(error)}`;
        log.warn({ host: target.host, transport: 'UDP', error: errorText(error) }, 'sip.locate.failed');
        this.close();
      });
  }

  get isOpen(): boolean {
    return this.#isOpen && this.owner.isOpen;
  }

  get failure(): string | null {
    return this.#failure;
  }

  get remote(): Endpoint {
    return this.#remote;
  }

  get local(): Endpoint {
    return this.owner.local;
  }

  send(text: string): void {
    if (this.#isLocated) this.owner.send(this.#remote, text);
    else if (this.#isOpen && this.#waiting.length < MAX_WAITING) this.#waiting.push(text);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.listener.onClose(this);
  }

  #located(endpoint: Endpoint): void {
    this.#remote = endpoint;
    this.#isLocated = true;
    for (const text of this.#waiting.splice(0)) this.owner.send(endpoint, text);
  }
}
