import { z } from 'zod';
import type { AgentSettings } from './agent-record.js';
import { toolDefinition, type ToolDefinition } from './tool-definition.js';

// `dynamic_data` in our form: what is fetched before a call is answered, and put into the agent's texts (docs/interface.md).

const MAX_REQUESTS = 10;
const MAX_VALUE = 10_000;
/** For all requests of a call together. */
export const DYNAMIC_DATA_MS = 2_000;

const { url, method, headers, body, response } = toolDefinition.shape;

const request = z.strictObject({
  url,
  method: method.unwrap().default('GET'),
  headers,
  body,
  timeout: z.int().min(1).max(DYNAMIC_DATA_MS).default(DYNAMIC_DATA_MS),
  // Names in the texts, and where in the answer their values are.
  response_data: response.unwrap().refine((names) => Object.keys(names).length > 0, 'must name at least one value'),
});
const form = z.union([request.transform((one) => [one]), z.array(request).min(1).max(MAX_REQUESTS)]);

/** The requests as tools; `null`: it is in no form that the gateway can use. */
export function dynamicRequests(dynamicData: AgentSettings['dynamic_data']): readonly ToolDefinition[] | null {
  const parsed = form.safeParse(dynamicData);
  if (!parsed.success) return null;
  return parsed.data.map(({ response_data, ...rest }) =>
    toolDefinition.parse({ ...rest, name: 'dynamic_data', description: '', response: response_data }),
  );
}

/** As it is shown, whatever its form: headers hold keys. */
export function shownDynamicData(dynamicData: unknown): unknown {
  if (Array.isArray(dynamicData)) return dynamicData.map(shownDynamicData);
  if (typeof dynamicData !== 'object' || dynamicData === null) return dynamicData;
  return Object.fromEntries(Object.entries(dynamicData).filter(([name]) => name.toLowerCase() !== 'headers'));
}

/** `{{name}}` in the texts becomes the value; a value that is not there, an empty text. */
export function fillTexts<T extends Pick<AgentSettings, 'prompt' | 'first_sentence'>>(
  settings: T,
  values: ReadonlyMap<string, unknown>,
): T {
  // Written once: a text may name a value thousands of times.
  const shown = new Map([...values].map(([name, value]) => [name, shownValue(value)]));
  const fill = (text: string | null): string | null =>
    text?.replace(/\{\{\s*([^{}\s]{1,64})\s*\}\}/g, (all, name: string) => shown.get(name) ?? all) ?? null;
  return { ...settings, prompt: fill(settings.prompt), first_sentence: fill(settings.first_sentence) };
}

function shownValue(value: unknown): string {
  if (value === null || value === undefined) return '';
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, MAX_VALUE);
}
