import type { RouteContext, ZodApp } from '../context.js';
import { z } from 'zod';
import type { AgentRecord } from '../../model/agent-record.js';
import { settingWarnings, type AgentPolicy } from '../schemas/agent-rules.js';
import {
  agentAnswerSchema,
  agentBodySchemas,
  agentUpdatedSchema,
  failedUpdateSchema,
  shownAgent,
  shownAgentSchema,
  type AgentBody,
} from '../schemas/agents-api.js';
import { uuidParam, DEFAULT_PAGE_LIMIT, nextCursor, orgQuery, pageQueryOf } from '../schemas/page-query.js';
import { isoNow } from '../../../lib/clock.js';
import { newUuid } from '../../../lib/ids.js';
import { changedFields, type RecordRefusal } from '../../model/agent-update.js';
import { deleteAgent, type InUse } from '../naming.js';
import { MAX_AGENTS } from '../../ports/stores.js';
import { exampleOf, failureAnswers, fieldsAnswer, messageAnswer, recordAnswer } from '../answers.js';
import {
  badFieldsOf,
  changedAgent,
  danglingTools,
  failedUpdates,
  newAgent,
  updatesOf,
  warningsOf,
  type BadFields,
} from '../agent-mapper.js';
import { identityOf, scopeOf } from '../auth.js';
import { beforeOf, nextOf } from '../cursor.js';
import { ApiFailure, validationFailure } from '../failure.js';
import { changeHeaders, ifMatchOf, preconditionFailed, setEtag } from '../revisions.js';

const DEFAULT_NAME = 'Agent';
const tags = ['Agents'];
const params = z.object({
  agent_id: uuidParam('The id of the agent', '4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11'),
});

