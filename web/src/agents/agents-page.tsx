import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Schemas } from '../../../src/client/index.js';
import { shorten } from '../format.js';
import { Confirm } from '../parts/dialog.js';
import { ifMatch } from '../parts/input.js';
import { orgName, showsOrgs } from '../organizations.js';
import { PageHead, Show } from '../parts/page.js';
import { useLoaded } from '../polling.js';
import { ask } from '../session.js';
import { AgentDialog } from './agent-dialog.js';
import { readAgents } from './read-agents.js';

type Agent = Schemas['Agent'];
type Open = { readonly dialog: 'edit'; readonly agent: Agent | null } | { readonly dialog: 'delete'; readonly agent: Agent } | null;

const SHOWN = 100;

export function AgentsPage(): JSX.Element {
  const [open, setOpen] = useState<Open>(null);
  const [most, setMost] = useState(SHOWN);
  const loaded = useLoaded(() => readAgents(most), [most]);
  const voices =
    useLoaded(async () => (await ask((api) => api.GET('/v1/voices'))).voices.filter(({ provider }) => provider === null), []).value ?? [];
  const tools = useLoaded(async () => (await ask((api) => api.GET('/v1/tools'))).tools, []).value ?? [];
  const changed = (): void => {
    setOpen(null);
    loaded.reload();
  };
  return (
    <>
      <PageHead title="Agents">
        <button type="button" class="primary" onClick={() => setOpen({ dialog: 'edit', agent: null })}>
          Create an agent
        </button>
      </PageHead>
      <Show loaded={loaded}>
        {({ agents, isMore }) =>
          agents.length === 0 ? (
            <p class="card empty">No agents yet. The operator's default agent answers numbers without one.</p>
          ) : (
            <>
              <ul class="cards" aria-label="Agents">
                {agents.map((agent) => (
                  <AgentCard key={agent.agent_id} agent={agent} onOpen={setOpen} />
                ))}
              </ul>
              {isMore && (
                <button type="button" onClick={() => setMost(most + SHOWN)}>
                  Show more
                </button>
              )}
            </>
          )
        }
      </Show>
      {open?.dialog === 'edit' && (
        <AgentDialog agent={open.agent} voices={voices} tools={tools} onClose={() => setOpen(null)} onDone={changed} />
      )}
      {open?.dialog === 'delete' && (
        <Confirm
          title={`Delete ${open.agent.name}?`}
          action="Delete"
          onClose={() => setOpen(null)}
          work={async () => {
            const params = { path: { agent_id: open.agent.agent_id }, header: ifMatch(open.agent) };
            await ask((api) => api.DELETE('/v1/agents/{agent_id}', { params }));
            changed();
          }}
        >
          <p>You cannot undo this. Calls in progress continue.</p>
        </Confirm>
      )}
    </>
  );
}

function AgentCard({ agent, onOpen }: { readonly agent: Agent; readonly onOpen: (open: Open) => void }): JSX.Element {
  const { stream, prompt, pathway_id: pathway, language, voice } = agent;
  const where = stream === null ? "operator's default" : stream === 'test-line' ? 'test line' : stream.url;
  return (
    <li class="card">
      <div>
        <h2>{agent.name}</h2>
        {showsOrgs.value && <p class="muted">{orgName(agent.org_id)}</p>}
        <p>
          {language}
          {voice === null ? '' : `, ${voice}`}, {where}
        </p>
        <p class="muted">{prompt === null ? (pathway === null ? '' : `Pathway ${pathway}`) : shorten(prompt, 160)}</p>
      </div>
      <div class="buttons">
        <button type="button" aria-label={`Edit ${agent.name}`} onClick={() => onOpen({ dialog: 'edit', agent })}>
          Edit
        </button>
        <button type="button" aria-label={`Delete ${agent.name}`} onClick={() => onOpen({ dialog: 'delete', agent })}>
          Delete
        </button>
      </div>
    </li>
  );
}
