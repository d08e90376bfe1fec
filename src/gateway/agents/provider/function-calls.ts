import type { AgentAnswer, AgentRequest } from '../../model/agent.js';
import { headerRefusal, sipHeaders, type SipHeaders, unlistedHeader } from '../../model/passed-headers.js';
import type { ProviderSettings } from '../../model/provider-settings.js';
import { eventOfDigit } from '../../../rtp/dtmf/telephone-event.js';
import type { Clock } from '../../../lib/clock.js';
import { assertNever } from '../../../lib/result.js';
import type { AgentHost } from '../../media/leg-agent.js';
import { fieldsOf, textOf } from './json-message.js';
import { DO_NOT_CALL, HANG_UP, PRESS_KEYS, TRANSFER } from './tools.js';

interface ModelSide {
  /** @param continues the model is to go on */
  give(callId: string, output: object, continues: boolean): void;
  inform(text: string): void;
  /** The call is to end when the caller has heard everything. @param sipHeaders of the BYE; `null`: none */
  leave(sipHeaders: SipHeaders | null): void;
  /** Has something said while a tool runs. */
  say(callId: string, text: string): void;
}

/** A tool that takes less has nothing said: it would only delay the answer. */
const SAY_AFTER_MS = 300;

const DIGIT_MS = 160;

/** The functions that a session's model calls: tools of the agent, transfers, keys and the hang-up. */
export class FunctionCalls {
  /** Without a result so far. */
  readonly #open = new Set<string>();
  readonly #transfers = new Set<string>();

  constructor(
    private readonly settings: Pick<ProviderSettings, 'mayTransfer' | 'headersFromAgent'>,
    private readonly host: AgentHost,
    private readonly clock: Clock,
    private readonly model: ModelSide,
  ) {}

  get isEmpty(): boolean {
    return this.#open.size === 0;
  }

  isRunning(callId: string): boolean {
    return this.#open.has(callId);
  }

  /** @param input `undefined`: it could not be read @param speech is said while it runs */
  run(callId: string, name: string, input: unknown, speech = ''): void {
    this.#open.add(callId);
    if (speech !== '') this.clock.setTimer(SAY_AFTER_MS, () => this.isRunning(callId) && this.model.say(callId, speech));
    switch (name) {
      case HANG_UP:
        return this.#hangUp(callId, fieldsOf(input));
      case PRESS_KEYS:
        return this.#give(callId, this.#press(textOf(fieldsOf(input)['digits'])));
      case DO_NOT_CALL:
        return this.host.emit({ type: 'agent-request', request: { type: 'do_not_call', requestId: callId } });
      case TRANSFER:
        return this.#transfer(callId, fieldsOf(input));
      default:
        if (input === undefined) return this.#give(callId, { error: 'TOOL_BAD_INPUT', message: 'The arguments are not JSON.' });
        return this.host.emit({ type: 'agent-request', request: { type: 'tool', requestId: callId, name, input } });
    }
  }

  notify(answer: AgentAnswer): void {
    if (answer.type === 'answered-by') return this.#onAnswerer(answer);
    const { requestId } = answer;
    if (requestId === null) return;
    switch (answer.type) {
      case 'tool-result':
        return this.#give(requestId, { result: answer.result, http_status: answer.httpStatus });
      case 'refused':
        this.#transfers.delete(requestId);
        return this.#give(requestId, { error: answer.code, message: answer.message });
      case 'transfer-progress':
        return this.#onTransfer(requestId, answer);
      default:
        assertNever(answer);
    }
  }

  /** Their results are not wanted any more. */
  drop(callIds: readonly string[]): void {
    for (const callId of callIds) this.#open.delete(callId);
  }

  /** Another session does not know of them. */
  clear(): void {
    this.#open.clear();
    this.#transfers.clear();
  }

