import { type AgentAnswer, type AgentRequest, NOT_IN_TURBO } from '../model/agent.js';
import { DEFAULT_AGENT_SETTINGS } from '../model/agent-record.js';
import type { ToolDefinition } from '../model/tool-definition.js';
import type { Route } from '../model/records.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import { isTurbo } from './agent.js';
import { checkAnalysis } from '../model/analysis.js';
import type { CallData, CallNotes } from './call.js';
import { withCorrection, withEntries, withGap } from './transcript.js';
import type { DoNotCallList } from '../ports/batches.js';
import { parseE164 } from '../model/e164.js';
import type { ToolDirectory, ToolRunner } from '../ports/ports.js';

export interface RequestServices {
  readonly tools: ToolDirectory;
  readonly toolRunner: ToolRunner;
  readonly doNotCall: Pick<DoNotCallList, 'add'>;
}

type RequestOf<Type extends AgentRequest['type']> = Extract<AgentRequest, { type: Type }>;

const MAX_ANALYSIS_BYTES = 65_536;
const MAX_TOOLS_UNDER_WAY = 8;
const MAX_NAMES_TOLD = 20;
const MAX_NAME_TOLD = 64;
/** Made once: without a reason each abort makes an exception with a stack of its own. */
const CALL_ENDED = new Error('the call has ended');

/** What one call's agent asks for beside a transfer: its transcript and analysis are kept, its tools are run. */
export class AgentRequests {
  /** Monotonic time at which the call's first agent began; `null`: none has. */
  #beganMs: number | null = null;
  /** How long after it the present one began. */
  #offsetMs = 0;
  #toolsUnderWay = 0;
  #hasEnded = false;
  /** Made for the first tool: most calls run none. */
  #running: AbortController | undefined;
  #tools: Promise<readonly ToolDefinition[]> | undefined;

  constructor(
    private readonly services: RequestServices,
    private readonly call: CallData,
    private readonly answer: (answer: AgentAnswer) => void,
    /** What the record gets has changed. */
    private readonly onNotes: () => void,
    private readonly log: Log,
  ) {}

  /** As this call runs its tools. */
  get toolRunner(): ToolRunner {
    return this.services.toolRunner;
  }

  /** An agent begins: the times of its transcript count from here. */
  begin(nowMs: number): void {
    this.#beganMs ??= nowMs;
    this.#offsetMs = Math.round(nowMs - this.#beganMs);
  }

  /** The call goes on in another process: what was said meanwhile is missing. @param beganMs when the call's first agent began */
  restore(beganMs: number): void {
    this.#beganMs = beganMs;
    this.#note({ said: withGap(this.call.now.notes.said, 'the gateway was restarted during the call') });
  }

  keepMarks(names: readonly string[]): void {
    this.#note({ marks: names });
    this.onNotes();
  }

