import type { CallAnswer, CallInProgress } from '../../../src/gateway/model/live-calls.js';
import { readPage } from '../../../src/gateway/store/redis/call-page.js';
import { liveMemberOf } from '../../../src/gateway/ports/listing.js';
import type { LocalCallRegistry } from '../../../src/gateway/store/redis/leases/leases.js';
import type { CallPage, CallQuery, LiveCallLog } from '../../../src/gateway/ports/stores.js';

/** The calls in progress of this process, which is the only one. */
export class MemoryLiveCalls implements LiveCallLog {
  readonly #own: LocalCallRegistry;
  readonly #answerOf: (callId: string) => CallAnswer | null;

  constructor(own: LocalCallRegistry, answerOf: (callId: string) => CallAnswer | null) {
    this.#own = own;
    this.#answerOf = answerOf;
  }

  get(orgId: string, callId: string): Promise<CallInProgress | null> {
    return Promise.resolve(this.#of(orgId).find((call) => call.call_id === callId) ?? null);
  }

  /** Here a record is written at once. */
  ending(): Promise<null> {
    return Promise.resolve(null);
  }

  list(orgId: string, query: CallQuery): Promise<CallPage<CallInProgress>> {
    return readPage(query, ({ from, to }, count) => {
      const entries = this.#of(orgId)
        .map((record) => ({ member: liveMemberOf(record), record, bytes: 0 }))
        .filter(({ member }) => member >= from && (to === null || member < to))
        .sort((a, b) => (a.member < b.member ? 1 : -1));
      return Promise.resolve(entries.slice(0, count));
    });
  }

  #of(orgId: string): CallInProgress[] {
    return [...this.#own.all.values()]
      .filter((counted) => counted.orgId === orgId)
      .map(({ call, number }) => ({ ...call, org_id: orgId, to: number, gateway: 'memory', answer: this.#answerOf(call.call_id) }));
  }
}
