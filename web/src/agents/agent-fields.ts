import type { Schemas } from '../../../src/client/index.js';
import { jsonOf, jsonText, numberOf } from '../parts/input.js';

// An agent as a form has it: texts. What was not touched is not sent.

type Agent = Schemas['Agent'];

export const FORMATS = ['twilio', 'pcmu', 'pcma', 'pcm16-8000', 'pcm16-16000'] as const;
const JSON_FIELDS = ['analysis_schema', 'metadata', 'dynamic_data', 'transfer_list', 'pronunciation_guide'] as const;
const TEXT_FIELDS = ['prompt', 'first_sentence', 'voice', 'language', 'webhook', 'pathway_id', 'model'] as const;
const NUMBER_FIELDS = ['max_duration', 'interruption_threshold'] as const;

export type JsonField = (typeof JSON_FIELDS)[number];

/** Each field as text; `stream` is '', 'test-line' or 'url'. */
export type AgentForm = Readonly<
  Record<
    | (typeof TEXT_FIELDS)[number]
    | (typeof NUMBER_FIELDS)[number]
    | JsonField
    | 'name'
    | 'stream'
    | 'url'
    | 'format'
    | 'bearer_token'
    | 'tools',
    string
  >
>;

export function formOf(agent: Agent | null): AgentForm {
  const stream = agent?.stream ?? null;
  const isUrl = typeof stream === 'object' && stream !== null;
  return {
    name: agent?.name ?? '',
    ...(Object.fromEntries(TEXT_FIELDS.map((name) => [name, agent?.[name] ?? ''])) as Record<(typeof TEXT_FIELDS)[number], string>),
    ...(Object.fromEntries(NUMBER_FIELDS.map((name) => [name, agent === null ? '' : String(agent[name])])) as Record<
      (typeof NUMBER_FIELDS)[number],
      string
    >),
    ...(Object.fromEntries(JSON_FIELDS.map((name) => [name, jsonText(agent?.[name] ?? null)])) as Record<JsonField, string>),
    stream: isUrl ? 'url' : (stream ?? ''),
    url: isUrl ? stream.url : '',
    format: isUrl ? stream.format : 'twilio',
    bearer_token: '',
    tools: agent?.tools.filter((tool) => typeof tool === 'string').join(' ') ?? '',
  };
}

type Settings = Readonly<Record<string, unknown>>;

/** What changed, as the API takes it. Throws an `ApiError` at what cannot be sent. */
export function changesOf(before: AgentForm, now: AgentForm): Settings {
  const changed = (...names: readonly (keyof AgentForm)[]): boolean => names.some((name) => before[name] !== now[name]);
  const settings: Record<string, unknown> = {};
  if (changed('name')) settings['name'] = now.name;
  for (const name of TEXT_FIELDS) if (changed(name)) settings[name] = now[name] === '' ? null : now[name];
  for (const name of NUMBER_FIELDS) if (changed(name)) settings[name] = numberOf(name, now[name]);
  for (const name of JSON_FIELDS) if (changed(name)) settings[name] = jsonOf(name, now[name]);
  if (changed('stream', 'url', 'format', 'bearer_token')) settings['stream'] = streamOf(now);
  if (changed('tools')) settings['tools'] = now.tools.split(' ').filter((id) => id !== '');
  return settings;
}

/** A token that is not given stays as it was. */
function streamOf({ stream, url, format, bearer_token: token }: AgentForm): unknown {
  if (stream !== 'url') return stream === '' ? null : stream;
  return { url, format, ...(token === '' ? {} : { bearer_token: token }) };
}
