import type { FastifyRequest } from 'fastify';
import { DEFAULT_AGENT_SETTINGS, type AgentRecord } from '../model/agent-record.js';
import { settingProblems, settingWarnings, type AgentPolicy, type SettingNote } from './schemas/agent-rules.js';
import { agentSettingsOf, TOOL_ID, toolIdOf } from './schemas/agent-settings.js';
import { shownAgent, type AgentBody } from './schemas/agents-api.js';
import type { ApiErrorEntry } from './schemas/api-error.js';
import { err, ok, type Result } from '../../lib/result.js';
import { changedFields, namedTools, type AgentContent } from '../model/agent-update.js';
import { shownDynamicData } from '../model/dynamic-data.js';
import type { Stores } from '../ports/stores.js';
import { ApiFailure } from './failure.js';

// Maps bodies to agents, and changes back to answers.

export type BadFields = readonly ApiErrorEntry[];

/**
 * What is wrong with the body of a request by itself: what the schema found, and tools that the organization does not have.
 * @param before the agent that is changed: it may go on naming a tool that was deleted
 */
export async function badFieldsOf(
  request: Pick<FastifyRequest, 'body' | 'validationError'>,
  tools: Stores['tools'],
  orgId: string,
  before: AgentRecord | null = null,
): Promise<BadFields> {
  const invalid = request.validationError;
  const found = invalid instanceof ApiFailure ? invalid.envelope.errors : [];
  return [...found, ...(await unknownTools(request.body, tools, orgId, namedTools(before)))];
}

/** Tools that the agent names and that were deleted. */
export async function danglingTools(agent: AgentRecord, tools: Stores['tools']): Promise<SettingNote[]> {
  const named = namedTools(agent);
  const known = new Set((await tools.find(agent.org_id, named)).map(({ tool_id: id }) => id));
  return agent.tools.flatMap((tool, index) =>
    typeof tool !== 'string' || known.has(tool)
      ? []
      : [{ path: `tools[${String(index)}]`, message: 'is the id of a tool that was deleted: the agent continues without it' }],
  );
}

async function unknownTools(body: unknown, tools: Stores['tools'], orgId: string, held: readonly string[]): Promise<ApiErrorEntry[]> {
  const named: unknown = typeof body === 'object' && body !== null && 'tools' in body ? body.tools : undefined;
  if (!Array.isArray(named)) return [];
  const ids = named.map((tool: unknown) => (typeof tool === 'string' && TOOL_ID.test(tool) ? toolIdOf(tool) : null));
  const known = new Set((await tools.find(orgId, [...new Set(ids.filter((id) => id !== null))])).map(({ tool_id }) => tool_id));
  return ids.flatMap((id, index) =>
    id === null || known.has(id) || held.includes(id)
      ? []
      : [{ error: 'VALIDATION' as const, message: 'is not the id of a tool of yours', path: `tools[${index}]` }],
  );
}

/** A new agent as the body wants it. */
export function newAgent(name: string, body: AgentBody, policy: AgentPolicy): Result<AgentContent, BadFields> {
  return agentAfter({ ...DEFAULT_AGENT_SETTINGS, name }, body, policy, false);
}

/** The agent as the body wants it. One that had no prompt, for it had a pathway, need not get one when that is cleared. */
export function changedAgent(before: AgentRecord, body: AgentBody, policy: AgentPolicy): Result<AgentContent, BadFields> {
  const hadNone = before.prompt === null && (typeof before.stream !== 'object' || before.stream === null);
  return agentAfter(before, body, policy, hadNone && !Object.hasOwn(body, 'prompt'));
}

/** What is to be said of the change: of settings that the body named, and what was not so before. */
export function warningsOf(before: AgentRecord, after: AgentRecord, body: AgentBody, policy: AgentPolicy): SettingNote[] {
  const known = new Set(settingWarnings(before, policy).map(({ path, message }) => `${path} ${message}`));
  return settingWarnings(after, policy).filter(({ path, message }) => Object.hasOwn(body, path) || !known.has(`${path} ${message}`));
}

function agentAfter(before: AgentContent, body: AgentBody, policy: AgentPolicy, mayLackPrompt: boolean): Result<AgentContent, BadFields> {
  const { name = before.name, ...settings } = body;
  const after = { ...agentSettingsOf(before, settings), name: name.trim() };
  const problems = settingProblems(after, policy).filter(({ path }) => path !== 'prompt' || !mayLackPrompt);
  return problems.length === 0 ? ok(after) : err(problems.map((problem) => ({ error: 'VALIDATION', ...problem })));
}

/** The settings that the body names, as they are now, and those that changed beside them: a pathway reset them. */
export function updatesOf(before: AgentRecord, after: AgentRecord, body: AgentBody): Record<string, unknown> {
  const changed = changedFields(before, after);
  return Object.fromEntries(Object.entries(shownAgent(after)).filter(([name]) => Object.hasOwn(body, name) || changed.includes(name)));
}

/** The settings of a body that could not be updated, as they were given; one that is missing is null. Without `bad`: all of them. */
export function failedUpdates(body: unknown, bad?: BadFields): { readonly failed_updates: Readonly<Record<string, unknown>> } {
  const given = typeof body === 'object' && body !== null && !Array.isArray(body) ? (body as Readonly<Record<string, unknown>>) : {};
  const paths = bad?.flatMap(({ path }) => path ?? []);
  // A path has the beginning of a long name only.
  const isBad = (name: string): boolean => paths === undefined || paths.some((path) => startsWithName(path, name.slice(0, 64)));
  const failed = Object.entries(given).filter(([name]) => isBad(name));
  const missing = paths?.includes('prompt') === true && !Object.hasOwn(given, 'prompt') ? { prompt: null } : {};
  return { failed_updates: { ...missing, ...Object.fromEntries(failed.map(([name, value]) => [name, withoutSecrets(name, value)])) } };
}

function startsWithName(path: string, name: string): boolean {
  return path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[`);
}

/** Bearer tokens, keys and the headers of tools are never shown, not even to their sender. */
function withoutSecrets(name: string, value: unknown): unknown {
  if (name === 'stream') return without('bearer_token', value);
  if (name === 'provider') return without('api_key', value);
  if (name === 'dynamic_data') return shownDynamicData(value);
  return name === 'tools' && Array.isArray(value) ? value.map((tool) => without('headers', tool)) : value;
}

function without(field: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== field));
}
