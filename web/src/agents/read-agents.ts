import type { Schemas } from '../../../src/client/index.js';
import { ask } from '../session.js';

type Agent = Schemas['Agent'];

const PAGE = 100;

export interface AgentPages {
  readonly agents: readonly Agent[];
  /** There are more behind them. */
  readonly isMore: boolean;
}

/** The oldest agents, `most` of them or a few more. */
export async function readAgents(most: number): Promise<AgentPages> {
  const agents: Agent[] = [];
  for (let before: string | null | undefined; before !== null;) {
    if (agents.length >= most) return { agents, isMore: true };
    const query = { limit: PAGE, ...(before === undefined ? {} : { before }) };
    const page = await ask((api) => api.GET('/v1/agents', { params: { query } }));
    agents.push(...page.agents);
    before = page.next;
  }
  return { agents, isMore: false };
}
