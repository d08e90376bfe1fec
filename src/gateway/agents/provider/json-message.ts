import { parseJson } from '../../../lib/bounded-json.js';
import type { ProviderAction, WireMessage } from './adapter.js';

// Messages of a provider: JSON that may hold anything.

export type Fields = Readonly<Record<string, unknown>>;

const NO_FIELDS: Fields = {};

/** `null`: no JSON object. */
export function fieldsOfMessage(message: WireMessage): Fields | null {
  const parsed = parseJson(typeof message === 'string' ? message : Buffer.from(message).toString());
  return parsed.ok && isObject(parsed.value) ? parsed.value : null;
}

/** An object in a field; empty when it is none. */
export function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : NO_FIELDS;
}

/** Empty when it is no text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** The objects of a list. */
export function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Tokens that a provider reports, where it does. */
export function tokensOf(value: unknown): readonly ProviderAction[] {
  const tokens = Math.round(numberOf(value) ?? 0);
  return tokens > 0 ? [{ do: 'used', tokens }] : [];
}

/** A text of JSON; `undefined`: it is none, or nested too deep. */
export function parsedText(text: string): unknown {
  const parsed = parseJson(text === '' ? '{}' : text);
  return parsed.ok ? parsed.value : undefined;
}

/** What a provider says of an error, for a person: one short line, printable. */
export function shownReason(text: string): string {
  return text
    .replace(/[^\x20-\x7e]+/g, ' ')
    .trim()
    .slice(0, 160);
}

const CAUSES: Readonly<Record<string, string>> = {
  '401': 'the key is wrong',
  '403': 'the key does not allow this',
  '404': 'there is no such address or model',
  '429': 'too many sessions or requests',
  invalid_api_key: 'the key is wrong',
  INVALID_AUTH: 'the key is wrong',
  model_not_found: 'there is no such model',
  INVALID_SETTINGS: 'a field has a wrong value',
  invalid_value: 'a field has a wrong value',
  unknown_parameter: 'there is no such field',
  insufficient_quota: 'the account has no quota left',
  INSUFFICIENT_CREDITS: 'the account has no credits left',
  rate_limit_exceeded: 'a rate limit was reached',
};

/** What a provider's code means for its user, with a space before; '': the code says it. @param code its own, or of HTTP */
export function causeOf(code: string): string {
  const cause = CAUSES[code];
  return cause === undefined ? '' : ` (${cause})`;
}

/** The close of a provider's connection, for a person. */
export function closedText(code: number, reason: string): string {
  return `the provider closed the connection with ${String(code)}${reason === '' ? '' : ` (${shownReason(reason)})`}`;
}

export function send(message: object): ProviderAction {
  return { do: 'send', message: JSON.stringify(message) };
}

export function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
