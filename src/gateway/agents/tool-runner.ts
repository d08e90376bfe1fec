import type { ToolDefinition } from '../model/tool-definition.js';
import { parseResultPath } from '../model/result-path.js';
import { publish } from '../ports/events.js';
import type { ToolOutcome, ToolRunner } from '../ports/ports.js';
import type { Clock } from '../../lib/clock.js';
import { err, ok } from '../../lib/result.js';
import { GuardedClient, type GuardedAnswer, type GuardedFailure, type GuardedRequest } from '../net/guarded-client.js';
import { fillBody, fillHeaders, fillUrl, inputProblem, type ToolInput } from './tool-template.js';

const MAX_RESPONSE_BYTES = 1_024 * 1_024;

export interface ToolRunnerOptions {
  /** Tools at private and loopback addresses too. */
  readonly allowPrivate: boolean;
  readonly clock: Clock;
}

/** Calls custom tools over HTTP: addresses guarded, redirects not followed, time and answers limited. */
export class HttpToolRunner implements ToolRunner {
  readonly #client: GuardedClient;
  private readonly clock: Clock;

  constructor({ allowPrivate, clock }: ToolRunnerOptions) {
    this.clock = clock;
    this.#client = new GuardedClient({ allowPrivate, clock, maxResponseBytes: MAX_RESPONSE_BYTES });
  }

  async run(tool: ToolDefinition, given: unknown, ended: AbortSignal, more: Readonly<Record<string, string>> = {}): Promise<ToolOutcome> {
    const startedMs = this.clock.nowMs();
    const outcome = await this.#run(tool, given, ended, more);
    publish('tool.run', { outcome: outcome.ok ? 'ok' : outcome.error.code, tookMs: this.clock.nowMs() - startedMs });
    return outcome;
  }

  async #run(tool: ToolDefinition, given: unknown, ended: AbortSignal, more: Readonly<Record<string, string>>): Promise<ToolOutcome> {
    const input = given ?? {};
    const problem = inputProblem(tool.input_schema, input);
    if (problem !== null) return err({ code: 'TOOL_BAD_INPUT', message: problem });
    const url = fillUrl(tool.url, input as ToolInput);
    if (url === undefined)
      return err({ code: 'TOOL_BAD_INPUT', message: "The input would change the host or the path depth of the tool's URL." });
    const headers = fillHeaders(tool.headers, input as ToolInput);
    if (headers === undefined) return err({ code: 'TOOL_BAD_INPUT', message: 'The input has characters that a header cannot contain.' });
    const request = requestOf({ ...tool, headers: { ...more, ...headers } }, input as ToolInput, ended);
    const answer = await this.#client.send(url, request);
    return answer.ok ? resultOf(tool, answer.value) : failedWith(answer.error);
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

function requestOf({ method, headers, body, timeout }: ToolDefinition, input: ToolInput, signal: AbortSignal): GuardedRequest {
  const sent = method === 'GET' ? null : JSON.stringify(body === null ? input : fillBody(body, input));
  const isTyped = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type');
  return {
    method,
    headers: { accept: 'application/json', ...(sent === null || isTyped ? {} : { 'content-type': 'application/json' }), ...headers },
    body: sent,
    timeoutMs: timeout,
    signal,
  };
}

/** What the tool's owner wants of the answer; all of it when the tool refused, or when nothing is said. */
function resultOf({ response }: ToolDefinition, { status, text }: GuardedAnswer): ToolOutcome {
  const paths = Object.entries(response);
  if (status >= 300 && status < 400)
    return err({
      code: 'TOOL_FAILED',
      message: `The tool redirects its callers (HTTP ${String(status)}), which the gateway does not follow.`,
    });
  const answer = json(text);
  if (status >= 300 || paths.length === 0) return ok({ result: answer === undefined ? text : answer, httpStatus: status });
  if (answer === undefined) return err({ code: 'TOOL_FAILED', message: "The tool's response is not JSON." });
  const result = Object.fromEntries(paths.map(([name, path]) => [name, found(path, answer)]));
  // What a path repeats may be more than there was.
  if (Buffer.byteLength(JSON.stringify(result)) > MAX_RESPONSE_BYTES) return err({ code: 'TOOL_FAILED', message: TOO_LARGE });
  return ok({ result, httpStatus: status });
}

/** `undefined`: it is none. */
function json(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** One value as it is, several as a list, none as null. */
function found(path: string, answer: unknown): unknown {
  const query = parseResultPath(path);
  if (query === undefined) throw new Error(`${path} is not a result path`);
  const values = query.query(answer as never).values();
  return values.length > 1 ? values : (values[0] ?? null);
}

const TOO_LARGE = `The tool's response has more than ${String(MAX_RESPONSE_BYTES)} bytes.`;

function failedWith({ kind, text }: GuardedFailure): ToolOutcome {
  const message = kind === 'too-large' ? TOO_LARGE : `The tool ${text}.`;
  return err({ code: kind === 'timeout' ? 'TOOL_TIMEOUT' : 'TOOL_FAILED', message });
}
