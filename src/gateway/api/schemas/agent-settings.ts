import { z } from 'zod';
import { STREAM_FORMATS } from '../../../agent-protocol/stream-format.js';
import { DEFAULT_AGENT_SETTINGS, type AgentSettings, type AgentStream, type PronunciationEntry } from '../../model/agent-record.js';
import { discriminator, writtenAs } from '../../model/described.js';
import { httpUrl, HTTP_URL } from '../../model/http-url.js';
import { agentUrl, providerUrl } from '../../../agent-protocol/agent-url.js';
import {
  agentProvider,
  AGENT_PROVIDERS,
  CONVERSATION_RELAY,
  PROVIDERS,
  type AgentProvider,
  type AgentProviderName,
  type ProviderName,
} from '../../model/provider.js';
import { toolDefinition } from '../../model/tool-definition.js';

// What an agent's owner may set, field by field, as the control API takes it. Nothing here transforms, so that
// every bad field is named at once; `agentSettingsOf` turns a body that passed into what is stored.

const MAX_PROMPT = 32_768;
const MAX_FIRST_SENTENCE = 199;
const MAX_JSON_BYTES = 65_536;
const MAX_URL = 2_048;
const MAX_MINUTES = 1_440;
/** Longer than anybody waits for an answer. */
const MAX_INTERRUPTION_THRESHOLD = 10_000;
const MAX_TOOLS = 50;
const MAX_GUIDE = 500;
const MAX_DATA_POINTS = 100;

export const TOOL_ID = /^[Tt][Ll]-[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$/;

/** The length as people count it. */
export const codePoints = (text: string): number => Array.from(text).length;

const isSmallJson = (value: unknown): boolean => Buffer.byteLength(JSON.stringify(value)) <= MAX_JSON_BYTES;
const TOO_LARGE = `must have at most ${String(MAX_JSON_BYTES)} bytes as JSON`;

/** Whatever JSON held. */
const json = z.unknown();
const jsonObject = z.record(z.string().max(256), json).refine(isSmallJson, TOO_LARGE);
const jsonObjectOrArray = z.union([jsonObject, z.array(json).refine(isSmallJson, TOO_LARGE)], 'must be an object or an array');

const emptyText = z.literal('');

/** No generator of Java can read a union of an object and an array. */
const objectOrArray = (refusedText: object) =>
  writtenAs({ not: { anyOf: [{ type: 'boolean' }, { type: 'number' }, { type: 'string', ...refusedText }] } });

const NOT_A_NAME = 'must be 1 to 100 printable characters';
const CONTROLS = String.raw`\x00-\x1f\x7f-\x9f`;
/** At least one character is no space. Which ones print besides controls is not in it: that changes with Unicode. */
const NAME = new RegExp(String.raw`^[^\S${CONTROLS}]*[^\s${CONTROLS}][^${CONTROLS}]*$`);

export const agentName = z
  .string()
  .max(100)
  .regex(NAME, NOT_A_NAME)
  .refine((name) => !/\p{C}/u.test(name), NOT_A_NAME);

const stream = z
  .strictObject({
    url: agentUrl,
    format: z.enum(STREAM_FORMATS).default('twilio'),
    bearer_token: z
      .string()
      .regex(/^[\x21-\x7e]{1,4096}$/, 'must be printable and have no space')
      .nullable()
      .optional(),
  })
  .meta({ title: 'StreamSettings' });

/** null: what the operator set, here and below. */
const providerModel = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/, 'must be printable and have no space')
  .nullable()
  .default(null);

const voiceModel = {
  model: providerModel.describe("null: what the operator set for the agent's `model`"),
  url: providerUrl().nullable().default(null).describe("null: the operator's"),
  audio: agentProvider.shape.audio.default('g711'),
  api_key: z
    .string()
    .regex(/^[\x21-\x7e]{1,4096}$/, 'must be printable and have no space')
    .nullable()
    .optional(),
};

const { noise_reduction, semantic_vad, reasoning_effort } = agentProvider.shape;
const openaiOnly = z
  .null('must be left out: only openai-realtime has it')
  .default(null)
  .meta({ type: ['string', 'null'], not: { type: 'string' }, description: 'Of openai-realtime only: null, or left out' });
const noTuning = { noise_reduction: openaiOnly, semantic_vad: openaiOnly, reasoning_effort: openaiOnly };