  #note(notes: Partial<CallNotes>): void {
    this.call.change({ notes: { ...this.call.now.notes, ...notes } });
  }

  get #route(): Route | null {
    return this.call.now.state.route;
  }

  /** Who talks to the agent: a number, or another name. */
  get #person(): string {
    const { direction, to, caller } = this.call.now.origin;
    return direction === 'outbound' ? to : caller.number;
  }

  take(request: Exclude<AgentRequest, { type: 'transfer' | 'transfer-step' }>): void {
    switch (request.type) {
      case 'transcript': {
        const { gap, correction, entries, isByTime } = request;
        const before = this.call.now.notes.said;
        const missing = gap === undefined ? before : withGap(before, gap);
        const corrected = correction === undefined ? missing : withCorrection(missing, correction);
        const timed = entries.map((entry) => ({ ...entry, at_ms: entry.at_ms + this.#offsetMs }));
        const said = withEntries(corrected, timed, isByTime === true);
        // One that is full is not stored again for each message.
        if (said === before) return;
        this.#note({ said });
        this.onNotes();
        return;
      }
      case 'analysis':
        return this.#analyse(request);
      case 'tool':
        return this.#runTool(request);
      case 'do_not_call':
        this.#noteRefusal(request).catch((error: unknown) => this.log.error({ error: errorText(error) }, 'call.tool.bug'));
        return;
    }
  }

  /** The tools of the agent in full: those that it names by id are read once. Without the store there are only the others. */
  tools(): Promise<readonly ToolDefinition[]> {
    this.#tools ??= this.#readTools().catch((error: unknown) => {
      this.#tools = undefined;
      this.log.warn({ error: errorText(error) }, 'call.tools.not_read');
      return this.#listed.filter((tool) => typeof tool !== 'string');
    });
    return this.#tools;
  }

  /** The call is over: tools that run are left. */
  close(): void {
    this.#hasEnded = true;
    this.#running?.abort(CALL_ENDED);
  }

  get #isTurbo(): boolean {
    return isTurbo(this.#route?.agent ?? DEFAULT_AGENT_SETTINGS);
  }

  get #listed(): readonly (string | ToolDefinition)[] {
    return this.#isTurbo ? [] : (this.#route?.agent?.tools ?? []);
  }

  async #readTools(): Promise<readonly ToolDefinition[]> {
    const ids = this.#listed.filter((tool) => typeof tool === 'string');
    const orgId = this.#route?.org.org_id;
    const records = orgId === undefined || ids.length === 0 ? [] : await this.services.tools.find(orgId, ids);
    const found = new Map(records.map(({ tool_id: id, tool }) => [id, tool]));
    return this.#listed.flatMap((tool) => (typeof tool === 'string' ? (found.get(tool) ?? []) : tool));
  }

  #analyse({ requestId, analysis }: RequestOf<'analysis'>): void {
    const { analysis: known, rejected: before } = this.call.now.notes;
    const { kept, wrong } = checkAnalysis(this.#route?.agent?.analysis_schema ?? null, analysis);
    const merged = { ...known, ...kept };
    // What was wrong at first and then right is not wrong any more.
    const rejected = Object.entries({ ...before, ...wrong }).filter(([name]) => !Object.hasOwn(kept, name));
    if (Buffer.byteLength(JSON.stringify([merged, rejected])) > MAX_ANALYSIS_BYTES) {
      const message = `The analysis of a call has at most ${String(MAX_ANALYSIS_BYTES)} bytes.`;
      return this.answer({ type: 'refused', requestId, request: 'analysis', code: 'ANALYSIS_TOO_LARGE', message });
    }
    this.#note({ analysis: merged, rejected: rejected.length === 0 ? null : Object.fromEntries(rejected) });
    this.onNotes();
    if (Object.keys(wrong).length === 0) return;
    const names = Object.keys(wrong)
      .slice(0, MAX_NAMES_TOLD)
      .map((name) => name.slice(0, MAX_NAME_TOLD));
    const message = `Stored separately, because they do not match the agent's analysis_schema: ${names.join(', ')}.`;
    this.answer({ type: 'refused', requestId, request: 'analysis', code: 'ANALYSIS_INVALID', message });
  }

  async #noteRefusal({ requestId }: RequestOf<'do_not_call'>): Promise<void> {
    const answer = await this.#refusalNoted(requestId);
    if (requestId !== null && !this.#hasEnded) this.answer(answer);
  }

  async #refusalNoted(requestId: string | null): Promise<AgentAnswer> {
    // Digits without a plus are another number in each country.
    const number = this.#person.startsWith('+') ? parseE164(this.#person) : undefined;
    const orgId = this.#route?.org.org_id;
    const refused = (code: string, message: string): AgentAnswer => ({ type: 'refused', requestId, request: 'do_not_call', code, message });
    if (number === undefined || orgId === undefined) return refused('NO_NUMBER', 'The number of the person is not known.');
    try {
      if ((await this.services.doNotCall.add(orgId, [number])) === null) return refused('TOO_MANY', 'The do-not-call list is full.');
    } catch (error) {
      this.log.error({ error: errorText(error) }, 'call.do_not_call.not_written');
      return refused('STORE_UNAVAILABLE', 'The do-not-call list could not be written.');
    }
    this.log.info({}, 'call.do_not_call.added');
    return { type: 'tool-result', requestId: requestId ?? '', result: 'The number is never dialled again.', httpStatus: null };
  }

  #runTool(request: RequestOf<'tool'>): void {
    const { requestId } = request;
    if (this.#isTurbo) return this.answer({ type: 'refused', requestId, request: 'tool', ...NOT_IN_TURBO });
    if (this.#toolsUnderWay >= MAX_TOOLS_UNDER_WAY) {
      const message = `A call runs at most ${String(MAX_TOOLS_UNDER_WAY)} tools at a time.`;
      return this.answer({ type: 'refused', requestId, request: 'tool', code: 'TOO_MANY', message });
    }
    this.#toolsUnderWay += 1;
    this.#outcomeOf(request)
      .then((answer) => {
        if (!this.#hasEnded) this.answer(answer);
      })
      .catch((error: unknown) => this.log.error({ error: errorText(error) }, 'call.tool.bug'))
      .finally(() => (this.#toolsUnderWay -= 1));
  }

  async #outcomeOf({ requestId, name, input }: RequestOf<'tool'>): Promise<AgentAnswer> {
    const refused = (code: string, message: string): AgentAnswer => ({ type: 'refused', requestId, request: 'tool', code, message });
    const tool = (await this.tools()).find((one) => one.name === name);
    if (tool === undefined) return refused('TOOL_UNKNOWN', 'The agent has no tool of this name.');
    if (this.#hasEnded) return refused('TOOL_FAILED', CALL_ENDED.message);
    this.#running ??= new AbortController();
    const outcome = await this.services.toolRunner.run(this.#route?.org.org_id ?? '', tool, input, this.#running.signal);
    if (!outcome.ok) {
      this.log.warn({ tool: name, code: outcome.error.code }, 'call.tool.failed');
      return refused(outcome.error.code, outcome.error.message);
    }
    return { type: 'tool-result', requestId, ...outcome.value };
  }
}

/** Tools whose requests have the trace header of this call. */
export function tracedTools(
  { toolRunner, traceparent }: { readonly toolRunner: ToolRunner; readonly traceparent?: (callId: string) => string },
  callId: string,
): ToolRunner {
  if (traceparent === undefined) return toolRunner;
  return { run: (orgId, tool, input, ended) => toolRunner.run(orgId, tool, input, ended, { traceparent: traceparent(callId) }) };
}
