import type { MediaDirection } from '../model/media.js';
import type { MediaEncryption } from '../model/records.js';
import type { Reason } from '../model/reasons.js';
import { isReachable, readAnswer, readOffer, readRelaySdp, type CarrierMedia, type OwnOffer, type RelaySide } from '../sdp/sdp-read.js';
import { endpointSdp, renewedOffer, repeatedOffer, sessionOfferSdp, sessionSdp } from '../sdp/sdp-write.js';
import { agentSideOf, atHome, HELD_PING_MS, isSameRelaySide, isSameSide, sideDue, sideTaken, notifySide } from './agent-side.js';
import { failJoining } from './second-leg.js';
import { isJoined, type AgentSide, type AgreedSession, type CallEffect, type CallEvent, type CallState, type Exchange } from './state.js';

// Offer and answer within an answered call (RFC 3264 §8, RFC 3261 §14, RFC 3311): the carrier's re-INVITE and UPDATE, with and without
// an offer, and a re-INVITE of ours when another relay takes the call. The call lives whatever comes of it, save where its media is lost.

type EventOf<Type extends CallEvent['type']> = Extract<CallEvent, { type: Type }>;

/** As a step of the call; `lost`: the call cannot go on, for this reason. */
export interface OfferAnswerStep {
  readonly state: CallState;
  readonly effects: readonly CallEffect[];
  readonly lost?: Extract<Reason, 'MEDIA_LOST' | 'MEDIA_MOVE_REFUSED' | 'BAD_ANSWER'>;
}

const NOTHING: readonly CallEffect[] = [];

/** Tries to reach the carrier of a lost host, and their interval. */
const MAX_UNREACHED = 15;
const UNREACHED_MS = 2_000;
/** Tries of a move that fails at a relay, and their interval: 2 s in all, as long as an rtpengine may take to restart. */
const MAX_MOVES = 6;
/** The trunk itself refused nothing: it is away, or has no such call. */
const UNREACHED: ReadonlySet<number> = new Set([408, 481, 503]);
const MOVE_AGAIN_MS = 400;

export const IDLE: Exchange = { name: 'Idle' };

/** The carrier's re-INVITE or UPDATE. */
export function onReoffered(state: CallState, event: EventOf<'reoffered'>): OfferAnswerStep {
  const { session, exchange } = state;
  const { requestId, method, sdp } = event;
  const reject = (reason: Reason): OfferAnswerStep => ({ state, effects: [{ do: 'reject', requestId, reason }] });
  // A refresh by UPDATE touches no session.
  if (sdp === '' && method === 'UPDATE') return { state, effects: [{ do: 'accept', requestId, sdp: null }] };
  // RFC 5407 §3.1.4: an offer of ours in the 200 is not answered yet.
  if (session === null) return reject(state.lateOffer === null ? 'NO_DIALOG' : 'REQUEST_PENDING');
  switch (exchange.name) {
    case 'Offering':
    case 'Answering':
      // RFC 3261 §14.2, RFC 3311 §5.2: one at a time.
      return reject('EXCHANGE_PENDING');
    case 'AwaitingAnswer':
    case 'MovingOut':
    case 'Inviting':
    case 'Refreshing':
    case 'MovingIn':
      return reject('REQUEST_PENDING');
    case 'Idle':
      return sdp === '' ? offerAgain(state, session, requestId, null) : renegotiate(state, session, requestId, sdp);
    // Their re-INVITE is what the 491 made room for: it moves the call as well.
    case 'Retrying':
      return sdp === '' ? offerAgain(state, session, requestId, exchange.carrierFacing) : renegotiate(state, session, requestId, sdp);
  }
}

/** A re-INVITE without an offer gets what a first INVITE would get, all directions open (RFC 3261 §14.2, RFC 6337 §5.2.5). */
function offerAgain(state: CallState, session: AgreedSession, requestId: number, movingTo: RelaySide | null): OfferAnswerStep {
  const offer = versioned(state, session, session.media, movingTo ?? session.carrierFacing, lateOffer(state, session, movingTo));
  if (offer === undefined) return { state, effects: [{ do: 'reject', requestId, reason: 'INTERNAL_ERROR' }] };
  return {
    state: { ...state, session: { ...session, ...offer }, exchange: { name: 'AwaitingAnswer', carrierFacing: movingTo } },
    effects: [
      { do: 'stop-timer', timer: 'reinvite' },
      { do: 'accept', requestId, sdp: offer.sentSdp },
    ],
  };
}

