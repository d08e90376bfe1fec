import type { StreamFormat } from './agent.js';
import type { PronunciationEntry } from './pronunciation.js';

/** An HTTP API that an agent may call in a conversation (§2.3 of the interface). */
export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  /** What the agent says meanwhile. */
  readonly speech: string | null;
  readonly method: ToolMethod;
  /** `{{input.name}}` may stand in path and query. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A template: `{{input}}` and `{{input.name}}` stand for what the agent gives. `null`: what the agent gives is the body. A GET has none. */
  readonly body: Readonly<Record<string, unknown>> | null;
  readonly input_schema: ToolInputSchema;
  /** Names of results, and where in the answer they are (JSONPath); empty: the whole answer. */
  readonly response: Readonly<Record<string, string>>;
  /** Milliseconds. */
  readonly timeout: number;
}

export const TOOL_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type ToolMethod = (typeof TOOL_METHODS)[number];

export interface ToolInputSchema {
  readonly type: 'object';
  readonly example: Readonly<Record<string, unknown>> | null;
  readonly required: readonly string[];
  /** Each field with a description for the agent. */
  readonly properties: Readonly<Record<string, string>>;
}

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
export interface AgentStream {
  readonly url: string;
  readonly format: StreamFormat;
  /** Never shown by the API. */
  readonly bearer_token: string | null;
}

/** What an agent's owner sets (§2.4 of the interface). */
export interface AgentSettings {
  readonly prompt: string | null;
  /** A name of the voices that there are; `null`: the language's own. */
  readonly voice: string | null;
  readonly webhook: string | null;
  /** Data points to be extracted from the call, and what each is; `null`: whatever the agent tells. */
  readonly analysis_schema: Readonly<Record<string, string>> | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly pathway_id: string | null;
  /** `ENG` and the like. */
  readonly language: string;
  readonly model: 'base' | 'turbo';
  /** `null`: the agent's own, or the built-in greeting. */
  readonly first_sentence: string | null;
  /** Ids of tools, and tools in full. */
  readonly tools: readonly (string | ToolDefinition)[];
  readonly dynamic_data: Readonly<Record<string, unknown>> | readonly unknown[] | null;
  /** Milliseconds of silence after which the caller has finished speaking. */
  readonly interruption_threshold: number;
  /** Minutes. */
  readonly max_duration: number;
  readonly pronunciation_guide: readonly PronunciationEntry[];
  /** Numbers that callers may be transferred to; `null` or empty: any. */
  readonly transfer_list: Readonly<Record<string, unknown>> | readonly unknown[] | null;
  /** `null`: the operator's default. */
  readonly stream: AgentStream | 'test-line' | null;
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
};

export interface AgentRecord extends AgentSettings {
  /** UUID. */
  readonly agent_id: string;
  readonly org_id: string;
  readonly name: string;
  readonly created_at: string;
  readonly updated_at: string;
}
