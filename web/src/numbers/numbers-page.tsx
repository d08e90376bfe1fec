import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Schemas } from '../../../src/client/index.js';
import { PageHead, Show } from '../parts/page.js';
import { useLoaded } from '../polling.js';
import { ask } from '../session.js';
import { CheckDialog } from './check-dialog.js';
import { DetachDialog } from './detach-dialog.js';
import { NumberDialog, type AgentName } from './number-dialog.js';

export type NumberConfiguration = Schemas['SipConfiguration'];

const PAGE = 100;

type Open =
  | { readonly dialog: 'attach' }
  | { readonly dialog: 'edit' | 'detach' | 'check'; readonly number: NumberConfiguration }
  | { readonly dialog: 'check-any' }
  | null;

async function readNumbers(pages: number): Promise<readonly NumberConfiguration[]> {
  const { data } = await ask((api) => api.GET('/sip', { params: { query: { take: String(Math.min(1_000, pages * PAGE)), skip: '0' } } }));
  return Array.isArray(data) ? data : [];
}

async function readAgents(): Promise<readonly AgentName[]> {
  return (await ask((api) => api.GET('/v1/agents'))).agents;
}

export function NumbersPage(): JSX.Element {
  const [pages, setPages] = useState(1);
  const [open, setOpen] = useState<Open>(null);
  const loaded = useLoaded(() => readNumbers(pages), [pages]);
  const agents = useLoaded(readAgents, []).value ?? [];
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
      <Show loaded={loaded}>
        {(numbers) => (
          <>
            <NumberTable numbers={numbers} agents={agents} onOpen={setOpen} />
            {numbers.length === pages * PAGE && pages * PAGE < 1_000 && (
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

interface TableProps {
  readonly numbers: readonly NumberConfiguration[];
  readonly agents: readonly AgentName[];
  readonly onOpen: (open: Open) => void;
}

function NumberTable({ numbers, agents, onOpen }: TableProps): JSX.Element {
  if (numbers.length === 0) return <p class="card empty">No number is attached yet.</p>;
  const nameOf = (id: string | null): string =>
    id === null ? "the operator's default agent" : (agents.find(({ agent_id: one }) => one === id)?.name ?? id);
  return (
    <ul class="cards" aria-label="Numbers">
      {numbers.map((number) => (
        <li key={number.phone_number} class="card">
          <div>
            <h2>{number.phone_number}</h2>
            <p>
              {number.inbound === null
                ? 'Not attached inbound.'
                : `Inbound to ${nameOf(number.inbound.agent_id)}. ${limitsOf(number.inbound)}`}
              {number.outbound !== null && ` Outbound by ${number.outbound.sip_endpoint}.`}
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

function limitsOf({ options }: NonNullable<NumberConfiguration['inbound']>): string {
  const { allowed_sources: sources, max_concurrent_calls: calls, max_calls_per_second: rate, media_encryption: encryption } = options;
  const parts = [
    sources.length === 0
      ? 'From anywhere'
      : `From ${sources.slice(0, 3).join(', ')}${sources.length > 3 ? ` and ${String(sources.length - 3)} more` : ''}`,
    ...(calls === null ? [] : [`at most ${String(calls)} at once`]),
    ...(rate === null ? [] : [`at most ${String(rate)} a second`]),
    encryption === 'required' ? 'SRTP required' : 'SRTP optional',
  ];
  return `${parts.join(', ')}.`;
}
