import { signal } from '@preact/signals';
import type { paths } from '../../../src/client/index.js';
import { asApiError } from '../polling.js';
import { ask } from '../session.js';
import { endedMeanwhile, NO_CALLS, withEnded, withHead, withLive, withPage, type Call, type CallPage } from './call-list.js';
import { asksEnded, asksLive, queryOf, type CallFilters } from './filters.js';

const HEAD = '50';
const PAGE = '500';
/** Most calls just ended that are fetched one by one; the pages bring the others. */
const MAX_READ = 20;

type CallsQuery = NonNullable<paths['/v1/calls']['get']['parameters']['query']>;

/** The list of calls under one search: polled at its head, read further when somebody scrolls. At most one request of each at a time. */
export class CallsStore {
  readonly list = signal(NO_CALLS);
  readonly isReading = signal(false);
  /** The first answer is here. */
  readonly isLoaded = signal(false);

  constructor(private readonly filters: CallFilters) {}

  async poll(): Promise<void> {
    const live = asksLive(this.filters) ? await this.#page({ state: 'live', limit: PAGE }) : { calls: [], next: null };
    const ended = endedMeanwhile(this.list.peek(), live);
    if (asksEnded(this.filters)) {
      const head = await this.#page({ state: 'ended', limit: HEAD });
      this.list.value = withHead(this.list.peek(), head);
    } else if (this.list.peek().next === undefined) this.list.value = { ...this.list.peek(), next: null };
    this.list.value = withLive(this.list.peek(), live.calls);
    this.isLoaded.value = true;
    if (asksEnded(this.filters)) await this.#readEnded(ended);
  }

  /** The page behind the last one; what fails is tried again by the next scrolling. */
  async readMore(): Promise<void> {
    const { next } = this.list.peek();
    if (this.isReading.peek() || next === null || next === undefined) return;
    this.isReading.value = true;
    try {
      const page = await this.#page({ state: 'ended', limit: PAGE, before: next });
      // The list may have begun anew meanwhile.
      if (this.list.peek().next === next) this.list.value = withPage(this.list.peek(), page);
    } catch (error) {
      // Told by the polling, which meets the same.
      asApiError(error);
    }
    this.isReading.value = false;
  }

  /** Long calls began long ago: they are not in the newest page. */
  async #readEnded(ids: readonly string[]): Promise<void> {
    const known = new Set(this.list.peek().ended.map(({ call_id: id }) => id));
    for (const call_id of ids.filter((id) => !known.has(id)).slice(0, MAX_READ)) {
      const call = await ask((api) => api.GET('/v1/calls/{call_id}', { params: { path: { call_id } } })).then(
        (answer): Call => answer.call,
        () => null,
      );
      if (call?.state === 'ended' && this.#isAskedFor(call)) this.list.value = withEnded(this.list.peek(), [call]);
    }
  }

  /** It was listed under the filters when it was live; only its reason is new. */
  #isAskedFor({ reason }: Call): boolean {
    return this.filters.reason === '' || this.filters.reason === reason;
  }

  #page(more: Readonly<Record<string, string>>): Promise<CallPage> {
    // A reason that is none is refused by the API, with a sentence.
    const query = { ...queryOf(this.filters), ...more } as CallsQuery;
    return ask((api) => api.GET('/v1/calls', { params: { query } }));
  }
}