/** Another codec needs an exchange with rtpengine: the other carrier of a joined call, or the relay that the call moves to, has this one. */
function lateOffer(state: CallState, { media }: AgreedSession, movingTo: RelaySide | null): OwnOffer {
  return isJoined(state) || movingTo !== null ? repeatedOffer(media) : renewedOffer(media);
}

function renegotiate(state: CallState, session: AgreedSession, requestId: number, sdp: string): OfferAnswerStep {
  // A session refresh: the same answer, to the letter.
  if (sdp === session.carrierSdp && state.exchange.name === 'Idle')
    return { state, effects: [{ do: 'accept', requestId, sdp: session.sentSdp }] };
  const read = readOffer(sdp, encryptionOf(state), session.media.codec.name);
  const reject = (reason: Reason): OfferAnswerStep => ({ state, effects: [{ do: 'reject', requestId, reason }] });
  if (!read.ok) return reject(read.error);
  // The other carrier of a joined call gets these packets as they are.
  if (isJoined(state) && isOtherFormat(session.media, read.value)) return reject('NO_COMMON_CODEC');
  return isReachable(read.value.address, session.carrierFacing.address)
    ? relayAgain(state, requestId, read.value, sdp)
    : reject('ADDRESS_FAMILY_UNSUPPORTED');
}

function relayAgain(state: CallState, requestId: number | null, media: CarrierMedia, sdp: string): OfferAnswerStep {
  const attempt = state.attempt + 1;
  return {
    state: { ...state, attempt, exchange: { name: 'Offering', requestId, media, sdp } },
    effects: [
      { do: 'stop-timer', timer: 'reinvite' },
      { do: 'offer-relay', media, attempt },
    ],
  };
}

/** The answer to our offer came in an ACK, or did not. */
export function onAnswerInAck(state: CallState, sdp: string): OfferAnswerStep {
  const { session, exchange } = state;
  const idle = { ...state, exchange: IDLE };
  if (exchange.name !== 'AwaitingAnswer' || session === null) return { state, effects: NOTHING };
  const { carrierFacing } = exchange;
  // Nothing was agreed anew, so everything stays as it was; so too when the answer is the session that there is.
  if (carrierFacing === null && (sdp === '' || sdp === session.carrierSdp)) return settle(idle, []);
  const answer = readAnswer(sdp, lateOffer(state, session, carrierFacing));
  if (!answer.ok || !isReachable(answer.value.address, session.carrierFacing.address))
    return { state: idle, effects: NOTHING, lost: 'BAD_ANSWER' };
  const to = agentSideOf(state);
  return carrierFacing === null || to === null
    ? relayAgain(idle, null, answer.value, sdp)
    : moveIn(state, answer.value, sdp, { carrierFacing, to });
}

function moveIn(
  state: CallState,
  media: CarrierMedia,
  sdp: string,
  { carrierFacing, to }: { readonly carrierFacing: RelaySide; readonly to: AgentSide },
): OfferAnswerStep {
  return {
    state: { ...state, exchange: { name: 'MovingIn', media, sdp, carrierFacing, to } },
    effects: [{ do: 'answer-from-carrier', media, attempt: state.attempt }],
  };
}

export function onRelayOfferedAgain(state: CallState, sdp: string): OfferAnswerStep {
  const { exchange, session } = state;
  if (exchange.name !== 'Offering' || session === null) return { state, effects: NOTHING };
  const agentFacing = readRelaySdp(sdp);
  if (agentFacing === undefined) return offerAnswerFailed(state);
  const { requestId, media } = exchange;
  return {
    state: { ...state, exchange: { name: 'Answering', requestId, media, sdp: exchange.sdp, agentFacing } },
    effects: [{ do: 'answer-relay', sdp: agentSideSdpOf(state, media), attempt: state.attempt }],
  };
}

