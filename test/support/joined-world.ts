import { expect } from 'vitest';
import { startCall, stepCall } from '../../src/gateway/call/machine.js';
import { peerMissing } from '../../src/gateway/call/second-leg.js';
import type { CallEffect, CallEvent, CallState, CallTimer } from '../../src/gateway/call/state.js';
import { CALL, FACTS, LATE_FACTS, PERMITTED, play, RELAY_LOST } from './call-machine.js';
import { KEY, offerSdp, OTHER_KEY } from './sdp.js';

const SUITE = 'AES_CM_128_HMAC_SHA1_80';
export const CALLER = 'caller';
const LEG = 'leg';

/** One call of the world: its machine, and what is open because of it. */
interface WorldCall {
  state: CallState;
  readonly done: CallEffect['do'][];
  readonly timers: Set<CallTimer>;
  /** The endpoint's leg, or its port pair; `isLegOpen`: not on its way any more, so that it dies with its thread. */
  hasLeg: boolean;
  isLegOpen: boolean;
  /** Its session in rtpengine; each move makes another one. */
  sessions: number;
  /** A dialog with its carrier, which one BYE ends. */
  hasDialog: boolean;
  /** 2xx to our INVITE that we have not acknowledged. */
  unacknowledged: number;
  /** Our INVITE has no final response. */
  isRinging: boolean;
  reserved: number;
}

interface Pending {
  readonly name: string;
  /** @param choice which of the ways in which it may end */
  readonly happen: (choice: number) => void;
}

/**
 * A call and the second leg to which it is transferred: both machines, and everything around them played. What takes time waits in
 * `pending` until a schedule lets it happen. Counts what is open.
 */
export class JoinedWorld {
  readonly calls = new Map<string, WorldCall>();
  readonly pending: Pending[] = [];
  readonly ended = new Map<string, WorldCall>();
  /** The caller's carrier gets a re-INVITE, as rtpengine cannot keep his key. */
  #requests = 0;
  readonly answered: number[] = [];

