import { newUuid } from '../../lib/ids.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import type { AgentRequest } from '../model/agent.js';
import { DEFAULT_AGENT_SETTINGS } from '../model/agent-record.js';
import { numberOf } from '../admission/target.js';
import type { E164 } from '../model/e164.js';
import { headerRefusal, headersFromAgent, unlistedHeader } from '../model/passed-headers.js';
import type { OutboundTrunk, Route } from '../model/records.js';
import type { Reason } from '../model/reasons.js';
import type { DoNotCallList } from '../ports/batches.js';
import type { DialLedger } from '../ports/ports.js';
import type { PlaceRequest } from '../ports/place-call.js';
import { beginningOf, type CallData, type LegNote } from './call.js';
import { introduction, peerMissing } from './second-leg.js';
import { isJoined, maxDurationMs, type CallEffect, type CallEvent, type CallState, type JoinedCall, type LegRules } from './state.js';

/** The calls of this gateway, for one of them. */
export interface OtherCalls {
  /** Begins a second leg, with this much time to talk. Why not; `null`: it has begun. */
  placeLeg(request: PlaceRequest, joins: JoinedCall): Reason | null;
  /** False: the call is not in progress here. */
  tell(callId: string, event: CallEvent): boolean;
}

interface LegServices {
  readonly others: OtherCalls;
  readonly dials: Pick<DialLedger, 'trunkOf' | 'reserve' | 'settle' | 'withdraw' | 'disown'>;
  readonly doNotCall: Pick<DoNotCallList, 'find'>;
}

interface LegOwner {
  readonly call: CallData;
  readonly dispatch: (event: CallEvent) => void;
  /** How long the call may still last, in milliseconds. */
  readonly remainingMs: () => number;
  /** Milliseconds of the epoch. */
  readonly wallMs: () => number;
  /** For the trace. */
  readonly note: (text: string) => void;
  readonly log: Log;
}

/** To the agent, in place of the carrier's answer to a REFER that was not sent. */
const FORBIDDEN = 403;
/** As `POST /v1/calls` rings when it is not told otherwise. */
const RING_TIMEOUT_MS = 60_000;

/** How the target of a transfer is dialled, if the carrier takes no REFER. */
export function secondLegRules(given: Partial<LegRules> = {}): LegRules {
  return { callId: newUuid(), from: null, ringTimeoutMs: RING_TIMEOUT_MS, timeLimitMs: null, briefing: null, afterwards: 'end', ...given };
}

type TransferRequest = Extract<AgentRequest, { type: 'transfer' | 'transfer-step' }>;

export function isTransfer(request: AgentRequest): request is TransferRequest {
  return request.type === 'transfer' || request.type === 'transfer-step';
}

/** What an agent asks for. A briefing is spoken in the agent's language. */
export function transferEvent(request: TransferRequest, route: Route | null): CallEvent {
  if (request.type === 'transfer-step') return request;
  const { requestId, to, briefing, isConsultation, sipHeaders = {} } = request;
  const language = route?.agent?.language ?? DEFAULT_AGENT_SETTINGS.language;
  const spoken = briefing === undefined ? null : { text: briefing, language };
  const leg = secondLegRules({ briefing: isConsultation === true ? 'by-agent' : spoken });
  return { type: 'transfer-asked', requestId, to, leg, sipHeaders };
}

/** Older ones are forgotten: a document may dial for ever. */
const MAX_NOTES = 20;

/** The second call of a transfer: places it, sends it events, and notes its outcome for the record. */
export class CallLegs {
  /** The call that the trunk is to dial for our REFER, as it is reserved. */
  #referred: { readonly referId: number; readonly callId: string; readonly longestMs: number } | null = null;

  constructor(
    private readonly services: LegServices,
    private readonly owner: LegOwner,
  ) {}