export function onRelayAnsweredAgain(state: CallState, sdp: string): OfferAnswerStep {
  const { exchange, session } = state;
  if (exchange.name !== 'Answering' || session === null) return { state, effects: NOTHING };
  const carrierFacing = readRelaySdp(sdp);
  const { requestId, media, agentFacing } = exchange;
  const own = carrierFacing === undefined ? undefined : versioned(state, session, media, carrierFacing);
  if (carrierFacing === undefined || own === undefined) return offerAnswerFailed(state, 'SRTP_SUITE_UNSUPPORTED');
  const next: AgreedSession = {
    ...session,
    media,
    carrierFacing,
    carrierSdp: exchange.sdp,
    ...(requestId === null ? {} : own),
  };
  return settle({ ...state, exchange: IDLE, session: next, agentFacing }, [
    ...legEffects(state, media, agentFacing),
    ...(requestId === null ? [] : [{ do: 'accept', requestId, sdp: own.sentSdp } as const]),
  ]);
}

/** The agent side with what is agreed now; `''` never: a session has one. */
function agentSideSdpOf(state: CallState, media: CarrierMedia): string {
  const side = agentSideOf(state);
  return side === null ? '' : endpointSdp(media, side.local, side.key);
}

/** What the endpoint has to know of a change. */
function legEffects(state: CallState, media: CarrierMedia, agentFacing: RelaySide): CallEffect[] {
  const { agentFacing: before, session, local, agentSideKey } = state;
  if (isJoined(state)) return isSameRelaySide(before, agentFacing) ? [] : notifySide(state, agentFacing);
  if (state.isLegDue && local !== null) return [{ do: 'open-leg', media, agentFacing, reserved: { local, agentSideKey } }];
  const isElsewhere =
    before?.address !== agentFacing.address || before.rtpPort !== agentFacing.rtpPort || before.rtcpPort !== agentFacing.rtcpPort;
  // With SRTP on the agent's side too, rtpengine hands the carrier's key through.
  const isRekeyed = before?.crypto?.inline !== agentFacing.crypto?.inline;
  const { direction, isHeld } = media;
  const heldBefore = session?.media.isHeld === true;
  return [
    ...(isElsewhere || isRekeyed || isOtherFormat(session?.media, media)
      ? [{ do: 'change-leg', media, agentFacing, agentSideKey: state.agentSideKey } as const]
      : []),
    ...(session?.media.direction === direction ? [] : directLeg(direction, isHeld === heldBefore ? null : isHeld)),
  ];
}

/** @param isHeld whether the carrier holds the call from now on; `null`: as before */
export function directLeg(direction: MediaDirection, isHeld: boolean | null): CallEffect[] {
  const directed = { do: 'direct-leg', direction, isHeld } as const;
  if (isHeld === null) return [directed];
  return [directed, isHeld ? { do: 'start-timer', timer: 'held', delayMs: HELD_PING_MS } : { do: 'stop-timer', timer: 'held' }];
}

function isOtherFormat(before: CarrierMedia | undefined, after: CarrierMedia): boolean {
  const { codec, telephoneEvent, ownTelephoneEvent } = after;
  if (before?.codec.payloadType !== codec.payloadType || before.codec.name !== codec.name) return true;
  return before.telephoneEvent !== telephoneEvent || before.ownTelephoneEvent !== ownTelephoneEvent;
}

/**
 * The relay of the call is gone: another one gets it, and the carrier a re-INVITE. From then on rtpengine passes the carrier's SRTP through
 * to the leg: it could not find the rollover counter of a carrier that keeps its key, and the leg can.
 */
export function onRelayLost(state: CallState, { mayMove, newKey }: EventOf<'relay-lost'>): OfferAnswerStep {
  const passes = state.session !== null && state.session.media.crypto !== null && !isJoined(state);
  return moveAway(passes ? { ...state, agentSideKey: state.agentSideKey ?? newKey } : state, mayMove);
}