  /**
   * @param afterwards what follows when the other party hangs up
   * @param isBriefed the other party is told first what it is about; `by-agent`: talks with the agent first
   * @param isRekeyed rtpengine gives the caller another key, so that he gets a re-INVITE
   */
  constructor(
    private readonly afterwards: 'end' | 'go-on',
    private readonly isRekeyed: boolean,
    private readonly isBriefed: boolean | 'by-agent' = false,
  ) {
    const { state } = play(CALL, { ...FACTS, transferPrefixes: ['+49'] });
    this.#add(CALLER, state);
    Object.assign(this.#of(CALLER), { hasLeg: true, isLegOpen: true, sessions: 1, hasDialog: true });
  }

  /** The agent asks for a transfer; its REFER is refused. */
  transfer(): void {
    const briefing =
      this.isBriefed === 'by-agent' ? this.isBriefed : this.isBriefed ? { text: 'A caller for you.', language: 'ENG' } : null;
    const leg = {
      callId: LEG,
      from: '+15550100100' as const,
      ringTimeoutMs: 60_000,
      timeLimitMs: null,
      afterwards: this.afterwards,
      briefing,
    };
    this.dispatch(CALLER, { type: 'transfer-asked', requestId: 't', to: '+4930123456', leg: leg as never });
  }

  step(step: 'conference' | 'complete' | 'cancel'): void {
    this.dispatch(CALLER, { type: 'transfer-step', requestId: 's', step });
  }

  dispatch(callId: string, event: CallEvent): void {
    const call = this.calls.get(callId) ?? this.ended.get(callId);
    if (call === undefined) return;
    if (event.type === 'leg-opened' && call.hasLeg) call.isLegOpen = true;
    const step = stepCall(call.state, event);
    call.state = step.state;
    for (const effect of step.effects) this.#perform(callId, call, effect);
  }

  /** Whoever is at the other end of a call hangs up; nothing without a dialog. */
  bye(callId: string): void {
    const call = this.calls.get(callId);
    if (call?.hasDialog !== true) return;
    call.hasDialog = false;
    this.dispatch(callId, { type: 'bye', reason: 'CALLER_HANGUP' });
  }

  /** The carrier changes the session. */
  reoffer(callId: string, direction: 'sendrecv' | 'sendonly'): void {
    const call = this.calls.get(callId);
    if (call?.hasDialog !== true || call.unacknowledged > 0) return;
    this.#requests += 1;
    this.dispatch(callId, {
      type: 'reoffered',
      requestId: this.#requests,
      method: 'INVITE',
      sdp: offerSdp({ direction, payloads: '0 101' }),
    });
  }

  fire(callId: string, timer: CallTimer): void {
    const call = this.calls.get(callId);
    if (call?.timers.delete(timer) === true) this.dispatch(callId, { type: 'timer', timer });
  }

  /** rtpengine is lost for every call. */
  loseRelay(mayMove: boolean): void {
    for (const callId of [...this.calls.keys()]) this.dispatch(callId, { ...RELAY_LOST, mayMove });
  }

  /** The media thread dies, with the legs and agents that it has. */
  loseMedia(): void {
    for (const [callId, call] of [...this.calls]) {
      if (!call.isLegOpen) continue;
      Object.assign(call, { hasLeg: false, isLegOpen: false });
      this.dispatch(callId, { type: 'leg-lost' });
    }
  }

  loseDialog(callId: string): void {
    const call = this.calls.get(callId);
    if (call?.hasDialog !== true) return;
    Object.assign(call, { hasDialog: false, unacknowledged: 0 });
    this.dispatch(callId, { type: 'server-lost', reason: 'INTERNAL_ERROR' });
  }

  shutDown(): void {
    for (const callId of [...this.calls.keys()]) this.dispatch(callId, { type: 'hangup', reason: 'SHUTDOWN' });
  }

  settle(index: number, choice: number): void {
    const [one] = this.pending.splice(index % Math.max(1, this.pending.length), 1);
    one?.happen(choice);
  }

  /** Everything under way comes to its usual end. */
  drain(): void {
    for (let round = 0; round < 200 && this.pending.length > 0; round += 1) this.settle(0, 0);
    for (const [callId, { timers }] of [...this.calls]) if (timers.has('reinvite')) this.fire(callId, 'reinvite');
    for (let round = 0; round < 200 && this.pending.length > 0; round += 1) this.settle(0, 0);
  }

  /** Nothing is half done: the two calls are joined, or the caller has an agent, or nobody is there. */
  expectSettled(): void {
    expect(this.pending.map(({ name }) => name)).toEqual([]);
    const caller = this.calls.get(CALLER);
    const leg = this.calls.get(LEG);
    if (caller === undefined) return expect(leg).toBeUndefined();
    const { second, exchange, local, agentFacing, isLegDue } = caller.state;
    expect([caller.state.name, exchange.name, isLegDue]).toEqual(['Talking', 'Idle', false]);
    if (second === null) {
      expect(leg).toBeUndefined();
      expect([caller.hasLeg, local?.rtpPort]).toEqual([true, caller.hasLeg ? OWN_PORT : null]);
      return;
    }
    expect([second.phase, caller.hasLeg, leg?.state.name]).toEqual(['joined', false, 'Talking']);
    expect(local?.rtpPort).toBe(leg?.state.agentFacing?.rtpPort);
    expect(leg?.state.local?.rtpPort).toBe(agentFacing?.rtpPort);
  }

  /** Everything that was opened is closed, and every reserved cost settled. */
  expectNothingLeft(): void {
    expect([...this.calls.keys()]).toEqual([]);
    for (const [callId, call] of this.ended) {
      const { hasLeg, sessions, hasDialog, unacknowledged, isRinging, reserved } = call;
      expect({ callId, hasLeg, sessions, hasDialog, unacknowledged, isRinging, reserved }).toEqual({
        callId,
        hasLeg: false,
        sessions: 0,
        hasDialog: false,
        unacknowledged: 0,
        isRinging: false,
        reserved: 0,
      });
      expect(call.done.filter((kind) => kind === 'finish')).toHaveLength(1);
    }
    expect(this.answered.toSorted((one, other) => one - other)).toEqual(Array.from({ length: this.#requests }, (_, index) => index + 1));
  }

  #add(callId: string, state: CallState): void {
    this.calls.set(callId, {
      state,
      done: [],
      timers: new Set<CallTimer>(),
      hasLeg: false,
      isLegOpen: false,
      sessions: 0,
      hasDialog: false,
      unacknowledged: 0,
      isRinging: false,
      reserved: 0,
    });
  }

  #of(callId: string): WorldCall {
    const call = this.calls.get(callId);
    if (call === undefined) throw new Error(`no call ${callId}`);
    return call;
  }

  #later(name: string, ...ways: readonly (() => void)[]): void {
    this.pending.push({ name, happen: (choice) => ways[choice % ways.length]?.() });
  }

  /** A step of the media, which may fail. */
  #step(callId: string, name: string, event: CallEvent): void {
    const attempt = 'attempt' in event ? event.attempt : null;
    const worked = (): void => this.dispatch(callId, event);
    const failed = (): void => this.dispatch(callId, { type: 'failed', reason: 'MEDIA_UNAVAILABLE', attempt });
    // It seldom fails.
    this.#later(`${callId}: ${name}`, worked, worked, worked, worked, worked, worked, worked, failed);
  }

