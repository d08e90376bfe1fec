import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Schemas } from '../../../src/client/index.js';
import { readAgents } from '../agents/read-agents.js';
import { TextField } from '../parts/form.js';
import { orgName, showsOrgs } from '../organizations.js';
import { PageHead, Show } from '../parts/page.js';
import { useLoaded } from '../polling.js';
import { ask } from '../session.js';
import { CheckDialog } from './check-dialog.js';
import { DetachDialog } from './detach-dialog.js';
import { NumberDialog, type AgentName } from './number-dialog.js';

export type NumberConfiguration = Schemas['SipConfiguration'];

const PAGE = 100;
const MOST_AT_ONCE = 1_000;
/** To choose from, and to be shown by their names. */
const MOST_AGENTS = 500;

type Open =
  | { readonly dialog: 'attach' }
  | { readonly dialog: 'edit' | 'detach' | 'check'; readonly number: NumberConfiguration }
  | { readonly dialog: 'check-any' }
  | null;

/** @param sought '' : all, as many pages of them as were asked for */
async function readNumbers(pages: number, sought: string): Promise<readonly NumberConfiguration[]> {
  if (sought !== '') return listOf((await ask((api) => api.GET('/sip', { params: { query: { inbound_id: sought } } }))).data);
  const all: NumberConfiguration[] = [];
  while (all.length < pages * PAGE) {
    const query = { take: Math.min(MOST_AT_ONCE, pages * PAGE - all.length), skip: all.length };
    const page = listOf((await ask((api) => api.GET('/sip', { params: { query } }))).data);
    all.push(...page);
    if (page.length < query.take) break;
  }
  return all;
}

function listOf(data: NumberConfiguration | readonly NumberConfiguration[] | null): readonly NumberConfiguration[] {
  return data === null ? [] : 'phone_number' in data ? [data] : data;
}

export function NumbersPage(): JSX.Element {
  const [pages, setPages] = useState(1);
  const [open, setOpen] = useState<Open>(null);
  const [sought, setSought] = useState('');
  const loaded = useLoaded(() => readNumbers(pages, sought), [pages, sought]);
  const agents: readonly AgentName[] = useLoaded(() => readAgents(MOST_AGENTS), []).value?.agents ?? [];
  const close = (): void => setOpen(null);
  const changed = (): void => {
    close();
    loaded.reload();
  };
  return (
    <>
      <PageHead title="Numbers">
        <button type="button" onClick={() => setOpen({ dialog: 'check-any' })}>
          Check a call
        </button>
        <button type="button" class="primary" onClick={() => setOpen({ dialog: 'attach' })}>
          Attach a number
        </button>
      </PageHead>
      <Find sought={sought} onFind={setSought} />
      <Show loaded={loaded}>
        {(numbers) => (
          <>
            <NumberTable numbers={numbers} agents={agents} isSearch={sought !== ''} onOpen={setOpen} />
            {sought === '' && numbers.length === pages * PAGE && (
              <button type="button" onClick={() => setPages(pages + 1)}>
                Show more
              </button>
            )}
          </>
        )}
      </Show>
      {open?.dialog === 'attach' && <NumberDialog number={null} agents={agents} onClose={close} onDone={changed} />}
      {open?.dialog === 'edit' && <NumberDialog number={open.number} agents={agents} onClose={close} onDone={changed} />}
      {open?.dialog === 'detach' && <DetachDialog number={open.number} onClose={close} onDone={changed} />}
      {open?.dialog === 'check' && <CheckDialog number={open.number.phone_number} onClose={close} />}
      {open?.dialog === 'check-any' && <CheckDialog number="" onClose={close} />}
    </>
  );
}

/** One number among many. */
function Find({ sought, onFind }: { readonly sought: string; readonly onFind: (number: string) => void }): JSX.Element {
  const text = useSignal(sought);
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        onFind(text.value.trim());
      }}
    >
      <TextField label="Find a number" value={text} type="tel" placeholder="+15551234567" />
      <div class="buttons">
        <button>Find</button>
        {sought !== '' && (
          <button
            type="button"
            onClick={() => {
              text.value = '';
              onFind('');
            }}
          >
            All numbers
          </button>
        )}
      </div>
    </form>
  );
}

interface TableProps {
  readonly numbers: readonly NumberConfiguration[];
  readonly agents: readonly AgentName[];
  readonly isSearch: boolean;
  readonly onOpen: (open: Open) => void;
}

function NumberTable({ numbers, agents, isSearch, onOpen }: TableProps): JSX.Element {
  if (numbers.length === 0) return <p class="card empty">{isSearch ? 'This number is not attached.' : 'No numbers yet.'}</p>;
  const answers = ({ agent_id: id, options }: NonNullable<NumberConfiguration['inbound']>): string => {
    if (options.voice_url !== undefined) return options.voice_url;
    return id === null ? "the operator's default agent" : (agents.find(({ agent_id: one }) => one === id)?.name ?? id);
  };
  return (
    <ul class="cards" aria-label="Numbers">
      {numbers.map((number) => (
        <li key={number.phone_number} class="card">
          <div>
            <h2>{number.phone_number}</h2>
            {showsOrgs.value && <p class="muted">{orgName(number.org_id)}</p>}
            <p>
              {number.inbound === null ? 'Not attached inbound.' : `Inbound to ${answers(number.inbound)}. ${limitsOf(number.inbound)}`}
              {number.outbound !== null && ` Outbound by ${number.outbound.sip_endpoint}${trunkStateText(number.outbound)}.`}
            </p>
          </div>
          <div class="buttons">
            {(['check', 'edit', 'detach'] as const).map((dialog) => (
              <button
                key={dialog}
                type="button"
                aria-label={`${NAMES[dialog]} ${number.phone_number}`}
                onClick={() => onOpen({ dialog, number })}
              >
                {NAMES[dialog]}
              </button>
            ))}
          </div>
        </li>
      ))}
    </ul>
  );
}

const NAMES = { check: 'Check', edit: 'Update', detach: 'Detach' } as const;

function trunkStateText({ trunk_state: state, trunk_error: error }: NonNullable<NumberConfiguration['outbound']>): string {
  if (state === undefined) return '';
  return state === 'up' ? ', which answers OPTIONS' : `, which is down: ${error ?? ''}`;
}

function limitsOf({ options }: NonNullable<NumberConfiguration['inbound']>): string {
  const { allowed_sources: sources, max_concurrent_calls: calls, max_calls_per_second: rate, media_encryption: encryption } = options;
  const parts = [
    sources.length === 0
      ? 'From any source'
      : `From ${sources.slice(0, 3).join(', ')}${sources.length > 3 ? ` and ${String(sources.length - 3)} more` : ''}`,
    ...(calls === null ? [] : [`at most ${String(calls)} at once`]),
    ...(rate === null ? [] : [`at most ${String(rate)} a second`]),
    encryption === 'required' ? 'SRTP required' : 'SRTP optional',
  ];
  return `${parts.join(', ')}.`;
}
