import { z } from 'zod';
import { agentSettings, DEFAULT_AGENT_SETTINGS, type AgentRecord } from '../../model/agent-record.js';
import { shownDynamicData } from '../../model/dynamic-data.js';
import { moment, uuid } from '../../model/described.js';
import { agentProvider } from '../../model/provider.js';
import type { AgentPolicy } from './agent-rules.js';
import { agentName, agentSettingsSchema, ONE_AGENT } from './agent-settings.js';
import { errorEnvelopeSchema } from './api-error.js';
import { shownTool } from './tools-api.js';

// Agents over HTTP (§4.8 of the interface): what is sent, and what is shown.

const EXAMPLE_SETTINGS = {
  prompt: 'You are the front desk of Blue Harbor Hotel. Answer questions on rooms and prices, and take bookings.',
  first_sentence: 'Blue Harbor Hotel, good day.',
  language: 'ENG',
  max_duration: 12,
  analysis_schema: { guest_name: 'string', arrival: 'YYYY-MM-DD', wants_breakfast: 'boolean' },
  pronunciation_guide: [{ word: 'ETA', pronunciation: 'E T A', case_sensitive: 'true', spaced: 'true' }],
};

/** The bodies of creation and update. */
export function agentBodySchemas({ languages }: AgentPolicy) {
  const settings = agentSettingsSchema(languages).extend({ name: agentName.optional().describe("The agent's name") });
  return {
    create: settings.meta({ ...ONE_AGENT, examples: [{ name: 'Front desk', ...EXAMPLE_SETTINGS }] }),
    update: settings.meta({ ...ONE_AGENT, examples: [EXAMPLE_SETTINGS, { webhook: null, max_duration: null }] }),
  };
}

export type AgentBody = z.output<ReturnType<typeof agentBodySchemas>['update']>;

const json = z.unknown();

const EXAMPLE_AGENT = {
  agent_id: '4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11',
  org_id: '0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52',
  name: 'Front desk',
  ...DEFAULT_AGENT_SETTINGS,
  prompt: EXAMPLE_SETTINGS.prompt,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
};

export const shownAgentSchema = z
  .object({
    agent_id: uuid(),
    org_id: uuid(),
    name: z.string(),
    ...agentSettings,
    created_at: moment(),
    updated_at: moment('Differs after each change'),
  })
  .meta({
    id: 'Agent',
    description: 'An agent. The API never returns bearer tokens, keys of providers or headers of tools.',
    examples: [EXAMPLE_AGENT],
  });

export type ShownAgent = z.infer<typeof shownAgentSchema>;

/** Everything but what is secret. */
export function shownAgent(agent: AgentRecord): ShownAgent {
  const { stream, tools, provider } = agent;
  return {
    ...agent,
    dynamic_data: shownDynamicData(agent.dynamic_data),
    tools: tools.map((tool) => (typeof tool === 'string' ? tool : shownTool(tool))),
    stream: typeof stream === 'object' && stream !== null ? { url: stream.url, format: stream.format } : stream,
    provider: provider === null ? null : agentProvider.parse(provider),
  };
}

const warnings = z
  .array(z.object({ path: z.string(), message: z.string() }).meta({ title: 'SettingWarning' }))
  .readonly()
  .describe('Settings with an effect that you may not expect');

export const agentAnswerSchema = z.object({ status: z.literal('success'), message: z.string(), agent: shownAgentSchema, warnings }).meta({
  examples: [
    { status: 'success', message: 'Agent "Front desk" (4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11)', agent: EXAMPLE_AGENT, warnings: [] },
  ],
});

export const agentUpdatedSchema = z
  .object({
    status: z.literal('success'),
    message: z.string().describe('Contains the name of the agent'),
    updates: z.record(z.string(), json).describe('New values of the settings in the request, and of those that a pathway reset'),
    warnings,
  })
  .meta({
    examples: [
      {
        status: 'success',
        message: 'Agent "Front desk" (4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11) updated',
        updates: { webhook: null, max_duration: 30 },
        warnings: [],
      },
    ],
  });

export const failedUpdateSchema = errorEnvelopeSchema
  .extend({
    failed_updates: z.record(z.string(), json).optional().describe('The settings of the request; omitted if the body is unreadable'),
  })
  .meta({
    id: 'FailedUpdate',
    description: 'An update that failed: nothing changed',
    examples: [
      {
        status: 'error',
        message: 'The request is not valid: max_duration must be at least 1',
        data: null,
        errors: [{ error: 'VALIDATION', message: 'must be at least 1', path: 'max_duration' }],
        failed_updates: { max_duration: 0 },
      },
    ],
  });