  #hangUp(callId: string, fields: Fields): void {
    const headers = headersOf(fields);
    if (headers === undefined) return this.#give(callId, BAD_HEADERS);
    const unlisted = headers === null ? null : unlistedHeader(headers, this.settings.headersFromAgent ?? []);
    if (unlisted !== null) {
      const { code, message } = headerRefusal(unlisted);
      return this.#give(callId, { error: code, message });
    }
    this.model.leave(headers);
    this.#give(callId, { result: 'The call ends now.' }, false);
  }

  /** The call says whether it may have these headers. */
  #transfer(callId: string, fields: Fields): void {
    const headers = headersOf(fields);
    if (headers === undefined) return this.#give(callId, BAD_HEADERS);
    this.#transfers.add(callId);
    this.host.emit({ type: 'agent-request', request: transferOf(callId, fields, headers) });
  }

  #press(digits: string): object {
    const isValid = this.settings.mayTransfer && /^[\d*#A-D]{1,64}$/.test(digits);
    if (!isValid) return { error: 'DTMF_NOT_SENT', message: 'These keys cannot be pressed.' };
    const isSent = Array.from(digits).every((digit) => this.host.sendDtmf(eventOfDigit(digit) ?? 0, DIGIT_MS));
    return isSent ? { result: 'The keys were pressed.' } : { error: 'DTMF_NOT_SENT', message: 'The call takes no keys.' };
  }

  /** The model needs no message about a person. */
  #onAnswerer({ event }: Extract<AgentAnswer, { type: 'answered-by' }>): void {
    if (event.type === 'greeting-ended') this.model.inform('The greeting of the answering machine is over: a message can be left now.');
    else if (event.type === 'verdict' && event.answerer === 'machine')
      this.model.inform('An answering machine has answered; its greeting is not over yet.');
  }

  #onTransfer(requestId: string, { state, status, reason }: Extract<AgentAnswer, { type: 'transfer-progress' }>): void {
    const isOpen = this.#open.has(requestId);
    if (state === 'accepted') return this.#give(requestId, { result: 'The transfer is under way.' }, false);
    if (state === 'ended') return;
    if (state === 'answered') return this.model.inform(PARTY_ANSWERED);
    const wasUnderWay = this.#transfers.delete(requestId);
    if (isOpen) this.#give(requestId, { error: 'TRANSFER_FAILED', status, ...(reason === undefined ? {} : { reason }) });
    else if (wasUnderWay) this.model.inform(`The transfer failed${reason === undefined ? '' : ` (${reason})`}. The caller is still here.`);
  }

  #give(callId: string, output: object, continues = true): void {
    if (this.#open.delete(callId)) this.model.give(callId, output, continues);
  }
}

const PARTY_ANSWERED =
  'The other party has answered. You talk with them now; the caller hears music. Then transfer again, with the step conference, complete or cancel.';
const MAX_BRIEFING = 2_000;
const BAD_HEADERS = {
  error: 'BAD_SIP_HEADERS',
  message: 'sip_headers must have one "Name: value" a line, at most 10 of 1,024 bytes each.',
};

type Fields = Readonly<Record<string, unknown>>;

function transferOf(requestId: string, { to, briefing, step }: Fields, headers: SipHeaders | null): AgentRequest {
  if (step === 'conference' || step === 'complete' || step === 'cancel') return { type: 'transfer-step', requestId, step };
  const target = { type: 'transfer', requestId, to: textOf(to), ...(headers === null ? {} : { sipHeaders: headers }) } as const;
  if (step === 'consult') return { ...target, isConsultation: true };
  const text = textOf(briefing).slice(0, MAX_BRIEFING);
  return { ...target, ...(text === '' ? {} : { briefing: text }) };
}

/** Lines of text, for not every provider's schema can have an object with names of its own. `null`: none. `undefined`: they cannot be read. */
function headersOf(fields: Fields): SipHeaders | null | undefined {
  const lines = textOf(fields['sip_headers']).split('\n');
  const named = lines.map((line) => /^([^:]*):(.*)$/s.exec(line.trim()) ?? [line.trim(), line.trim(), '']);
  const pairs = named.map(([, name = '', value = '']) => [name.trim(), value.trim()] as const).filter(([name]) => name !== '');
  if (pairs.length === 0) return null;
  const read = sipHeaders.safeParse(Object.fromEntries(pairs));
  return read.success && pairs.length === Object.keys(read.data).length ? read.data : undefined;
}
