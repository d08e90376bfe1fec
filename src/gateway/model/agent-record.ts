import { z } from 'zod';
import { STREAM_FORMATS } from '../../agent-protocol/stream-format.js';
import { agentProvider, type AgentProvider } from './provider.js';
import { whole } from './described.js';
import { shownToolSchema, type ToolDefinition } from './tool-definition.js';

export interface ToolRecord {
  /** `TL-` and a UUID. */
  readonly tool_id: string;
  readonly org_id: string;
  readonly label: string | null;
  readonly tool: ToolDefinition;
  readonly public: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}

/** Where an agent is that is a program behind a WebSocket. */
const agentStream = z.object({ url: z.string(), format: z.enum(STREAM_FORMATS) }).meta({ title: 'AgentStream' });

/** Never shown by the API. */
export interface AgentStream extends Readonly<z.output<typeof agentStream>> {
  readonly bearer_token: string | null;
}

const pronunciationEntry = z
  .object({ word: z.string(), pronunciation: z.string(), case_sensitive: z.boolean(), spaced: z.boolean() })
  .meta({ title: 'PronunciationEntry' });

/** One entry of an agent's pronunciation guide (§2.4 of the interface). */
export type PronunciationEntry = Readonly<z.output<typeof pronunciationEntry>>;

const json = z.unknown();

/** What an agent's owner sets (§2.4 of the interface), as the API shows it: `tools` and `stream` without what is secret. */
export const agentSettings = {
  prompt: z.string().nullable(),
  // A name of the voices that there are.
  voice: z.string().nullable().describe("null: the language's default voice"),
  webhook: z.string().nullable(),
  // Data points to be extracted from the call, and what each is; null: whatever the agent tells.
  analysis_schema: z.record(z.string(), z.string()).nullable(),
  metadata: z.record(z.string(), json).nullable(),
  pathway_id: z.string().nullable(),
  // `ENG` and the like.
  language: z.string(),
  model: z.enum(['base', 'turbo']),
  // null: the agent's own, or the built-in greeting.
  first_sentence: z.string().nullable(),
  tools: z.array(z.union([z.string(), shownToolSchema])).readonly(),
  dynamic_data: json.describe('An object, an array, or null'),
  // Of silence after which the caller has finished speaking.
  interruption_threshold: z.number().describe('Milliseconds'),
  max_duration: whole('Minutes'),
  pronunciation_guide: z.array(pronunciationEntry).readonly(),
  // Numbers that callers may be transferred to; null or empty: any.
  transfer_list: json.describe('An object, an array, or null'),
  stream: z
    .union([z.literal('test-line'), agentStream])
    .nullable()
    .describe("null: the operator's default"),
  provider: agentProvider.meta({ title: 'AgentProvider' }).nullable().describe('A voice model that answers in place of a bot; null: none'),
  wait_for_greeting: z.boolean().describe('With a provider: the agent speaks after the caller'),
};

type ShownSettings = Readonly<z.output<z.ZodObject<typeof agentSettings>>>;
type JsonObjectOrArray = Readonly<Record<string, unknown>> | readonly unknown[];

export interface AgentSettings extends Omit<ShownSettings, 'tools' | 'stream' | 'provider' | 'dynamic_data' | 'transfer_list'> {
  /** Ids of tools, and tools in full. */
  readonly tools: readonly (string | ToolDefinition)[];
  readonly dynamic_data: JsonObjectOrArray | null;
  readonly transfer_list: JsonObjectOrArray | null;
  readonly stream: AgentStream | 'test-line' | null;
  readonly provider: AgentProvider | null;
}

export const DEFAULT_AGENT_SETTINGS: AgentSettings = {
  prompt: null,
  voice: null,
  webhook: null,
  analysis_schema: null,
  metadata: null,
  pathway_id: null,
  language: 'ENG',
  model: 'base',
  first_sentence: null,
  tools: [],
  dynamic_data: null,
  interruption_threshold: 100,
  max_duration: 30,
  pronunciation_guide: [],
  transfer_list: null,
  stream: null,
  provider: null,
  wait_for_greeting: false,
};

export interface AgentRecord extends AgentSettings {
  /** UUID. */
  readonly agent_id: string;
  readonly org_id: string;
  readonly name: string;
  readonly created_at: string;
  readonly updated_at: string;
}
