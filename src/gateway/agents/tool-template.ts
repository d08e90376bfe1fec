import type { ToolInputSchema } from '../model/tool-definition.js';

export type ToolInput = Readonly<Record<string, unknown>>;

// `{{input}}`, `{{input.a}}`, `{{input.a.b}}`.
const WHOLE = /^\{\{\s*input(?:\.([\w-]+(?:\.[\w-]+)*))?\s*\}\}$/;
const WITHIN = /\{\{\s*input(?:\.([\w-]+(?:\.[\w-]+)*))?\s*\}\}/g;
const MAX_HEADER = 4_096;
const MAX_INPUT_BYTES = 65_536;

/** What is wrong with an agent's input, in a sentence; `null`: nothing. */
export function inputProblem(schema: ToolInputSchema, input: unknown): string | null {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return 'The input must be an object.';
  const missing = schema.required.filter((name) => !Object.hasOwn(input, name));
  if (missing.length > 0) return `The input lacks ${missing.join(', ')}.`;
  return Buffer.byteLength(JSON.stringify(input)) > MAX_INPUT_BYTES ? `The input has more than ${String(MAX_INPUT_BYTES)} bytes.` : null;
}

/** A template with the input in its placeholders: the value itself where a text is a placeholder and nothing else. */
export function fillBody(template: unknown, input: ToolInput): unknown {
  if (typeof template === 'string') {
    const whole = WHOLE.exec(template);
    return whole === null ? template.replace(WITHIN, (_all, name?: string) => textOf(valueOf(input, name))) : valueOf(input, whole[1]);
  }
  if (Array.isArray(template)) return template.map((item) => fillBody(item, input));
  if (typeof template !== 'object' || template === null) return template;
  return Object.fromEntries(Object.entries(template).map(([name, value]) => [name, fillBody(value, input)]));
}

/** The URL with the input in its path and query; `undefined`: it would lead elsewhere than the template says. */
export function fillUrl(template: string, input: ToolInput): URL | undefined {
  const url = new URL(template.replace(WITHIN, (_all, name?: string) => encodeURIComponent(textOf(valueOf(input, name)))));
  const meant = new URL(template);
  // `..` climbs up, however it is written.
  const depth = ({ pathname }: URL): number => pathname.split('/').length;
  return url.origin === meant.origin && depth(url) === depth(meant) ? url : undefined;
}

/** The headers with the input in their values; `undefined`: one would have what a header cannot hold, or be too long. */
export function fillHeaders(templates: Readonly<Record<string, string>>, input: ToolInput): Record<string, string> | undefined {
  const headers = Object.entries(templates).map(([name, template]): [string, string] => [
    name,
    template.replace(WITHIN, (_all, path?: string) => textOf(valueOf(input, path))),
  ]);
  return headers.every(([, value]) => value.length <= MAX_HEADER && /^[\t\x20-\x7e]*$/.test(value))
    ? Object.fromEntries(headers)
    : undefined;
}

/** @param path of names with dots between; what is not there is null */
function valueOf(input: ToolInput, path: string | undefined): unknown {
  let value: unknown = input;
  for (const name of path?.split('.') ?? []) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return null;
    value = (value as ToolInput)[name] ?? null;
  }
  return value;
}

function textOf(value: unknown): string {
  if (value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
