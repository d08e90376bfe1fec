import type { ToolInputSchema } from '../contracts/agent-record.js';

export type ToolInput = Readonly<Record<string, unknown>>;

const WHOLE = /^\{\{\s*input(?:\.([\w-]+))?\s*\}\}$/;
const WITHIN = /\{\{\s*input(?:\.([\w-]+))?\s*\}\}/g;
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

function valueOf(input: ToolInput, name: string | undefined): unknown {
  if (name === undefined) return input;
  return Object.hasOwn(input, name) ? (input[name] ?? null) : null;
}

function textOf(value: unknown): string {
  if (value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
