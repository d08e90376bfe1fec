import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { clockTime, count, duration, isoOfLocal, localOfIso, milliseconds } from '../format.js';
import { navigate, place, replaceSearch } from '../location.js';
import { failureOf } from '../parts/failure.js';
import { FailureNote, SelectField, TextField } from '../parts/form.js';
import { PageHead } from '../parts/page.js';
import { usePolling } from '../polling.js';
import { reasons } from '../reasons.js';
import { orgName, showsOrgs } from '../organizations.js';
import { callPath } from '../routes.js';
import { callers, rowsOf, type Call } from './call-list.js';
import { CallsStore } from './calls-store.js';
import { filtersOf, isFiltered, searchOf, type CallFilters } from './filters.js';
import { StatePill } from './state-pill.js';
import { VirtualList } from './virtual-list.js';

const POLL_MS = 2_000;
const ROW = 44;
const ROW_ON_PHONE = 62;
const COLUMNS = ['Began', 'From', 'To', 'State', 'Duration', 'Answered after'];
const ALL_COLUMNS = [...COLUMNS, 'Organization'];
const STATES = [
  ['all', 'All'],
  ['live', 'In progress'],
  ['ended', 'Ended'],
] as const;

export function CallsPage(): JSX.Element {
  const { search } = place.value;
  const filters = useMemo(() => filtersOf(search), [search]);
  const store = useMemo(() => new CallsStore(filters), [filters]);
  const refused = usePolling(() => store.poll(), POLL_MS, [store]);
  const isPhone = useMedia('(max-width: 700px)');
  const list = store.list.value;
  const rows = useMemo(() => rowsOf(list), [list]);
  const failure = refused === null ? null : failureOf(refused);
  return (
    <section class={showsOrgs.value ? 'calls with-org' : 'calls'}>
      <PageHead title="Calls">
        <p class="muted" role="status">
          {store.isLoaded.value ? `${count(list.live.length)} in progress, ${count(list.ended.length)} past calls loaded` : 'Loading…'}
        </p>
      </PageHead>
      <Search key={search} filters={filters} />
      <FailureNote failure={failure} />
      <VirtualList
        label="Calls"
        rows={rows}
        rowHeight={isPhone ? ROW_ON_PHONE : ROW}
        columns={showsOrgs.value ? ALL_COLUMNS : COLUMNS}
        keyOf={(call) => call.call_id}
        render={(call) => <CallCells call={call} />}
        onOpen={(call) => navigate(callPath(call.call_id))}
        onNearEnd={() => void store.readMore()}
        foot={footOf(store, rows.length, isFiltered(filters))}
      />
    </section>
  );
}

function footOf(store: CallsStore, rows: number, isSearch: boolean): string {
  if (!store.isLoaded.value) return '';
  if (store.list.value.next !== null) return 'Loading more…';
  if (rows > 0) return 'End of the list.';
  return isSearch ? 'No call matches.' : 'No calls yet. Attach a number and call it.';
}

function CallCells({ call }: { readonly call: Call }): JSX.Element {
  return (
    <>
      <span role="gridcell" class="began">
        <a href={callPath(call.call_id)} tabIndex={-1}>
          <time dateTime={call.started_at}>{clockTime(call.started_at, new Date())}</time>
        </a>
      </span>
      <span role="gridcell" class="from">
        {call.direction === 'outbound' && <abbr title="Placed by us">↗</abbr>} {callers(call)}
      </span>
      <span role="gridcell" class="to">
        {call.to}
      </span>
      <span role="gridcell" class="what">
        <StatePill call={call} />
      </span>
      <span role="gridcell" class="figure length">
        {lengthOf(call)}
      </span>
      <span role="gridcell" class="figure answered">
        {milliseconds(call.timings.answer_ms)}
      </span>
      {showsOrgs.value && (
        <span role="gridcell" class="org">
          {orgName(call.org_id)}
        </span>
      )}
    </>
  );
}

function lengthOf({ answered_at: answeredAt, ended_at: endedAt }: Call): string {
  if (answeredAt === null) return '–';
  return duration((endedAt === null ? Date.now() : Date.parse(endedAt)) - Date.parse(answeredAt));
}

function Search({ filters }: { readonly filters: CallFilters }): JSX.Element {
  const form = useRef<HTMLFormElement>(null);
  const to = useSignal(filters.phone_number);
  const from = useSignal(filters.from);
  const sipCallId = useSignal(filters.sip_call_id);
  const reason = useSignal(filters.reason);
  const state = useSignal<string>(filters.state);
  const since = useSignal(localOfIso(filters.since));
  const until = useSignal(localOfIso(filters.until));
  const [isOpen, setIsOpen] = useState(searchOf({ ...filters, phone_number: '', from: '' }) !== '');
  useSlash(form);
  const apply = (): void => {
    const wanted = {
      phone_number: to.value,
      from: from.value,
      sip_call_id: sipCallId.value,
      reason: reason.value,
      since: isoOfLocal(since.value),
      until: isoOfLocal(until.value),
    };
    replaceSearch(searchOf({ ...wanted, state: filtersOf(`state=${state.value}`).state }));
  };
  const codes = [...reasons.value.keys()].sort();
  return (
    <form
      ref={form}
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        apply();
      }}
    >
      <TextField label="Called number" value={to} type="tel" placeholder="+15551234567" />
      <TextField label="From" value={from} type="tel" placeholder="Number or user" />
      {isOpen && (
        <>
          <TextField label="SIP Call-ID" value={sipCallId} placeholder="As the carrier sent it" />
          <SelectField label="State" value={state} options={STATES} />
          <SelectField label="Reason" value={reason} options={[['', 'Any'], ...codes.map((code) => [code, code] as const)]} />
          <TextField label="Began at or after" value={since} type="datetime-local" />
          <TextField label="Began before" value={until} type="datetime-local" />
        </>
      )}
      <div class="buttons">
        <button class="primary">Search</button>
        <button type="button" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          {isOpen ? 'Fewer filters' : 'More filters'}
        </button>
        {isFiltered(filters) && (
          <button type="button" onClick={() => replaceSearch('')}>
            Clear
          </button>
        )}
      </div>
    </form>
  );
}

/** `/` leads to the search, as on many pages. */
function useSlash(form: { readonly current: HTMLFormElement | null }): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof Element && event.target.closest('input, textarea, select, dialog') !== null;
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      form.current?.querySelector('input')?.focus();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

function useMedia(query: string): boolean {
  const [isMet, setIsMet] = useState(matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const look = (): void => setIsMet(list.matches);
    list.addEventListener('change', look);
    return () => list.removeEventListener('change', look);
  }, [query]);
  return isMet;
}
