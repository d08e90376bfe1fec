import type { AgentRecord } from '../model/agent-record.js';
import { DYNAMIC_DATA_MS, dynamicRequests, fillTexts } from '../model/dynamic-data.js';
import type { Route } from '../model/records.js';
import { toolDefinition, type ToolDefinition } from '../model/tool-definition.js';
import { AgentUnavailableError, type ToolRunner } from '../ports/ports.js';
import type { Clock } from '../../lib/clock.js';

/** What requests may name: `{{input.from}}`. */
export interface PromptFacts {
  readonly from: string;
  readonly to: string;
  readonly call_id: string;
}

export interface PromptData {
  readonly route: Route;
  /** For a person: names of values, no values. */
  readonly warnings: readonly string[];
}

/**
 * The route with the agent's texts as this call needs them: the pathway's in place of the prompt, and fetched values in both. All requests
 * run at once, and take 2 s at most. Rejects with `AgentUnavailableError` when the pathway's text cannot be fetched.
 */
export async function withPromptData(
  route: Route,
  agent: AgentRecord,
  facts: PromptFacts,
  runner: ToolRunner,
  clock: Clock,
): Promise<PromptData> {
  const requests = dynamicRequests(agent.dynamic_data) ?? [];
  const pathway = pathwayRequest(route, agent);
  if (requests.length === 0 && pathway === null) return { route, warnings: [] };
  const { org_id: orgId } = route.org;
  const limit = new AbortController();
  const cancel = clock.setTimer(DYNAMIC_DATA_MS, () => limit.abort());
  try {
    const [text, ...answers] = await Promise.all([
      pathway === null ? null : fetched(runner, orgId, pathway, { pathway_id: agent.pathway_id }, limit.signal),
      ...requests.map((request) => fetched(runner, orgId, request, facts, limit.signal)),
    ]);
    if (pathway !== null && text === undefined) throw new AgentUnavailableError('the text of the pathway could not be fetched');
    const values = new Map<string, unknown>();
    requests.forEach(({ response }, index) => {
      const answer = (answers[index] ?? {}) as Readonly<Record<string, unknown>>;
      for (const name of Object.keys(response)) values.set(name, answer[name] ?? null);
    });
    const missing = [...values].filter(([, value]) => value === null).map(([name]) => name);
    const prompt = text === null || text === undefined ? agent.prompt : typeof text === 'string' ? text : JSON.stringify(text);
    return {
      route: { ...route, agent: fillTexts({ ...agent, prompt }, values) },
      warnings: missing.length === 0 ? [] : [`dynamic_data without a value: ${missing.join(', ')}`],
    };
  } finally {
    cancel();
  }
}

/** `undefined`: there is none. */
async function fetched(runner: ToolRunner, orgId: string, request: ToolDefinition, input: object, ended: AbortSignal): Promise<unknown> {
  const outcome = await runner.run(orgId, request, input, ended);
  return outcome.ok && outcome.value.httpStatus < 300 ? outcome.value.result : undefined;
}

/** `null`: there is no pathway, or the organization has no place for its texts. */
function pathwayRequest({ org }: Route, { pathway_id: id }: AgentRecord): ToolDefinition | null {
  if (id === null || org.pathway_url === null) return null;
  const headers = org.pathway_token === null ? {} : { authorization: `Bearer ${org.pathway_token}` };
  const url = org.pathway_url.replaceAll('{pathway_id}', '{{input.pathway_id}}');
  return toolDefinition.parse({ name: 'pathway', description: '', method: 'GET', url, headers, timeout: DYNAMIC_DATA_MS });
}