/** Another relay gets the call, with the agent side that it has now, and the carrier a re-INVITE. */
export function moveAway(state: CallState, mayMove: boolean): OfferAnswerStep {
  const { exchange, session } = state;
  const pending = rejectPending(state, 'INTERNAL_ERROR');
  if (!mayMove || session === null) return { state: { ...state, exchange: IDLE }, effects: pending, lost: 'MEDIA_LOST' };
  // Until the ACK no request of ours may go out; it starts the move. So does the answer to our re-INVITE, whose relay is lost meanwhile.
  if (state.name === 'AwaitingAck' || ['AwaitingAnswer', 'Inviting', 'Refreshing', 'Retrying'].includes(exchange.name))
    return { state: { ...state, isMoveDue: true }, effects: NOTHING };
  return moveOut(state, session, pending);
}

/** A relay failed within a move: another try, after a while. */
function moveAgain(state: CallState): OfferAnswerStep {
  return {
    state: { ...state, exchange: IDLE, isMoveDue: true },
    effects: [{ do: 'start-timer', timer: 'reinvite', delayMs: MOVE_AGAIN_MS }],
  };
}

function moveOut(state: CallState, session: AgreedSession, before: readonly CallEffect[]): OfferAnswerStep {
  const to = agentSideOf(state);
  if (to === null || state.moves >= MAX_MOVES) return { state: { ...state, exchange: IDLE }, effects: before, lost: 'MEDIA_LOST' };
  const due = { ...state, isMoveDue: false, moves: state.moves + 1 };
  const { state: moving, effects } = changeSide(due, session, to, [...before, { do: 'leave-relay' }]);
  return { state: { ...moving, exchange: { name: 'MovingOut', to, isMove: true } }, effects };
}

/** rtpengine gets our offer for this agent side, and then the carrier's last answer again. The carrier gets a re-INVITE only where its own
 * side of rtpengine is another one. */
export function changeSide(state: CallState, session: AgreedSession, to: AgentSide, before: readonly CallEffect[]): OfferAnswerStep {
  const attempt = state.attempt + 1;
  return {
    state: { ...state, attempt, exchange: { name: 'MovingOut', to, isMove: false } },
    effects: [
      ...before,
      { do: 'offer-to-carrier', sdp: endpointSdp(session.media, to.local, to.key), passesSrtp: to.key !== null, attempt },
    ],
  };
}

export function onRelayOfferedToCarrier(state: CallState, sdp: string): OfferAnswerStep {
  const { exchange, session } = state;
  if (exchange.name !== 'MovingOut' || session === null) return { state, effects: NOTHING };
  const carrierFacing = readRelaySdp(sdp);
  // rtpengine chooses its tag anew; the session's stays.
  const keyed = carrierFacing === undefined ? undefined : withTag(carrierFacing, session.media);
  if (!exchange.isMove && keyed !== undefined && isSameRelaySide(session.carrierFacing, keyed))
    return changeSilently(state, session, exchange.to);
  const own = keyed === undefined ? undefined : versioned(state, session, session.media, keyed, repeatedOffer(session.media));
  if (keyed === undefined || own === undefined) return offerAnswerFailed(state);
  return {
    state: {
      ...state,
      session: { ...session, ...own },
      exchange: { name: 'Inviting', sdp: own.sentSdp, carrierFacing: keyed, to: exchange.to },
    },
    effects: [{ do: 'reinvite', sdp: own.sentSdp, attempt: state.attempt }],
  };
}

/** The carrier's side stays as it is. */
function changeSilently(state: CallState, session: AgreedSession, to: AgentSide): OfferAnswerStep {
  const { media, carrierFacing, carrierSdp } = session;
  // What the carrier refused is not our description.
  const own = state.second?.phase === 'leaving' ? versioned(state, session, media, carrierFacing) : undefined;
  return moveIn({ ...state, session: { ...session, ...own } }, media, carrierSdp, { carrierFacing, to });
}

function withTag(carrierFacing: RelaySide, media: CarrierMedia): RelaySide {
  const { crypto } = media;
  return carrierFacing.crypto === null || crypto === null
    ? carrierFacing
    : { ...carrierFacing, crypto: { ...carrierFacing.crypto, tag: crypto.tag } };
}