const PROVIDER_VARIANTS = {
  'openai-realtime': 'OpenaiSettings',
  deepgram: 'VoiceModelSettings',
  'gemini-live': 'VoiceModelSettings',
  elevenlabs: 'VoiceModelSettings',
  'conversation-relay': 'ConversationRelaySettings',
} as const satisfies Record<AgentProviderName, string>;
const NO_PROVIDER = `must be ${PROVIDERS.join(' or ')}, or an object with that name, or with ${CONVERSATION_RELAY} and a url`;

const provider = z
  .discriminatedUnion(
    'name',
    [
      z
        .strictObject({
          name: z.literal('openai-realtime'),
          ...voiceModel,
          noise_reduction: noise_reduction.default(null),
          semantic_vad: semantic_vad.default(null),
          reasoning_effort: reasoning_effort.default(null),
        })
        .meta({ title: PROVIDER_VARIANTS['openai-realtime'] }),
      z
        .strictObject({ name: z.enum(['deepgram', 'gemini-live', 'elevenlabs']), ...voiceModel, ...noTuning })
        .meta({ title: PROVIDER_VARIANTS.deepgram }),
      z
        .strictObject({
          name: z.literal(CONVERSATION_RELAY),
          ...voiceModel,
          url: providerUrl('must be the application of conversation-relay').describe('The application of conversation-relay'),
          ...noTuning,
        })
        .meta({ title: PROVIDER_VARIANTS[CONVERSATION_RELAY] }),
    ],
    { error: ({ input }) => (typeof input === 'object' && input !== null ? `must be ${AGENT_PROVIDERS.join(' or ')}` : NO_PROVIDER) },
  )
  .meta({ title: 'ProviderSettings', ...discriminator('name', PROVIDER_VARIANTS) });

const flag = z.union([z.boolean(), z.enum(['true', 'false'])], 'must be true or false');

const pronunciationEntry = z
  .strictObject({
    word: z.string().min(1).max(100),
    pronunciation: z.string().min(1).max(200),
    case_sensitive: flag.default(false),
    spaced: flag.default(true),
  })
  .meta({ title: 'PronunciationSettings' });

const UNSET = { enum: [null] };
/** For the document: a provider or a stream, as `settingProblems` says of the agent with the change. */
export const ONE_AGENT = {
  dependentSchemas: { provider: { anyOf: [{ properties: { provider: UNSET } }, { properties: { stream: UNSET } }] } },
};

/** Changes to an agent: what is left out stays, `null` (and an empty text) sets back. @param languages codes that this service can speak */
export function agentSettingsSchema(languages: readonly string[]) {
  return z
    .strictObject({
      prompt: z
        .string()
        .max(2 * MAX_PROMPT)
        .refine((text) => codePoints(text) <= MAX_PROMPT, `must have at most ${String(MAX_PROMPT)} characters`)
        .meta({ maxLength: MAX_PROMPT })
        .nullable()
        .optional(),
      // Which voices there are depends on whose program speaks: `settingProblems` looks.
      voice: z.string().max(64).nullable().optional(),
      webhook: httpUrl(`^$|${HTTP_URL}`, MAX_URL, 'must be an http:// or https:// URL without a user').nullable().optional(),
      analysis_schema: z
        .record(z.string().min(1).max(64), z.string().min(1).max(500))
        .refine((schema) => Object.keys(schema).length <= MAX_DATA_POINTS, `must name at most ${String(MAX_DATA_POINTS)} data points`)
        .meta({ maxProperties: MAX_DATA_POINTS })
        .nullable()
        .optional(),
      metadata: jsonObject.nullable().optional(),
      pathway_id: z.string().max(200).nullable().optional(),
      language: z
        .string()
        .max(16)
        .refine((code) => code === '' || languages.includes(code.toUpperCase()), `must be one of ${languages.join(', ')}`)
        .meta({ description: 'Upper or lower case; empty: the default', enum: [...languages] })
        .nullable()
        .optional(),
      model: z.enum(['base', 'turbo']).nullable().optional(),
      first_sentence: z
        .string()
        .max(4 * MAX_FIRST_SENTENCE)
        .refine((text) => codePoints(text) <= MAX_FIRST_SENTENCE, 'must have under 200 characters')
        .meta({ maxLength: MAX_FIRST_SENTENCE })
        .nullable()
        .optional(),
      tools: z
        .array(z.union([z.string().regex(TOOL_ID, 'must be the id of a tool (TL-…), or a tool'), toolDefinition]))
        .max(MAX_TOOLS)
        .nullable()
        .optional(),
      dynamic_data: z
        .union([jsonObjectOrArray, emptyText])
        .nullable()
        .optional()
        .meta({ ...objectOrArray({ minLength: 1 }), description: 'An object or an array; null or an empty text clears it' }),
      interruption_threshold: z.number().min(0).max(MAX_INTERRUPTION_THRESHOLD).nullable().optional(),
      max_duration: z.int().min(1).max(MAX_MINUTES).nullable().optional(),
      pronunciation_guide: z.array(pronunciationEntry).max(MAX_GUIDE).nullable().optional(),
      transfer_list: jsonObjectOrArray
        .nullable()
        .optional()
        .meta({ ...objectOrArray({}), description: 'An object or an array; null clears it' }),
      stream: z
        .union([z.literal('test-line'), stream], 'must be "test-line", or an object with the url of the agent')
        .nullable()
        .optional(),
      provider: z
        .union([z.enum(PROVIDERS, NO_PROVIDER), provider])
        .nullable()
        .optional(),
      wait_for_greeting: z.boolean().nullable().optional(),
    })
    .meta({ title: 'AgentSettings', ...ONE_AGENT });
}