/** POST, GET and DELETE /v1/agents. Registered behind authentication. */
export function agentRoutes(app: ZodApp, { stores, reads, agentPolicy: policy, clock, note }: RouteContext): void {
  const bodies = agentBodySchemas(policy);
  const policyOf = async (orgId: string): Promise<AgentPolicy> => ({
    ...policy,
    hasPathways: ((await stores.orgs.get(orgId))?.pathway_url ?? null) !== null,
  });
  const answerOf = async (agent: AgentRecord, message: string) => ({
    status: 'success' as const,
    message,
    agent: shownAgent(agent),
    warnings: [...settingWarnings(agent, await policyOf(agent.org_id)), ...(await danglingTools(agent, stores.tools))],
  });

  app.post('/v1/agents', {
    // The handler names unknown tools together with the other bad fields.
    attachValidation: true,
    config: { failures: ['LIMIT_REACHED'] },
    schema: {
      operationId: 'createAgent',
      tags,
      summary: 'Create an agent',
      description: 'Requires a `prompt`, a `pathway_id` or a `stream`. Omitted settings get their defaults.',
      body: bodies.create,
      response: { 200: recordAnswer('The agent', agentAnswerSchema) },
    },
    handler: async (request, reply) => {
      const { orgId } = identityOf(request);
      const bad = await badFieldsOf(request, stores.tools, orgId);
      if (bad.length > 0) throw validationFailure(bad);
      const content = newAgent(DEFAULT_NAME, request.body, policy);
      if (!content.ok) throw validationFailure(content.error);
      if ((await stores.agents.count(orgId)) >= MAX_AGENTS)
        throw new ApiFailure('LIMIT_REACHED', `An organization has at most ${String(MAX_AGENTS)} agents`);
      const now = isoNow(clock);
      const agent: AgentRecord = { ...content.value, agent_id: newUuid(), org_id: orgId, created_at: now, updated_at: now };
      await stores.agents.put(agent);
      await note(request, 'agent.create', agent.agent_id, Object.keys(request.body));
      setEtag(reply, agent);
      return answerOf(agent, `Agent ${titleOf(agent)} made`);
    },
  });

  app.get('/v1/agents', {
    schema: {
      operationId: 'listAgents',
      tags,
      summary: 'List the agents',
      description: 'Oldest first, in pages.',
      querystring: z.strictObject(pageQueryOf('agents')),
      response: {
        200: fieldsAnswer(
          'A page of agents',
          { agents: z.array(shownAgentSchema).readonly(), next: nextCursor },
          { agents: [exampleOf(shownAgentSchema)], next: null },
        ),
      },
    },
    handler: async (request) => {
      const { limit, before } = request.query;
      const query = { limit: Number(limit ?? DEFAULT_PAGE_LIMIT), ...beforeOf('agents', before) };
      const { records, next } = await reads.agents(scopeOf(request), query);
      return { status: 'success' as const, agents: records.map(shownAgent), next: nextOf('agents', next) };
    },
  });

  app.get('/v1/agents/:agent_id', {
    config: { failures: ['NOT_FOUND'] },
    schema: {
      operationId: 'getAgent',
      tags,
      summary: 'Read one agent',
      description: 'Returns all settings; those never set have their defaults.',
      params,
      querystring: z.strictObject(orgQuery),
      response: { 200: recordAnswer('The agent', agentAnswerSchema) },
    },
    handler: async (request, reply) => {
      const agent = await stores.agents.get(scopeOf(request), agentIdOf(request.params));
      if (agent === null) throw noSuchAgent();
      setEtag(reply, agent);
      return answerOf(agent, `Agent ${titleOf(agent)}`);
    },
  });

  app.post('/v1/agents/:agent_id', {
    attachValidation: true,
    schema: {
      operationId: 'updateAgent',
      tags,
      summary: 'Update the settings of an agent',
      description:
        'Omitted settings stay; null or an empty text resets a setting to its default. A `pathway_id` resets `prompt`, `first_sentence`, ' +
        '`model`, `dynamic_data`, `tools` and `transfer_list`. If one setting is not valid, nothing changes. New calls use ' +
        'the new settings.',
      params,
      headers: changeHeaders,
      body: bodies.update,
      response: {
        200: recordAnswer('What changed', agentUpdatedSchema),
        ...failureAnswers(['VALIDATION', 'NOT_FOUND', 'PRECONDITION_FAILED'], failedUpdateSchema),
      },
    },
    handler: async (request, reply) => {
      const { orgId } = identityOf(request);
      const { body } = request;
      const current = await stores.agents.get(orgId, agentIdOf(request.params));
      const bad = await badFieldsOf(request, stores.tools, orgId, current);
      if (bad.length > 0) throw validationFailure(bad, failedUpdates(body, bad));
      let before: AgentRecord | undefined;
      const decide = (current: AgentRecord) => {
        before = current;
        return changedAgent(current, body, policy);
      };
      const changed = await stores.agents.change(orgId, agentIdOf(request.params), decide, ifMatchOf(request));
      if (!changed.ok) throw updateFailure(changed.error, body);
      const agent = changed.value;
      await note(request, 'agent.update', agent.agent_id, changedFields(before ?? agent, agent));
      setEtag(reply, agent);
      return {
        status: 'success' as const,
        message: `Agent ${titleOf(agent)} updated`,
        updates: updatesOf(before ?? agent, agent, body),
        warnings: [...warningsOf(before ?? agent, agent, body, await policyOf(orgId)), ...(await danglingTools(agent, stores.tools))],
      };
    },
  });

  app.delete('/v1/agents/:agent_id', {
    config: { failures: ['NOT_FOUND', 'AGENT_IN_USE', 'PRECONDITION_FAILED'] },
    schema: {
      operationId: 'deleteAgent',
      tags,
      summary: 'Delete an agent',
      description: 'Fails while a number uses the agent. Calls in progress continue.',
      params,
      headers: changeHeaders,
      response: { 200: messageAnswer('It is deleted', 'Agent "Front desk" (4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11) deleted') },
    },
    handler: async (request) => {
      const { orgId } = identityOf(request);
      const agentId = agentIdOf(request.params);
      const deleted = await deleteAgent(stores, orgId, agentId, ifMatchOf(request));
      if (!deleted.ok) throw deleteFailure(deleted.error);
      await note(request, 'agent.delete', agentId);
      return { status: 'success' as const, message: `Agent ${titleOf(deleted.value)} deleted` };
    },
  });
}

/** UUIDs are the same in either case. Whatever is no id finds nothing, like an id that nobody has. */
function agentIdOf({ agent_id: id }: z.output<typeof params>): string {
  return id.toLowerCase();
}

function titleOf({ name, agent_id: id }: AgentRecord): string {
  return `"${name}" (${id})`;
}

function updateFailure(error: RecordRefusal | BadFields, body: AgentBody): ApiFailure {
  if (error === 'not-found') return noSuchAgent(failedUpdates(body));
  if (error === 'mismatch') return preconditionFailed(failedUpdates(body));
  return validationFailure(error, failedUpdates(body, error));
}

function deleteFailure(error: RecordRefusal | InUse): ApiFailure {
  if (typeof error === 'string') return error === 'mismatch' ? preconditionFailed() : noSuchAgent();
  const numbers = error.usedBy.join(', ');
  return new ApiFailure('AGENT_IN_USE', `The calls of ${numbers} go to this agent: give the number another agent first`);
}

function noSuchAgent(fields?: Readonly<Record<string, unknown>>): ApiFailure {
  return new ApiFailure('NOT_FOUND', 'There is no such agent', fields === undefined ? {} : { fields });
}
