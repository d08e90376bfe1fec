import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

// The published JSON Schema, and a validator that shares no code with the product.

const schema = JSON.parse(readFileSync(new URL('../../../docs/agent-messages.schema.json', import.meta.url), 'utf8')) as object;
const ajv = new Ajv2020({ allErrors: true, formats: { base64: true } });
ajv.addSchema(schema, 'messages');

function validator(definition: 'toAgent' | 'fromAgent'): ValidateFunction {
  const validate = ajv.getSchema(`messages#/$defs/${definition}`);
  if (validate === undefined) throw new Error(`the schema has no ${definition}`);
  return validate;
}

const toAgent = validator('toAgent');
const fromAgent = validator('fromAgent');

/** What the schema has against a message of the gateway; '' when nothing. */
export function faultsToAgent(message: unknown): string {
  return toAgent(message) ? '' : ajv.errorsText(toAgent.errors);
}

export function faultsFromAgent(message: unknown): string {
  return fromAgent(message) ? '' : ajv.errorsText(fromAgent.errors);
}
