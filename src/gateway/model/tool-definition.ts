import { z } from 'zod';
import { whole } from './described.js';
import { httpUrl, HTTP_URL_TEMPLATE } from './http-url.js';
import { parseResultPath } from './result-path.js';

const TOOL_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const MAX_TIMEOUT_MS = 60_000;
const MAX_URL = 2_048;
const MAX_JSON_BYTES = 65_536;
const MAX_NAMES = 50;

/** They belong to the connection, which is ours. */
const OWN_HEADERS = ['host', 'content-length', 'connection', 'transfer-encoding', 'upgrade', 'expect', 'te', 'trailer', 'keep-alive'];

const isSmall = (value: object): boolean => Buffer.byteLength(JSON.stringify(value)) <= MAX_JSON_BYTES;
const isShort = (value: object): boolean => Object.keys(value).length <= MAX_NAMES;
const TOO_LARGE = `must have at most ${String(MAX_JSON_BYTES)} bytes as JSON`;
const TOO_MANY = `must have at most ${String(MAX_NAMES)} names`;

/** Whatever JSON held. */
const json = z.unknown();

/** A custom tool as its owner gives it (§2.3 of the interface). */
export const toolDefinition = z
  .strictObject({
    name: z.string().regex(/^[A-Za-z0-9_ .-]{1,64}$/, 'must be 1 to 64 letters, digits, spaces, dots, dashes or underscores'),
    description: z.string().max(4_000),
    // What the agent says meanwhile.
    speech: z.string().max(500).nullable().default(null),
    method: z.enum(TOOL_METHODS).default('POST'),
    // `{{input.name}}` may stand in path and query.
    url: httpUrl(HTTP_URL_TEMPLATE, MAX_URL, 'must be an http:// or https:// URL without a user'),
    headers: z
      .record(
        z
          .string()
          .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/, 'must be the name of a header')
          .refine((name) => !OWN_HEADERS.includes(name.toLowerCase()), 'is not yours to set'),
        z.string().regex(/^[\t\x20-\x7e]{0,4096}$/, 'must be printable'),
      )
      .refine(isShort, TOO_MANY)
      .meta({ maxProperties: MAX_NAMES })
      .default({}),
    // A template: `{{input}}` and `{{input.name}}` stand for what the agent gives. Empty, or null: what the agent gives is the body. A GET has none.
    body: z.record(z.string().max(256), json).refine(isSmall, TOO_LARGE).nullable().default(null),
    input_schema: z
      .strictObject({
        type: z.literal('object', 'must be "object"').default('object'),
        example: z.record(z.string().max(256), json).nullable().default(null),
        required: z.array(z.string().min(1).max(64)).max(MAX_NAMES).default([]),
        // Each field with a description for the agent.
        properties: z
          .record(z.string().min(1).max(64), z.string().max(1_000))
          .refine(isShort, TOO_MANY)
          .meta({ maxProperties: MAX_NAMES })
          .default({}),
      })
      .meta({ title: 'ToolInput' })
      .default({ type: 'object', example: null, required: [], properties: {} }),
    // Names of results, and where in the answer they are (JSONPath); empty: the whole answer.
    response: z
      .record(
        z.string().min(1).max(64),
        z
          .string()
          .max(500)
          .refine((text) => parseResultPath(text) !== undefined, 'must be a JSONPath of names, indexes and wildcards, such as $.data.id')
          .meta({ pattern: '^[$]' }),
      )
      .refine(isShort, TOO_MANY)
      .meta({ maxProperties: MAX_NAMES })
      .default({}),
    // Milliseconds.
    timeout: z.int().min(1).max(MAX_TIMEOUT_MS).default(10_000),
  })
  .meta({ title: 'ToolDefinition' });

/** An HTTP API that an agent may call in a conversation. */
export type ToolDefinition = Readonly<z.output<typeof toolDefinition>>;
export type ToolInputSchema = ToolDefinition['input_schema'];

/** A tool as it is shown: its headers, which hold keys, are not. */
export const shownToolSchema = z
  .object({
    name: z.string(),
    description: z.string(),
    speech: z.string().describe('What the agent says while it waits; empty: nothing'),
    method: z.enum(TOOL_METHODS),
    timeout: whole('Milliseconds'),
    url: z.string(),
    body: z
      .record(z.string(), z.unknown())
      .describe('Template with `{{input}}` and `{{input.name}}`; empty: the gateway sends the input itself'),
    input_schema: z
      .object({
        type: z.literal('object'),
        example: z.record(z.string(), z.unknown()),
        required: z.array(z.string()).readonly(),
        properties: z.record(z.string(), z.string()),
      })
      .meta({ title: 'ShownToolInput' }),
    response: z.record(z.string(), z.string()).describe('Names of results and their JSONPath in the answer'),
  })
  .meta({ id: 'Tool', description: 'An HTTP API that an agent may call' });

/** A tool as it is made. */
export const newTool = z
  .strictObject({
    label: z.string().max(200).nullable().default(null),
    public: z.boolean().default(false),
    tool: toolDefinition.refine(isSmall, TOO_LARGE),
  })
  .meta({ title: 'NewTool' });

/** The same with the fields of the tool beside `label` and `public`. */
export const flatTool = toolDefinition
  .extend(newTool.omit({ tool: true }).shape)
  .refine(isSmall, TOO_LARGE)
  .meta({ title: 'FlatTool' });

export type NewTool = z.output<typeof newTool>;

/** Whichever form it came in. */
export function newToolOf(body: NewTool | z.output<typeof flatTool>): NewTool {
  if ('tool' in body) return body;
  const { label, public: isPublic, ...tool } = body;
  return { label, public: isPublic, tool };
}
