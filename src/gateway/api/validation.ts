import type { FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { MAX_NESTING } from '../../lib/bounded-json.js';
import type { ApiErrorEntry } from './schemas/api-error.js';
import { validationFailure } from './failure.js';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

// A body may hold tens of thousands of bad fields; the answer to it need not.
const MAX_ENTRIES = 100;
const MAX_KEY_LENGTH = 64;
// What goes through all of a body, here and later, must not run out of stack.
const MAX_DEPTH = 32;

/** What is wrong with a body before its fields are looked at. */
export const NESTED_TOO_DEEP = `The body has arrays and objects that are nested more than ${String(MAX_NESTING)} levels deep.`;
export const FORBIDDEN_NAME = 'The body has a field named __proto__, or a prototype within constructor: rename it';

/** Validates with the route's zod schema; a failure names every bad field. */
export const zodValidator: FastifySchemaCompiler<z.ZodType> = ({ schema }) => {
  return (data: unknown) => {
    if (!isShallow(data, MAX_DEPTH)) {
      return { error: validationFailure([{ error: 'VALIDATION', message: `The request is nested over ${String(MAX_DEPTH)} deep` }]) };
    }
    const result = schema.safeParse(data);
    if (result.success) return { value: result.data };
    // The framework puts null for a body that is not there; headers, parameters and queries always are.
    if (data === null) return { error: validationFailure([{ error: 'VALIDATION', message: 'The body is missing' }]) };
    return { error: validationFailure(entriesOf(result.error.issues)) };
  };
};

function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((inner) => isShallow(inner, depth - 1));
}

/** One entry for each bad field: the first thing that is wrong with it. */
export function entriesOf(issues: readonly Issue[]): ApiErrorEntry[] {
  const entries = new Map<string, ApiErrorEntry>();
  for (const { path, message } of issues.flatMap((issue) => flatten(issue, []))) {
    const text = pathText(path);
    if (entries.has(text)) continue;
    if (entries.size >= MAX_ENTRIES) break;
    entries.set(text, { error: 'VALIDATION', message, ...(text === '' ? {} : { path: text }) });
  }
  return [...entries.values()];
}

interface FieldProblem {
  readonly path: Path;
  readonly message: string;
}

function flatten(issue: Issue, prefix: Path): FieldProblem[] {
  const path = [...prefix, ...issue.path];
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => ({ path: [...path, key], message: 'is not a known field' }));
  if (issue.code === 'invalid_union') {
    const branch = likelyBranch(issue.errors);
    if (branch !== undefined) return branch.flatMap((inner) => flatten(inner, path));
  }
  return [{ path, message: sentence(issue) }];
}

/**
 * The member of a union that was meant: the one that the value has the right type for; of several the one that knows the most of its
 * fields and finds the least fault. With none the members have nothing to say about single fields and the first one speaks for all.
 */
function likelyBranch(branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const meant = branches.filter((issues) => !issues.some((issue) => issue.path.length === 0 && isTypeMismatch(issue)));
  const [best = branches[0]] = [...meant].sort((a, b) => unknownFields(a) - unknownFields(b) || a.length - b.length);
  return best;
}

function unknownFields(issues: readonly Issue[]): number {
  return issues.reduce((sum, issue) => sum + (issue.code === 'unrecognized_keys' ? issue.keys.length : 0), 0);
}

function isTypeMismatch(issue: Issue): boolean {
  return issue.code === 'invalid_type' || issue.code === 'invalid_value';
}

function sentence(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      // zod tells a missing field from a wrong one only in its own message.
      if (issue.message.endsWith('received undefined')) return 'is required';
      return issue.message.startsWith('Invalid input: expected ') ? `must be ${article(issue.expected)}` : issue.message;
    case 'too_big':
      return `must ${bound(issue.origin)} at most ${issue.maximum}${unit(issue.origin, issue.maximum)}`;
    case 'too_small':
      return `must ${bound(issue.origin)} at least ${issue.minimum}${unit(issue.origin, issue.minimum)}`;
    default:
      return issue.message;
  }
}

function article(type: string): string {
  const noun = { int: 'integer', record: 'object' }[type] ?? type;
  return /^[aeio]/.test(noun) ? `an ${noun}` : `a ${noun}`;
}

function bound(origin: string): string {
  return origin === 'array' || origin === 'string' ? 'have' : 'be';
}

function unit(origin: string, count: number | bigint): string {
  const one = origin === 'array' ? ' member' : origin === 'string' ? ' character' : '';
  return one === '' || Number(count) === 1 ? one : `${one}s`;
}

/** `['options', 'allowed_sources', 1]` is `options.allowed_sources[1]`. */
export function pathText(path: Path): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += `${text === '' ? '' : '.'}${String(part).slice(0, MAX_KEY_LENGTH)}`;
  }
  return text;
}
