import { readFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { droppedDatagrams } from '../../lib/udp-table.js';

const CHECK_MS = 10_000;

/** Datagrams that Linux dropped because the receive buffers of these sockets were full; `null`: unknown. */
export async function readKernelDrops(address: string, rtpPorts: readonly number[]): Promise<number | null> {
  const sockets = rtpPorts.flatMap((port) => [
    { address, port },
    { address, port: port + 1 },
  ]);
  try {
    return droppedDatagrams(await readFile(isIPv6(address) ? '/proc/net/udp6' : '/proc/net/udp', 'utf8'), sockets);
  } catch {
    return null;
  }
}

/** Logs further drops, checked periodically. */
export class KernelDropWatch {
  #before = 0;
  #isDropping = false;
  #cancelTimer: CancelTimer | undefined;
  #isStopped = false;

  constructor(
    private readonly read: () => Promise<number | null>,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {
    this.#arm();
  }

  /** The last check found further drops. */
  get isDropping(): boolean {
    return this.#isDropping;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  #arm(): void {
    this.#cancelTimer = this.clock.setTimer(CHECK_MS, () => void this.#check());
  }

  async #check(): Promise<void> {
    const drops = await this.read();
    if (this.#isStopped) return;
    this.#isDropping = drops !== null && drops > this.#before;
    if (drops !== null && this.#isDropping) {
      const hint = 'the media workers are too busy, or net.core.rmem_max is too small';
      this.log.warn({ dropped: drops - this.#before, kernel_drops: drops, hint }, 'media.packets.dropped');
    }
    // Fewer than before: a worker was replaced, with its sockets.
    this.#before = drops ?? this.#before;
    this.#arm();
  }
}