  #perform(callId: string, call: WorldCall, effect: CallEffect): void {
    call.done.push(effect.do);
    switch (effect.do) {
      case 'permit':
        return this.#later(
          `${callId}: permit`,
          () => {
            if (this.calls.has(callId)) call.reserved += 1;
            this.dispatch(callId, PERMITTED);
          },
          () => this.dispatch(callId, { type: 'not-permitted', reason: 'DO_NOT_CALL', detail: '' }),
        );
      case 'refer':
        return this.#later(`${callId}: REFER`, () =>
          this.dispatch(callId, { type: 'refer-answered', status: 405, referId: effect.referId }),
        );
      case 'offer-to-carrier':
        call.sessions = 1;
        return this.#step(callId, effect.do, {
          type: 'relay-offered-to-carrier',
          sdp: this.#outside(callId, effect.sdp),
          attempt: effect.attempt,
        });
      case 'offer-relay':
        return this.#step(callId, effect.do, { type: 'relay-offered', sdp: insideOf(callId), attempt: effect.attempt });
      case 'answer-relay':
        return this.#step(callId, effect.do, { type: 'relay-answered', sdp: this.#outside(callId, effect.sdp), attempt: effect.attempt });
      case 'answer-from-carrier':
        return this.#step(callId, effect.do, { type: 'relay-answered-from-carrier', sdp: insideOf(callId), attempt: effect.attempt });
      case 'reserve-leg':
        call.hasLeg = true;
        return this.#step(callId, effect.do, { type: 'leg-reserved', local: OWN, agentSideKey: null });
      case 'open-leg':
        call.hasLeg = true;
        return this.#step(callId, effect.do, { type: 'leg-opened' });
      case 'start-leg':
        if (callId === LEG && this.isBriefed === true)
          this.#later('all is said', () => this.dispatch(LEG, { type: 'hangup', reason: 'AGENT_HANGUP' }));
        return;
      case 'notify-agent':
        if (effect.answer.type === 'transfer-progress' && effect.answer.state === 'answered')
          this.#later(
            'the agent has said all',
            () => this.step('complete'),
            () => this.step('cancel'),
          );
        return;
      case 'close-leg':
        Object.assign(call, { hasLeg: false, isLegOpen: false });
        return;
      case 'connect-agent':
        return this.#later(`${callId}: ${effect.do}`, () => this.dispatch(callId, { type: 'agent-connected' }));
      case 'dial':
        return this.#dial(callId, call);
      case 'cancel-dial':
        return this.#later(`${callId}: CANCEL`, () => this.#final(callId, call, { type: 'dial-refused', status: 487, isLocal: false }));
      case 'acknowledge':
        call.unacknowledged = 0;
        return;
      case 'bye':
        call.hasDialog = false;
        return;
      case 'reinvite':
        return this.#later(
          `${callId}: re-INVITE`,
          ...[200, 488, 491, 408].map((status) => () => {
            const sdp = status === 200 ? offerSdp({ payloads: '0 101' }) : '';
            this.dispatch(callId, { type: 'reinvite-answered', status, sdp, retryAfterMs: 100, attempt: effect.attempt });
          }),
        );
      case 'ping':
        return this.#later(
          `${callId}: OPTIONS`,
          () => this.dispatch(callId, { type: 'pinged', isAnswered: true }),
          () => this.dispatch(callId, { type: 'pinged', isAnswered: false }),
        );
      case 'accept':
      case 'reject':
        this.answered.push(effect.requestId);
        return;
      case 'start-timer':
        call.timers.add(effect.timer);
        return;
      case 'stop-timer':
        call.timers.delete(effect.timer);
        return;
      case 'dial-leg': {
        const joins = { ...effect.joins, callId };
        this.#add(LEG, startCall({ ...LATE_FACTS, sessionId: '8', joins }, 60_000));
        return this.#later('the leg begins', () => this.dispatch(LEG, { type: 'placed' }));
      }
      case 'notify-call': {
        if (this.calls.has(effect.callId)) return this.#later(`told ${effect.event.type}`, () => this.#tell(callId, effect));
        return this.#tell(callId, effect);
      }
      case 'finish':
        Object.assign(call, { hasLeg: false, isLegOpen: false, sessions: 0, reserved: 0 });
        this.calls.delete(callId);
        this.ended.set(callId, call);
        return;
      default:
    }
  }

  #tell(from: string, { callId, event }: Extract<CallEffect, { do: 'notify-call' }>): void {
    if (this.calls.has(callId)) return this.dispatch(callId, event);
    const teller = this.calls.get(from);
    if (teller !== undefined) this.dispatch(from, peerMissing(teller.state));
  }

  #dial(callId: string, call: WorldCall): void {
    call.isRinging = true;
    const answer = offerSdp({ payloads: '0 101', port: 41_000 });
    const provisional = (status: number, sdp: string) => (): void => {
      if (call.isRinging) this.dispatch(callId, { type: 'dial-proceeding', status, sdp });
    };
    this.#later(`${callId}: 18x`, provisional(180, ''), provisional(183, answer), provisional(183, 'garbage'));
    this.#later(`${callId}: another 18x`, provisional(180, ''), provisional(183, answer));
    this.#later(
      `${callId}: final response`,
      () => this.#final(callId, call, { type: 'dial-answered', sdp: answer }),
      () => this.#final(callId, call, { type: 'dial-refused', status: 486, isLocal: false }),
      () => this.#final(callId, call, { type: 'dial-answered', sdp: 'garbage' }),
    );
  }

  /** Of an INVITE there is one. */
  #final(callId: string, call: WorldCall, event: Extract<CallEvent, { type: 'dial-answered' | 'dial-refused' }>): void {
    if (!call.isRinging) return;
    call.isRinging = false;
    if (event.type === 'dial-answered') Object.assign(call, { unacknowledged: 1, hasDialog: true });
    this.dispatch(callId, event);
  }

  /** What rtpengine offers or answers the carrier: another key, where it cannot keep the first one. */
  #outside(callId: string, agentSide: string): string {
    const isOwn = agentSide.includes(`m=audio ${String(OWN_PORT)} `);
    const key = callId === CALLER && this.isRekeyed && !isOwn ? KEY : OTHER_KEY;
    return offerSdp({ port: callId === CALLER ? 30_000 : 34_000, payloads: '0 101', crypto: [`1 ${SUITE} inline:${key}`] });
  }
}

const OWN_PORT = 20_000;
const OWN = { address: '127.0.0.1', rtpPort: OWN_PORT, rtcpPort: OWN_PORT + 1 };

function insideOf(callId: string): string {
  return offerSdp({ profile: 'RTP/AVP', crypto: [], port: callId === CALLER ? 31_000 : 35_000, payloads: '0 101' });
}