  get #state(): CallState {
    return this.owner.call.now.state;
  }

  perform(effect: Extract<CallEffect, { do: 'dial-leg' | 'notify-call' }>): void {
    if (effect.do === 'notify-call') return this.#notify(effect.callId, effect.event);
    const { leg } = effect;
    const note = { callId: leg.callId, to: leg.to, answeredAtMs: null, endedAtMs: null, reason: null };
    this.owner.call.note({ legs: [...this.owner.call.now.progress.legs, note].slice(-MAX_NOTES) });
    this.#dial(effect).then(
      (reason) => {
        if (reason !== null) this.#ended(leg.callId, reason);
      },
      (error: unknown) => {
        this.owner.log.error({ error: errorText(error) }, 'call.leg.not_dialled');
        this.#ended(leg.callId, 'STORE_UNAVAILABLE');
      },
    );
  }

  /** Asks what has to be asked first. @param send sends the REFER */
  refer({ target, referId, needs }: Extract<CallEffect, { do: 'refer' }>, send: () => void): void {
    const number = numberOf(target);
    const { route } = this.#state;
    if (needs === 'nothing' || number === null || route === null) return send();
    const refuse = (refusal: string): void => {
      this.owner.log.warn({}, 'call.refer.not_permitted');
      this.owner.dispatch({ type: 'refer-answered', status: FORBIDDEN, referId, refusal });
    };
    (needs === 'reservation' ? this.#reserve(number, referId, route) : this.#unlessListed(number, route)).then(
      (refusal) => {
        if (refusal !== null) return refuse(refusal);
        // The call may have ended meanwhile.
        if (this.#state.transfer?.referId === referId) send();
        else this.#settleReferred(false);
      },
      (error: unknown) => refuse(errorText(error)),
    );
  }

  /** The target is dialled at the expense of the organization: it is reserved as a call of its own. Why not; `null`: it is. */
  async #reserve(to: E164, referId: number, route: Route): Promise<string | null> {
    const { facts, placing } = this.#state;
    const { org, number } = route;
    const call = { ...beginningOf(this.owner.call.now.origin), call_id: newUuid() };
    const longestMs = maxDurationMs({ facts, route });
    // The carrier of a call that came in dials it by whichever trunk it has.
    const endpoint = placing === null ? null : (number.outbound?.sip_endpoint ?? null);
    const request = { orgId: org.org_id, from: number.phone_number, to, endpoint, call, isReferred: true, maxDurationMs: longestMs };
    const permitted = await this.services.dials.reserve(request);
    if (!permitted.ok) return permitted.error.detail;
    this.#referred = { referId, callId: call.call_id, longestMs };
    return null;
  }

  async #unlessListed(to: E164, { org }: Route): Promise<string | null> {
    const listed = await this.services.doNotCall.find(org.org_id, [to]);
    return listed.has(to) ? `${to} is on the do-not-call list` : null;
  }

  /**
   * Once the transfer is over: of a call that went to its target it is not known how long it lasts, and the whole cost stays.
   * @param wasRefused the carrier dialled nothing
   */
  #settleReferred(wasRefused: boolean): void {
    const { name, transfer, reason } = this.#state;
    const referred = this.#referred;
    if (referred === null || (name !== 'Ended' && transfer?.referId === referred.referId)) return;
    this.#referred = null;
    if (wasRefused) this.services.dials.withdraw(referred.callId);
    else this.services.dials.settle(referred.callId, name === 'Ended' && reason === 'TRANSFERRED' ? referred.longestMs : 0);
  }

  /** An event that the call has taken, before its effects. */
  note(event: CallEvent): void {
    this.#settleReferred(event.type === 'refer-answered' && event.status !== null && event.status >= 300);
    if (event.type === 'leg-answered' || event.type === 'leg-consulting') this.#change(event.callId, { answeredAtMs: this.owner.wallMs() });
    if (event.type === 'leg-ended') this.#change(event.callId, { endedAtMs: this.owner.wallMs(), reason: event.reason });
  }

  /** Another host has the call: what is reserved for its transfer stays so. */
  close(): void {
    if (this.#referred !== null) this.services.dials.disown(this.#referred.callId);
    this.#referred = null;
  }

  /** After a restart: the other call may be gone, or know nothing of this one. */
  resume(): void {
    const { facts, second, agentFacing } = this.#state;
    for (const effect of introduction(this.#state)) if (effect.do === 'notify-call') this.#notify(effect.callId, effect.event);
    if (agentFacing === null || !isJoined(this.#state)) return;
    const { joins } = facts;
    if (joins !== undefined) this.#notify(joins.callId, { type: 'leg-answered', callId: joins.legId, side: agentFacing });
    else if (second !== null) this.#notify(second.callId, { type: 'side-changed', callId: second.callId, side: agentFacing });
  }

  #notify(callId: string, event: CallEvent): void {
    if (!this.services.others.tell(callId, event)) this.owner.dispatch(peerMissing(this.#state));
  }

  #ended(callId: string, reason: Reason): void {
    this.owner.dispatch({ type: 'leg-ended', callId, reason, status: null });
  }

  #change(callId: string, change: Partial<LegNote>): void {
    const { legs } = this.owner.call.now.progress;
    this.owner.call.note({ legs: legs.map((note) => (note.callId === callId && note.reason === null ? { ...note, ...change } : note)) });
  }

  async #dial({ leg, joins }: Extract<CallEffect, { do: 'dial-leg' }>): Promise<Reason | null> {
    const { route } = this.#state;
    if (route === null) return 'INTERNAL_ERROR';
    const { org, number } = route;
    const from = leg.from ?? number.phone_number;
    const trunk: OutboundTrunk | null =
      from === number.phone_number ? number.outbound : await this.services.dials.trunkOf(org.org_id, from);
    if (trunk === null) return 'DIAL_NOT_ALLOWED';
    const { sipHeaders = {} } = leg;
    const unlisted = unlistedHeader(sipHeaders, headersFromAgent({ inbound: null, outbound: trunk }, true));
    if (unlisted !== null) {
      this.owner.note(`${headerRefusal(unlisted).message} The second leg is not dialled: its trunk has another list.`);
      return 'DIAL_NOT_ALLOWED';
    }
    // The call may have ended meanwhile.
    if (this.#state.second?.callId !== leg.callId) return null;
    const { callId, to, ringTimeoutMs, timeLimitMs } = leg;
    const request = {
      callId,
      orgId: org.org_id,
      from,
      to,
      trunk,
      agent: null,
      ringTimeoutMs,
      detectAnswerer: false,
      timeLimitMs: Math.min(timeLimitMs ?? Infinity, this.owner.remainingMs()),
      sipHeaders,
    };
    return this.services.others.placeLeg(request, { ...joins, callId: this.owner.call.now.origin.callId });
  }
}
