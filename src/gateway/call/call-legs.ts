import { newUuid } from '../../lib/ids.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import type { AgentRequest } from '../model/agent.js';
import { DEFAULT_AGENT_SETTINGS } from '../model/agent-record.js';
import type { OutboundTrunk, Route } from '../model/records.js';
import type { Reason } from '../model/reasons.js';
import type { DialLedger } from '../ports/ports.js';
import type { PlaceRequest } from '../ports/place-call.js';
import { isJoined } from './agent-side.js';
import { introduction, peerMissing } from './second-leg.js';
import type { CallEffect, CallEvent, CallState, JoinedCall, LegRules } from './state.js';

/** A call of ours to which a caller was, or was to be, transferred. Plain data: it is kept for a restart. */
export interface LegNote {
  /** UUID. */
  readonly callId: string;
  readonly to: string;
  /** Milliseconds of the epoch; `null`: it did not happen, or not yet. */
  readonly answeredAtMs: number | null;
  readonly endedAtMs: number | null;
  /** Why it ended; `null`: it has not. */
  readonly reason: Reason | null;
}

/** The calls of this gateway, for one of them. */
export interface OtherCalls {
  /** Begins a second leg, with this much time to talk. Why not; `null`: it has begun. */
  placeLeg(request: PlaceRequest, joins: JoinedCall): Reason | null;
  /** False: the call is not in progress here. */
  tell(callId: string, event: CallEvent): boolean;
}

interface LegServices {
  readonly others: OtherCalls;
  readonly dials: Pick<DialLedger, 'trunkOf'>;
}

interface LegOwner {
  readonly callId: string;
  readonly state: () => CallState;
  readonly dispatch: (event: CallEvent) => void;
  /** How long the call may still last, in milliseconds. */
  readonly remainingMs: () => number;
  /** Milliseconds of the epoch. */
  readonly wallMs: () => number;
  readonly log: Log;
}

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
  const { requestId, to, briefing, isConsultation } = request;
  const language = route?.agent?.language ?? DEFAULT_AGENT_SETTINGS.language;
  const spoken = briefing === undefined ? null : { text: briefing, language };
  return { type: 'transfer-asked', requestId, to, leg: secondLegRules({ briefing: isConsultation === true ? 'by-agent' : spoken }) };
}

/** Older ones are forgotten: a document may dial for ever. */
const MAX_NOTES = 20;

/** The second call of a transfer: places it, sends it events, and notes its outcome for the record. */
export class CallLegs {
  #notes: readonly LegNote[] = [];

  constructor(
    private readonly services: LegServices,
    private readonly owner: LegOwner,
  ) {}

  get notes(): readonly LegNote[] {
    return this.#notes;
  }

  restore(notes: readonly LegNote[]): void {
    this.#notes = notes;
  }

  perform(effect: Extract<CallEffect, { do: 'dial-leg' | 'tell-call' }>): void {
    if (effect.do === 'tell-call') return this.#tell(effect.callId, effect.event);
    const { leg } = effect;
    this.#notes = [...this.#notes, { callId: leg.callId, to: leg.to, answeredAtMs: null, endedAtMs: null, reason: null }].slice(-MAX_NOTES);
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

  /** An event that the call is about to take. */
  note(event: CallEvent): void {
    if (event.type === 'leg-answered' || event.type === 'leg-consulting') this.#change(event.callId, { answeredAtMs: this.owner.wallMs() });
    if (event.type === 'leg-ended') this.#change(event.callId, { endedAtMs: this.owner.wallMs(), reason: event.reason });
  }

  /** After a restart: the other call may be gone, or know nothing of this one. */
  resume(): void {
    const { facts, second, inside } = this.owner.state();
    for (const effect of introduction(this.owner.state())) if (effect.do === 'tell-call') this.#tell(effect.callId, effect.event);
    if (inside === null || !isJoined(this.owner.state())) return;
    const { joins } = facts;
    if (joins !== undefined) this.#tell(joins.callId, { type: 'leg-answered', callId: joins.legId, side: inside });
    else if (second !== null) this.#tell(second.callId, { type: 'side-changed', callId: second.callId, side: inside });
  }

  #tell(callId: string, event: CallEvent): void {
    if (!this.services.others.tell(callId, event)) this.owner.dispatch(peerMissing(this.owner.state()));
  }

  #ended(callId: string, reason: Reason): void {
    this.owner.dispatch({ type: 'leg-ended', callId, reason, status: null });
  }

  #change(callId: string, change: Partial<LegNote>): void {
    this.#notes = this.#notes.map((note) => (note.callId === callId && note.reason === null ? { ...note, ...change } : note));
  }

  async #dial({ leg, joins }: Extract<CallEffect, { do: 'dial-leg' }>): Promise<Reason | null> {
    const { route } = this.owner.state();
    if (route === null) return 'INTERNAL_ERROR';
    const { org, number } = route;
    const from = leg.from ?? number.phone_number;
    const trunk: OutboundTrunk | null =
      from === number.phone_number ? number.outbound : await this.services.dials.trunkOf(org.org_id, from);
    if (trunk === null) return 'DIAL_NOT_ALLOWED';
    // The call may have ended meanwhile.
    if (this.owner.state().second?.callId !== leg.callId) return null;
    const { callId, to, ringTimeoutMs, timeLimitMs } = leg;
    const request = {
      ...{ callId, orgId: org.org_id, from, to, trunk, agent: null, ringTimeoutMs, detectAnswerer: false },
      timeLimitMs: Math.min(timeLimitMs ?? Infinity, this.owner.remainingMs()),
    };
    return this.services.others.placeLeg(request, { ...joins, callId: this.owner.callId });
  }
}
