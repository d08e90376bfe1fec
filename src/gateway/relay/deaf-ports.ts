import type { CancelTimer, Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { socketKey, waitingBytes } from '../../lib/udp-table.js';
import type { RelayFigures } from '../model/media.js';
import type { RelayPort } from '../ports/ports.js';

/** A port is deaf for certain after three looks. */
const LOOK_MS = 400;

export interface DeafPortOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** `/proc/net/udp` and `/proc/net/udp6`; those that cannot be read are left out. */
  readonly readTables: () => Promise<readonly string[]>;
  /** Whether an address is one of this machine. */
  readonly isOwn: (address: string) => boolean;
  /** Whether any call is on an rtpengine of this machine. */
  readonly hasLocalCalls: () => boolean;
  /** The ports of the calls in progress on rtpengines of this machine. */
  readonly ports: () => readonly RelayPort[];
  /** What rtpengine has received of a call; `null`: it does not say. */
  readonly figures: (relayId: string) => Promise<RelayFigures | null>;
  readonly onDeaf: (port: RelayPort) => void;
}

/**
 * Finds ports that an rtpengine of this machine reads no more, which happens to rtpengine 10.5 after a burst of datagrams: it answers its
 * commands, but the caller is never heard again. Certain is what three looks find: the port's receive queue does not shrink, and rtpengine,
 * asked twice meanwhile, counts no further packet. Silence alone is no sign: then nothing waits.
 */
export class DeafPortWatch {
  /** Bytes that waited at the last look. */
  #before: ReadonlyMap<string, number> = new Map();
  /** Packets that rtpengine had counted at the last look, by call and side. */
  #counted: ReadonlyMap<string, number> = new Map();
  #cancelTimer: CancelTimer | undefined;
  #isStopped = false;

  constructor(private readonly options: DeafPortOptions) {
    this.#arm();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  #arm(): void {
    if (!this.#isStopped) this.#cancelTimer = this.options.clock.setTimer(LOOK_MS, () => void this.#look().finally(() => this.#arm()));
  }

  async #look(): Promise<void> {
    const waiting = this.options.hasLocalCalls() ? await this.#waiting() : new Map<string, number>();
    const stuck = new Map([...waiting].filter(([key, bytes]) => bytes >= (this.#before.get(key) ?? Infinity)));
    this.#before = waiting;
    const suspects = stuck.size === 0 ? [] : this.options.ports().filter((port) => this.#isAmong(stuck, port));
    const counts = await Promise.all(suspects.map(async (port) => [port, await this.#packets(port)] as const));
    const counted = new Map<string, number>();
    for (const [port, packets] of counts) {
      const name = `${port.relayId} ${port.side}`;
      if (packets === null || this.#isStopped) continue;
      if (this.#counted.get(name) === packets) this.#report(port, packets);
      else counted.set(name, packets);
    }
    this.#counted = counted;
  }

  async #waiting(): Promise<Map<string, number>> {
    const tables = await this.options.readTables();
    return new Map(tables.flatMap((table) => [...waitingBytes(table)]));
  }

  /** A public address that a NAT translates is bound nowhere: then the port alone decides. */
  #isAmong(stuck: ReadonlyMap<string, number>, { address, port }: RelayPort): boolean {
    const own = socketKey({ address, port });
    if (stuck.has(own)) return true;
    if (this.options.isOwn(address)) return false;
    const suffix = own.slice(own.indexOf(':'));
    // Names of one address family have one length.
    return [...stuck.keys()].some((key) => key.length === own.length && key.endsWith(suffix));
  }

  async #packets({ relayId, side }: RelayPort): Promise<number | null> {
    const figures = await this.options.figures(relayId).catch(() => null);
    return (side === 'carrier' ? figures?.fromCarrier : figures?.fromAgent)?.packets ?? null;
  }

  #report(port: RelayPort, packets: number): void {
    const { relayId, side, address, port: number } = port;
    const hint = 'rtpengine reads this port no more: docs/rtpengine.md, "A burst of datagrams"';
    this.options.log.warn({ call_id: relayId, side, address, port: number, packets, hint }, 'rtpengine.port.deaf');
    this.options.onDeaf(port);
  }
}
