import type { ToolDefinition } from '../model/tool-definition.js';
import { publish } from '../ports/events.js';
import type { ToolOutcome, ToolRunner } from '../ports/ports.js';
import type { Clock } from '../../lib/clock.js';
import { parseJson } from '../../lib/bounded-json.js';
import { err, ok, type Result } from '../../lib/result.js';
import { GuardedClient, type GuardedAnswer, type GuardedFailure, type GuardedRequest, type Reach } from '../net/guarded-client.js';
import { MAX_RESULT_CHARACTERS } from './pick-results.js';
import type { ResultPaths } from './result-paths.js';
import { fillBody, fillHeaders, fillUrl, inputProblem, TooLongError, type ToolInput } from './tool-template.js';

const MAX_RESPONSE_BYTES = 1_024 * 1_024;

export interface ToolRunnerOptions extends Reach {
  readonly clock: Clock;
  readonly resultPaths: ResultPaths;
}

/** Calls custom tools over HTTP: addresses guarded, redirects not followed, time and answers limited. */
export class HttpToolRunner implements ToolRunner {
  readonly #client: GuardedClient;
  private readonly clock: Clock;
  readonly #resultPaths: ResultPaths;

  constructor({ allowPrivate, caPem, clock, resultPaths }: ToolRunnerOptions) {
    this.clock = clock;
    this.#resultPaths = resultPaths;
    this.#client = new GuardedClient({ allowPrivate, caPem, clock, maxResponseBytes: MAX_RESPONSE_BYTES });
  }

  async run(
    orgId: string,
    tool: ToolDefinition,
    given: unknown,
    ended: AbortSignal,
    more: Readonly<Record<string, string>> = {},
  ): Promise<ToolOutcome> {
    const startedMs = this.clock.nowMs();
    const outcome = await this.#run(orgId, tool, given, ended, more);
    publish('tool.run', { outcome: outcome.ok ? 'ok' : outcome.error.code, tookMs: this.clock.nowMs() - startedMs });
    return outcome;
  }

  async #run(
    orgId: string,
    tool: ToolDefinition,
    given: unknown,
    ended: AbortSignal,
    more: Readonly<Record<string, string>>,
  ): Promise<ToolOutcome> {
    const input = given ?? {};
    const problem = inputProblem(tool.input_schema, input);
    if (problem !== null) return err({ code: 'TOOL_BAD_INPUT', message: problem });
    try {
      const filled = filledRequest(tool, input as ToolInput, ended, more);
      if (!filled.ok) return err({ code: 'TOOL_BAD_INPUT', message: filled.error });
      const answer = await this.#client.send(filled.value.url, filled.value.request);
      if (!answer.ok) return failedWith(answer.error);
      return await this.#resultOf(orgId, tool, answer.value, ended);
    } catch (error) {
      if (error instanceof TooLongError) return err({ code: 'TOOL_BAD_INPUT', message: error.message });
      throw error;
    }
  }

  /** What the tool's owner wants of the answer; all of it when the tool refused, or when nothing is said. */
  async #resultOf(orgId: string, { response }: ToolDefinition, { status, text }: GuardedAnswer, ended: AbortSignal): Promise<ToolOutcome> {
    if (status >= 300 && status < 400)
      return toolFailed(`The tool redirects its callers (HTTP ${String(status)}), which the gateway does not follow.`);
    if (status >= 300 || Object.keys(response).length === 0) {
      if (text.length > MAX_RESULT_CHARACTERS)
        return toolFailed(
          `The tool's response has more than ${String(MAX_RESULT_CHARACTERS)} characters; result paths can select some of it.`,
        );
      const answer = parseJson(text);
      if (!answer.ok && answer.error === 'too-deep')
        return toolFailed("The tool's response has arrays and objects that are nested too deep.");
      return ok({ result: answer.ok ? answer.value : text, httpStatus: status });
    }
    const picked = await untilEnd(ended, this.#resultPaths.pick(orgId, response, text));
    return picked.ok ? ok({ result: picked.value, httpStatus: status }) : toolFailed(`The tool's response is of no use: ${picked.error}.`);
  }

  async close(): Promise<void> {
    await this.#client.close();
    await this.#resultPaths.close();
  }
}

function filledRequest(
  tool: ToolDefinition,
  input: ToolInput,
  ended: AbortSignal,
  more: Readonly<Record<string, string>>,
): Result<{ readonly url: URL; readonly request: GuardedRequest }, string> {
  const url = fillUrl(tool.url, input);
  if (url === undefined) return err("The input would change the host or the path depth of the tool's URL.");
  const headers = fillHeaders(tool.headers, input);
  if (headers === undefined) return err('The input has characters that a header cannot contain.');
  return ok({ url, request: requestOf({ ...tool, headers: { ...more, ...headers } }, input, ended) });
}

/** What the work comes to, or an error as soon as nobody waits for it any more. A call's signal keeps no listener of work that is over. */
function untilEnd<T>(ended: AbortSignal, work: Promise<Result<T, string>>): Promise<Result<T, string>> {
  return new Promise((resolve, reject) => {
    const stop = (): void => resolve(err('nobody waits for it'));
    if (ended.aborted) stop();
    else ended.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => ended.removeEventListener('abort', stop));
  });
}

const toolFailed = (message: string): ToolOutcome => err({ code: 'TOOL_FAILED', message });

function isEmpty(template: ToolDefinition['body']): boolean {
  return template === null || Object.keys(template).length === 0;
}

function requestOf({ method, headers, body, timeout }: ToolDefinition, input: ToolInput, signal: AbortSignal): GuardedRequest {
  const sent = method === 'GET' ? null : JSON.stringify(isEmpty(body) ? input : fillBody(body, input));
  const isTyped = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type');
  return {
    method,
    headers: { accept: 'application/json', ...(sent === null || isTyped ? {} : { 'content-type': 'application/json' }), ...headers },
    body: sent,
    timeoutMs: timeout,
    signal,
  };
}

const TOO_LARGE = `The tool's response has more than ${String(MAX_RESPONSE_BYTES)} bytes.`;

function failedWith({ kind, text }: GuardedFailure): ToolOutcome {
  const message = kind === 'too-large' ? TOO_LARGE : `The tool ${text}.`;
  return err({ code: kind === 'timeout' ? 'TOOL_TIMEOUT' : 'TOOL_FAILED', message });
}