export type AgentSettingsBody = z.infer<ReturnType<typeof agentSettingsSchema>>;

/** What a pathway takes the place of (§4.8 of the interface). */
const PATHWAY_RESETS = ['prompt', 'first_sentence', 'model', 'dynamic_data', 'tools', 'transfer_list'] as const;

/** The settings as they are after a change. */
export function agentSettingsOf(before: AgentSettings, body: AgentSettingsBody): AgentSettings {
  const settings: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(body)) {
    if (value === undefined) continue;
    settings[name] = value === null || value === '' ? DEFAULT_AGENT_SETTINGS[name as keyof AgentSettings] : value;
  }
  if (typeof body.language === 'string' && body.language !== '') settings['language'] = body.language.toUpperCase();
  if (Array.isArray(body.tools)) settings['tools'] = body.tools.map((tool) => (typeof tool === 'string' ? toolIdOf(tool) : tool));
  if (typeof body.stream === 'object' && body.stream !== null) settings['stream'] = streamOf(before, body.stream);
  if (body.provider !== undefined && body.provider !== null) settings['provider'] = providerOf(before, body.provider);
  if (Array.isArray(body.pronunciation_guide)) settings['pronunciation_guide'] = body.pronunciation_guide.map(entryOf);
  if (typeof body.pathway_id === 'string' && body.pathway_id !== '')
    for (const name of PATHWAY_RESETS) settings[name] = DEFAULT_AGENT_SETTINGS[name];
  // Each value was checked by the schema of its name, or is the default of it.
  return settings as unknown as AgentSettings;
}

/** As the store knows it. */
export function toolIdOf(text: string): string {
  return `TL-${text.slice(3).toLowerCase()}`;
}

/** A token is for one address: left out it stays with that, and another address does not get it. */
function streamOf(before: AgentSettings, { url, format, bearer_token }: z.infer<typeof stream>): AgentStream {
  const kept = typeof before.stream === 'object' && before.stream?.url === url ? before.stream.bearer_token : null;
  return { url, format, bearer_token: bearer_token === undefined ? kept : bearer_token };
}

/** As a stream's token; the key of one provider is none of another's. */
function providerOf(before: AgentSettings, given: z.infer<typeof provider> | ProviderName): AgentProvider {
  const { api_key, ...rest } = typeof given === 'string' ? provider.parse({ name: given }) : given;
  const current = before.provider;
  const kept = current?.name === rest.name && current.url === rest.url ? current.api_key : null;
  return { ...rest, api_key: api_key === undefined ? kept : api_key };
}

function entryOf({ word, pronunciation, case_sensitive, spaced }: z.infer<typeof pronunciationEntry>): PronunciationEntry {
  return { word, pronunciation, case_sensitive: isSet(case_sensitive), spaced: isSet(spaced) };
}

function isSet(value: boolean | 'true' | 'false'): boolean {
  return value === true || value === 'true';
}
