import type { AddressedDelivery, DeadLetter, Delivery } from '../../../src/gateway/model/delivery.js';
import { isoNow, type Clock } from '../../../src/lib/clock.js';
import { recordMember } from '../../../src/gateway/ports/listing.js';
import { MAX_DEAD_LETTERS, outboxLane, type DeadLetterPage, type Outbox } from '../../../src/gateway/ports/stores.js';

interface Job {
  readonly delivery: Delivery;
  readonly dueMs: number;
}

export class MemoryOutbox implements Outbox {
  readonly #jobs = new Map<string, Job>();
  /** By organization, then by place in its order. */
  readonly #dead = new Map<string, Map<string, DeadLetter>>();

  constructor(private readonly clock: Clock) {}

  add(delivery: Delivery): Promise<void> {
    const { delivery_id: id } = delivery;
    if (!this.#jobs.has(id)) this.#jobs.set(id, { delivery, dueMs: this.clock.wallMs() });
    return Promise.resolve();
  }

  dueLanes(): Promise<readonly number[]> {
    const nowMs = this.clock.wallMs();
    const due = [...this.#jobs.values()].filter(({ dueMs }) => dueMs <= nowMs);
    return Promise.resolve([...new Set(due.map(({ delivery }) => outboxLane(delivery.org_id)))]);
  }

  claim(lane: number, limit: number, claimMs: number): Promise<readonly Delivery[]> {
    const nowMs = this.clock.wallMs();
    const due = [...this.#jobs.values()]
      .filter(({ dueMs, delivery }) => dueMs <= nowMs && outboxLane(delivery.org_id) === lane)
      .slice(0, limit);
    for (const { delivery } of due) this.#jobs.set(delivery.delivery_id, { delivery, dueMs: nowMs + claimMs });
    return Promise.resolve(due.map(({ delivery }) => delivery));
  }

  waiting(): Promise<number> {
    return Promise.resolve(this.#jobs.size);
  }

  settle({ delivery_id: id }: Delivery): Promise<void> {
    this.#jobs.delete(id);
    return Promise.resolve();
  }

  defer(delivery: Delivery, delayMs: number): Promise<void> {
    const { delivery_id: id } = delivery;
    if (this.#jobs.has(id)) this.#jobs.set(id, { delivery, dueMs: this.clock.wallMs() + delayMs });
    return Promise.resolve();
  }

  bury(delivery: AddressedDelivery): Promise<void> {
    const letter = { ...delivery, died_at: isoNow(this.clock) };
    const letters = this.#lettersOf(delivery.org_id);
    letters.set(recordMember(letter.died_at, delivery.delivery_id), letter);
    if (letters.size > MAX_DEAD_LETTERS) letters.delete([...letters.keys()].sort()[0] ?? '');
    return this.settle(delivery);
  }

  dead(orgId: string, limit: number, before: string | null): Promise<DeadLetterPage> {
    const found = [...this.#lettersOf(orgId)].filter(([member]) => before === null || member < before).sort(([a], [b]) => (a < b ? 1 : -1));
    const page = found.slice(0, limit);
    const next = found.length > limit ? (page.at(-1)?.[0] ?? null) : null;
    return Promise.resolve({ letters: page.map(([, letter]) => letter), next });
  }

  async revive(orgId: string, deliveryId: string): Promise<boolean> {
    const letters = this.#lettersOf(orgId);
    const found = [...letters].find(([, { delivery_id: id }]) => id === deliveryId);
    if (found === undefined) return false;
    const [member, { died_at: _diedAt, ...delivery }] = found;
    letters.delete(member);
    await this.add({ ...delivery, created_at: isoNow(this.clock), attempts: 0, last_error: null });
    return true;
  }

  #lettersOf(orgId: string): Map<string, DeadLetter> {
    const letters = this.#dead.get(orgId) ?? new Map<string, DeadLetter>();
    this.#dead.set(orgId, letters);
    return letters;
  }
}