/** The carrier's final answer to our re-INVITE; drachtio-srf has acknowledged it. */
export function onReinviteAnswered(state: CallState, event: EventOf<'reinvite-answered'>): OfferAnswerStep {
  const { exchange, session } = state;
  if (exchange.name === 'Refreshing' && session !== null) return onRefreshed({ ...state, exchange: IDLE }, session, event);
  if (exchange.name !== 'Inviting' || session === null) return { state, effects: NOTHING };
  // RFC 3261 §14.1: glare.
  if (event.status === 491) return retry(state, exchange, event.retryAfterMs);
  // The carrier's connection went with its host: it may come back.
  const { unansweredProbes } = state;
  if (event.status === 503 && state.isLegDue && unansweredProbes < MAX_UNREACHED)
    return retry({ ...state, unansweredProbes: unansweredProbes + 1 }, exchange, UNREACHED_MS);
  const answer = event.status < 300 ? readAnswer(event.sdp, repeatedOffer(session.media)) : undefined;
  if (answer?.ok !== true) return exchangeLost(state, event.status);
  if (state.isMoveDue) {
    const agreed = { ...session, media: answer.value, carrierFacing: exchange.carrierFacing, carrierSdp: event.sdp };
    return moveOut({ ...state, session: agreed }, agreed, []);
  }
  return moveIn(state, answer.value, event.sdp, exchange);
}

/** A re-INVITE that changes nothing. One that cannot be sent now is asked for again. */
export function onRefreshDue(state: CallState): OfferAnswerStep {
  const { exchange, session } = state;
  if (exchange.name !== 'Idle' || session === null || state.isMoveDue) return { state, effects: NOTHING };
  const attempt = state.attempt + 1;
  return { state: { ...state, attempt, exchange: { name: 'Refreshing' } }, effects: [{ do: 'reinvite', sdp: session.sentSdp, attempt }] };
}

/** Whatever comes of a refresh, the call goes on; the carrier's answer may be another one than before. */
function onRefreshed(idle: CallState, session: AgreedSession, { status, sdp }: EventOf<'reinvite-answered'>): OfferAnswerStep {
  // What is offered again may have been the offer of a late answer, with both codecs.
  const answer = status < 300 && sdp !== session.carrierSdp ? readAnswer(sdp, lateOffer(idle, session, null)) : undefined;
  if (answer?.ok !== true || !isReachable(answer.value.address, session.carrierFacing.address)) return settle(idle, []);
  if (isJoined(idle) && isOtherFormat(session.media, answer.value)) return settle(idle, []);
  if (!idle.isMoveDue) return relayAgain(idle, null, answer.value, sdp);
  const agreed = { ...session, media: answer.value, carrierSdp: sdp };
  return moveOut({ ...idle, session: agreed }, agreed, []);
}

/** The call goes on only where it was about to be joined with another one: it is with its agent again. */
function exchangeLost(state: CallState, status: number | null): OfferAnswerStep {
  const { exchange, session } = state;
  const idle = { ...state, exchange: IDLE };
  const own = agentSideOf(state);
  const isOnItsWay = 'to' in exchange && own !== null && !isSameSide(exchange.to, own);
  if (!isOnItsWay || isJoined(state) || state.isBriefing || state.isLegDue || session === null) {
    // The carrier refused nothing.
    if (status === null && 'to' in exchange && state.moves < MAX_MOVES) return moveAgain(state);
    const isRefused = status !== null && status >= 300 && !UNREACHED.has(status) && !isOnItsWay;
    return { state: idle, effects: NOTHING, lost: isRefused ? 'MEDIA_MOVE_REFUSED' : 'MEDIA_LOST' };
  }
  const failed = failJoining(idle, status);
  return changeSide(failed.state, session, own, failed.effects);
}

function retry(state: CallState, exchange: Extract<Exchange, { name: 'Inviting' }>, delayMs: number): OfferAnswerStep {
  return {
    state: { ...state, exchange: { ...exchange, name: 'Retrying' } },
    effects: [{ do: 'start-timer', timer: 'reinvite', delayMs }],
  };
}

