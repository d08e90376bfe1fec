// What the list of calls is searched for, as it stands in the address of the page.

export interface CallFilters {
  readonly phone_number: string;
  readonly from: string;
  readonly sip_call_id: string;
  readonly reason: string;
  readonly state: 'all' | 'live' | 'ended';
  /** ISO 8601. */
  readonly since: string;
  readonly until: string;
}

const TEXTS = ['phone_number', 'from', 'sip_call_id', 'reason', 'since', 'until'] as const;

export function filtersOf(search: string): CallFilters {
  const query = new URLSearchParams(search);
  const text = (name: (typeof TEXTS)[number]): string => query.get(name) ?? '';
  const state = query.get('state');
  return {
    phone_number: text('phone_number'),
    from: text('from'),
    sip_call_id: text('sip_call_id'),
    reason: text('reason'),
    since: text('since'),
    until: text('until'),
    state: state === 'live' || state === 'ended' ? state : 'all',
  };
}

export function searchOf(filters: CallFilters): string {
  const query = new URLSearchParams();
  for (const name of TEXTS) if (filters[name].trim() !== '') query.set(name, filters[name].trim());
  if (filters.state !== 'all') query.set('state', filters.state);
  return query.toString();
}

/** What the API is asked for. */
export function queryOf(filters: CallFilters): Readonly<Record<string, string>> {
  return Object.fromEntries(TEXTS.filter((name) => filters[name] !== '').map((name) => [name, filters[name]]));
}

/** No call in progress has a reason. */
export function asksLive({ state, reason }: CallFilters): boolean {
  return state !== 'ended' && reason === '';
}

export function asksEnded({ state }: CallFilters): boolean {
  return state !== 'live';
}

export function isFiltered(filters: CallFilters): boolean {
  return searchOf(filters) !== '';
}
