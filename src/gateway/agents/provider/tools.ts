import type { SpokenTool } from '../../model/provider-settings.js';

// Tools as models take them: functions with a JSON Schema.

/** A function that the model may call. */
export interface ModelFunction {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
}

interface JsonSchema {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, { readonly type: 'string'; readonly description?: string }>>;
  readonly required: readonly string[];
}

export const HANG_UP = 'hang_up';
export const TRANSFER = 'transfer_call';
export const PRESS_KEYS = 'press_keys';
export const DO_NOT_CALL = 'do_not_call';

const MAX_NAME = 64;

const SIP_HEADERS = {
  type: 'string',
  description: 'SIP headers for the other side, one "Name: value" a line. Leave out unless your instructions name one',
} as const;

const HANG_UP_FUNCTION: ModelFunction = {
  name: HANG_UP,
  description: 'Ends the call. Say goodbye first: the caller hears all that you said before the call ends.',
  parameters: { type: 'object', properties: { sip_headers: SIP_HEADERS }, required: [] },
};
const DO_NOT_CALL_FUNCTION: ModelFunction = {
  name: DO_NOT_CALL,
  description: 'Notes that the person wants no more calls. Their number is never dialled again.',
  parameters: { type: 'object', properties: {}, required: [] },
};
const FURTHER_FUNCTIONS: readonly ModelFunction[] = [
  {
    name: TRANSFER,
    description: 'Transfers the caller to another number.',
    parameters: {
      type: 'object',
      properties: {
        to: { type: 'string', description: 'A phone number in E.164 form, such as +15551234567, or a SIP URI' },
        briefing: { type: 'string', description: 'Spoken to the other party before the caller is connected; leave out to connect at once' },
        step: {
          type: 'string',
          description:
            'consult: you talk with the other party first, while the caller waits. Afterwards, without a number: conference (all three talk), ' +
            'complete (you leave the other two) or cancel (the other party leaves). Leave out to connect at once',
        },
        sip_headers: SIP_HEADERS,
      },
      required: [],
    },
  },
  {
    name: PRESS_KEYS,
    description: 'Presses keys of the phone, for a menu of the other side.',
    parameters: { type: 'object', properties: { digits: { type: 'string', description: '1 to 64 of 0-9, *, #' } }, required: ['digits'] },
  },
];

/** The functions of a call, and the tool that each name stands for. */
export class ToolNames {
  readonly functions: readonly ModelFunction[];
  readonly #tools = new Map<string, SpokenTool>();

  constructor(tools: readonly SpokenTool[], mayTransfer: boolean) {
    const own = [HANG_UP_FUNCTION, DO_NOT_CALL_FUNCTION, ...(mayTransfer ? FURTHER_FUNCTIONS : [])];
    const taken = new Set(own.map(({ name }) => name));
    const custom = tools.map((tool) => {
      const name = freeName(tool.name, taken);
      taken.add(name);
      this.#tools.set(name, tool);
      return { name, description: descriptionOf(tool), parameters: schemaOf(tool.input_schema) };
    });
    this.functions = [...custom, ...own];
  }

  /** `undefined`: one of our own, or none. */
  toolOf(name: string): SpokenTool | undefined {
    return this.#tools.get(name);
  }
}

/** Providers take letters, digits, `_` and `-`. */
function freeName(name: string, taken: ReadonlySet<string>): string {
  const plain = name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_NAME);
  if (!taken.has(plain)) return plain;
  for (let n = 2; ; n += 1) {
    const numbered = `${plain.slice(0, MAX_NAME - 4)}_${String(n)}`;
    if (!taken.has(numbered)) return numbered;
  }
}

function descriptionOf({ description, input_schema: { example } }: SpokenTool): string {
  return example === null ? description : `${description}\nExample of the input: ${JSON.stringify(example)}`;
}

/** A field's text describes it; a field that is required and not described is a text too. */
function schemaOf({ properties, required }: SpokenTool['input_schema']): JsonSchema {
  const described = Object.entries(properties).map(([name, description]) => [name, { type: 'string', description }] as const);
  const further = required.filter((name) => !Object.hasOwn(properties, name)).map((name) => [name, { type: 'string' }] as const);
  return { type: 'object', properties: Object.fromEntries([...described, ...further]), required };
}