export function onReinviteTimer(state: CallState): OfferAnswerStep {
  const { exchange, session } = state;
  const isDue = state.isMoveDue && (exchange.name === 'Idle' || exchange.name === 'Retrying');
  if (isDue && session !== null) return moveOut(state, session, []);
  if (exchange.name !== 'Retrying') return { state, effects: NOTHING };
  return {
    state: { ...state, exchange: { ...exchange, name: 'Inviting' } },
    effects: [{ do: 'reinvite', sdp: exchange.sdp, attempt: state.attempt }],
  };
}

export function onRelayMovedIn(state: CallState, sdp: string): OfferAnswerStep {
  const { exchange, session } = state;
  if (exchange.name !== 'MovingIn' || session === null) return { state, effects: NOTHING };
  const agentFacing = readRelaySdp(sdp);
  if (agentFacing === undefined) return offerAnswerFailed(state);
  const { media, carrierFacing, to } = exchange;
  const moved = { ...state, exchange: IDLE, agentFacing, local: to.local, agentSideKey: to.key, moves: 0 };
  const leg = legEffects({ ...state, local: to.local, agentSideKey: to.key }, media, agentFacing);
  const taken = sideTaken({ ...moved, session: { ...session, media, carrierFacing, carrierSdp: exchange.sdp } }, leg);
  return settle(taken.state, taken.effects);
}

/** rtpengine failed within an exchange: a carrier that waits gets an answer, and its call goes on as it was; a call that moves is lost. */
export function offerAnswerFailed(state: CallState, reason: Reason = 'INTERNAL_ERROR'): OfferAnswerStep {
  const { exchange } = state;
  const idle = { ...state, exchange: IDLE };
  if ((exchange.name === 'Offering' || exchange.name === 'Answering') && exchange.requestId !== null)
    return settle(idle, rejectPending(state, reason));
  return exchangeLost(state, null);
}

/** The answer to a request that waits, when the exchange that it began is over. */
export function rejectPending(state: CallState, reason: Reason): CallEffect[] {
  const { exchange } = state;
  if (exchange.name !== 'Offering' && exchange.name !== 'Answering') return [];
  return exchange.requestId === null ? [] : [{ do: 'reject', requestId: exchange.requestId, reason }];
}

const KEEP: CallEffect = { do: 'keep' };

/** An exchange is over: what a restart needs is kept, and a move that had to wait begins. */
export function settle(state: CallState, effects: readonly CallEffect[], keep = KEEP): OfferAnswerStep {
  const { session, name, exchange } = state;
  // A leg may open while an exchange is in progress.
  if (session === null || name !== 'Talking' || exchange.name !== 'Idle') return { state, effects: [...effects, keep] };
  if (state.isMoveDue) return moveOut(state, session, effects);
  const due = sideDue(state);
  return due === null ? { state: atHome(state), effects: [...effects, keep] } : changeSide(state, session, due, effects);
}

/** The media is to go elsewhere: now, or when the exchange in progress is over. */
export function changeOver(state: CallState, effects: readonly CallEffect[] = NOTHING): OfferAnswerStep {
  return state.name === 'Talking' ? settle(state, effects) : { state, effects };
}

/**
 * Our description of the session: with the version that it had when the text is the same, else with the next one (RFC 3264 §8).
 * @param offer left out: an answer
 */
function versioned(
  state: CallState,
  session: AgreedSession,
  media: CarrierMedia,
  carrierFacing: RelaySide,
  offer?: OwnOffer,
): Pick<AgreedSession, 'sentSdp' | 'version'> | undefined {
  const { sessionId } = state.facts;
  const described = (version: number): string | undefined => {
    const origin = { sessionId, version };
    return offer === undefined ? sessionSdp(media, carrierFacing, origin) : sessionOfferSdp(media, offer, carrierFacing, origin);
  };
  const same = described(session.version);
  if (same === undefined) return undefined;
  if (same === session.sentSdp) return { sentSdp: same, version: session.version };
  const version = session.version + 1;
  return { sentSdp: described(version) ?? same, version };
}

function encryptionOf(state: CallState): MediaEncryption {
  // An outbound trunk has no setting of its own.
  if (state.placing !== null) return 'required';
  return state.route?.number.inbound?.options.media_encryption ?? 'required';
}
