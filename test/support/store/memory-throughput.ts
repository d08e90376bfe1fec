import type { Throughput } from '../../../src/gateway/model/throughput.js';
import type { Clock } from '../../../src/lib/clock.js';
import type { ThroughputLog } from '../../../src/gateway/ports/stores.js';
import {
  intervalOf,
  intervalsUntil,
  oldestInterval,
  ThroughputCounts,
  type Counted,
} from '../../../src/gateway/store/redis/throughput/redis-throughput.js';

export class MemoryThroughput implements ThroughputLog {
  readonly #counts = new ThroughputCounts();

  constructor(
    private readonly clock: Clock,
    private readonly inProgress: (orgId: string) => number,
  ) {}

  count(orgId: string, kind: Counted): void {
    const nowMs = this.clock.wallMs();
    this.#counts.dropBefore(oldestInterval(nowMs));
    this.#counts.add({ orgId, kind, atMs: intervalOf(nowMs), calls: 1 });
  }

  read(orgId: string): Promise<Throughput> {
    const intervals = intervalsUntil(this.clock.wallMs(), (atMs, kind) => this.#counts.countOf(orgId, atMs, kind));
    return Promise.resolve({ inProgress: this.inProgress(orgId), intervals });
  }
}
