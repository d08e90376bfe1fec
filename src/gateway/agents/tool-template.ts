import type { ToolInputSchema } from '../model/tool-definition.js';

export type ToolInput = Readonly<Record<string, unknown>>;

// `{{input}}`, `{{input.a}}`, `{{input.a.b}}`.
const WHOLE = /^\{\{\s*input(?:\.([\w-]+(?:\.[\w-]+)*))?\s*\}\}$/;
const WITHIN = /\{\{\s*input(?:\.([\w-]+(?:\.[\w-]+)*))?\s*\}\}/g;
const MAX_HEADER = 4_096;
const MAX_INPUT_BYTES = 65_536;
/** Of what all placeholders of one request are filled with: each of them can be as long as the input. */
const MAX_FILLED_CHARACTERS = 262_144;

export class TooLongError extends Error {
  constructor() {
    super(`With the input in its placeholders the request has more than ${String(MAX_FILLED_CHARACTERS)} characters.`);
  }
}

/** What is wrong with an agent's input, in a sentence; `null`: nothing. */
export function inputProblem(schema: ToolInputSchema, input: unknown): string | null {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return 'The input must be an object.';
  const missing = schema.required.filter((name) => !Object.hasOwn(input, name));
  if (missing.length > 0) return `The input lacks ${missing.join(', ')}.`;
  return Buffer.byteLength(JSON.stringify(input)) > MAX_INPUT_BYTES ? `The input has more than ${String(MAX_INPUT_BYTES)} bytes.` : null;
}

/**
 * A template with the input in its placeholders: the value itself where a text is a placeholder and nothing else.
 * @throws TooLongError
 */
export function fillBody(template: unknown, input: ToolInput): unknown {
  const values = new Values(input);
  const fill = (part: unknown): unknown => {
    if (typeof part === 'string') {
      const whole = WHOLE.exec(part);
      return whole === null ? values.replacedIn(part) : values.whole(whole[1]);
    }
    if (Array.isArray(part)) return part.map(fill);
    if (typeof part !== 'object' || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([name, value]) => [name, fill(value)]));
  };
  return fill(template);
}

/** The URL with the input in its path and query; `undefined`: it would lead elsewhere than the template says. */
export function fillUrl(template: string, input: ToolInput): URL | undefined {
  const url = new URL(new Values(input).replacedIn(template, encodeURIComponent));
  const meant = new URL(template);
  // `..` climbs up, however it is written.
  const depth = ({ pathname }: URL): number => pathname.split('/').length;
  return url.origin === meant.origin && depth(url) === depth(meant) ? url : undefined;
}

/** The headers with the input in their values; `undefined`: one would have what a header cannot hold, or be too long. */
export function fillHeaders(templates: Readonly<Record<string, string>>, input: ToolInput): Record<string, string> | undefined {
  const values = new Values(input);
  const headers = Object.entries(templates).map(([name, template]): [string, string] => [name, values.replacedIn(template)]);
  return headers.every(([, value]) => value.length <= MAX_HEADER && /^[\t\x20-\x7e]*$/.test(value))
    ? Object.fromEntries(headers)
    : undefined;
}

/** The values of an input, each written once, and no more characters of them than a request may have. */
class Values {
  readonly #written = new Map<string | undefined, string>();
  #characters = 0;

  constructor(private readonly input: ToolInput) {}

  /** A text with the values in its placeholders. */
  replacedIn(text: string, encode = (value: string): string => value): string {
    return text.replace(WITHIN, (_all, path?: string) => {
      const written = encode(this.#text(path));
      this.#count(written);
      return written;
    });
  }

  /** The value itself. */
  whole(path: string | undefined): unknown {
    this.#count(this.#text(path));
    return valueOf(this.input, path);
  }

  #text(path: string | undefined): string {
    let text = this.#written.get(path);
    if (text === undefined) this.#written.set(path, (text = textOf(valueOf(this.input, path))));
    return text;
  }

  #count({ length }: string): void {
    this.#characters += length;
    if (this.#characters > MAX_FILLED_CHARACTERS) throw new TooLongError();
  }
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
