import type { LegCommand } from '../model/leg-command.js';
import { publish } from '../ports/events.js';
import { digitOfEvent } from '../../rtp/dtmf/telephone-event.js';
import type { AgentDescription, ForkSettings } from '../model/agent.js';
import type { LegDescription, LegEvent, LegFigures, LegFormat, MediaAddress, RelayFigures, SrtpKeys } from '../model/media.js';
import type { Scope } from '../../lib/scope.js';
import type { CallTrace } from './call-trace.js';
import { isJoined, type CallEffect, type CallEvent, type CallState, type RelayLossCause } from './state.js';
import { SUITE, type CryptoLine, type CarrierMedia, type RelaySide } from '../sdp/sdp-read.js';
import { canonicalSdp } from '../sdp/sdp-write.js';
import { MediaUnavailableError, type MediaEndpoint, type MediaRelay, type RelayAnswer, type RelayCall } from '../ports/ports.js';

export interface MediaServices {
  readonly relay: MediaRelay;
  readonly endpoint: MediaEndpoint;
  /** New keys for an agent-facing leg with SRTP: 30 random bytes. */
  readonly newKey: () => Uint8Array;
  /** Whether a call may move to other ports of a relay now: an operator may forbid it, and a relay must live. */
  readonly mayMoveMedia: () => boolean;
  /** The agent-facing leg is encrypted too, from the start; SRTP is end to end then. */
  readonly agentSideSrtp: boolean;
}

type Opening = Extract<CallEffect, { do: 'open-leg' }>;

/** The media of one call: its session in rtpengine, its leg in the endpoint and the agent on it. What was opened is freed with the call's scope. */
export class CallMedia {
  readonly #take = (event: LegEvent): void => {
    if (event.type === 'media-lost') this.#deaths += 1;
    if (event.type === 'digit') publish('call.digit', { callId: this.callId, digit: digitOfEvent(event.event) ?? '' });
    this.onLegEvent(event);
  };
  /** Of media threads under this call. */
  #deaths = 0;
  #endpointFigures: LegFigures | null = null;
  #relayFigures: RelayFigures | null = null;
  /** Packets of early media, which came before their key: no errors of the call. */
  #earlyErrors: Promise<number> = Promise.resolve(0);
  #isEncrypted = true;
  /** rtpengine passes the carrier's SRTP through. */
  #passesSrtp: boolean;
  #hasRelaySession = false;
  /** Where an earlier process left the call's session. */
  #leftOn: string | null = null;
  #hasLeg = false;
  #closing: Promise<void> = Promise.resolve();
  #reopened: Promise<boolean | null> | null = null;
  #isOwned = false;

  constructor(
    private readonly callId: string,
    private readonly sipCallId: string,
    private readonly beside: string | null,
    private readonly services: MediaServices,
    private readonly scope: Scope,
    private readonly trace: CallTrace,
    private readonly onLegEvent: (event: LegEvent) => void,
  ) {
    this.#passesSrtp = services.agentSideSrtp;
  }

  /** `null`: the media thread died meanwhile, and the agent is connected again on the leg in the next one. */
  async connectAgent(agent: AgentDescription): Promise<CallEvent | null> {
    this.#ownLeg();
    const deaths = this.#deaths;
    try {
      await this.services.endpoint.connectAgent(this.callId, agent, this.#take);
    } catch (error) {
      if (error instanceof MediaUnavailableError && this.#deaths > deaths) return null;
      throw error;
    }
    return { type: 'agent-connected' };
  }

  /** Throws `MediaUnavailableError`. */
  startFork(fork: ForkSettings): void {
    this.#ownLeg();
    this.services.endpoint.startFork(this.callId, fork, this.#take);
  }

  send(command: LegCommand): void {
    this.services.endpoint.send(this.callId, command);
  }

  /** What was seen by the time the scope closed. */
  get quality(): { readonly endpoint: LegFigures | null; readonly relay: RelayFigures | null } {
    return { endpoint: this.#endpointFigures, relay: this.#relayFigures };
  }

  /** Whether the carrier has SRTP. */
  get isEncrypted(): boolean {
    return this.#isEncrypted;
  }

  get node(): string | null {
    return this.services.relay.nodeOf(this.callId);
  }

  async offer({ media, attempt }: Extract<CallEffect, { do: 'offer-relay' }>): Promise<CallEvent> {
    this.#isEncrypted = media.crypto !== null;
    this.#ownRelaySession();
    const { sdp } = await this.#relayed('offer', canonicalSdp(media), (given) => this.services.relay.offer(this.#relayCall, given));
    return { type: 'relay-offered', sdp, attempt };
  }

  async answer(sdp: string, attempt: number): Promise<CallEvent> {
    const answer = await this.#relayed('answer', sdp, (given) => this.services.relay.answer(this.#relayCall, given));
    return { type: 'relay-answered', sdp: answer.sdp, attempt };
  }

  async offerToCarrier({ sdp, passesSrtp, attempt }: Extract<CallEffect, { do: 'offer-to-carrier' }>): Promise<CallEvent> {
    this.#passesSrtp = passesSrtp;
    this.#ownRelaySession();
    const offer = await this.#relayed('offer outward', sdp, (given) => this.services.relay.offerToCarrier(this.#relayCall, given));
    return { type: 'relay-offered-to-carrier', sdp: offer.sdp, attempt };
  }

  async answerFromCarrier(effect: Extract<CallEffect, { do: 'answer-from-carrier' }>): Promise<CallEvent> {
    const { media, attempt } = effect;
    if (effect.isAfterEarlyMedia === true) this.#earlyErrors = this.#errorsSoFar();
    const { sdp } = await this.#relayed('answer outward', canonicalSdp(media), (given) =>
      this.services.relay.answerFromCarrier(this.#relayCall, given),
    );
    return { type: 'relay-answered-from-carrier', sdp, attempt };
  }

  #errorsSoFar(): Promise<number> {
    return this.services.relay.figures(this.callId).then(
      (figures) => figures?.fromCarrier.errors ?? 0,
      () => 0,
    );
  }

  leaveRelay(): void {
    this.#earlyErrors = Promise.resolve(0);
    this.services.relay.leave(this.callId);
  }

  /** @param passesSrtp rtpengine passes the carrier's SRTP through to the leg */
  async reserve(passesSrtp = this.services.agentSideSrtp): Promise<CallEvent> {
    this.#ownLeg();
    const local = await this.services.endpoint.reserve(this.callId, this.beside);
    return { type: 'leg-reserved', local, agentSideKey: passesSrtp ? cryptoLine(this.services.newKey()) : null };
  }

  /** @param watchesAnswerer finds out who answered */
  async open(effect: Opening, watchesAnswerer: boolean): Promise<CallEvent> {
    const { agentSideKey, local } = effect.reserved;
    this.#ownLeg();
    const leg = legOf(this.callId, this.sipCallId, { ...effect, agentSideKey }, local.rtpPort);
    await this.services.endpoint.open({ ...leg, watchesAnswerer }, this.#take);
    return { type: 'leg-opened' };
  }

  /** A call of an earlier process has a session on this node: it is freed with the call, whether that goes on or not. */
  inherit(node: string | null): void {
    this.#leftOn = node;
    this.#ownRelaySession();
  }

  /**
   * A call of an earlier process: its leg is opened once more, at the address that rtpengine has, and is silent until the agent is there.
   * Resolves with whether its relay session is on this node; where it is not, nothing is open. `null`: the call was kept without media.
   */
  reopen(node: string | null, state: CallState): Promise<boolean | null> {
    this.#reopened ??= this.#reopen(node, state);
    return this.#reopened;
  }

  async #reopen(node: string | null, state: CallState): Promise<boolean | null> {
    const { session, agentFacing } = state;
    const leg = keptLeg(this.callId, this.sipCallId, state);
    if (session === null || agentFacing === null || leg === null) return null;
    const { media } = session;
    const isJoinedCall = isJoined(state);
    this.#isEncrypted = media.crypto !== null;
    if (!isJoinedCall) this.#passesSrtp = agentFacing.crypto !== null;
    const isHere = node !== null && this.services.relay.adopt(this.callId, node);
    if (!isHere || isJoinedCall) return isHere;
    this.#ownLeg();
    await this.services.endpoint.open(leg, this.#take);
    return true;
  }

  /** The agent goes with it; another leg may be opened later. */
  closeLeg(): void {
    this.#hasLeg = false;
    this.#closing = this.services.endpoint.close(this.callId).then((figures) => {
      this.#endpointFigures = sumOf(this.#endpointFigures, figures);
    });
  }

  async change({ media, agentFacing, agentSideKey }: Extract<CallEffect, { do: 'change-leg' }>): Promise<null> {
    const srtp = keysOf(agentFacing, agentSideKey);
    await this.services.endpoint.change(this.callId, { remote: addressOf(agentFacing), srtp, format: formatOf(media) });
    return null;
  }

  get #relayCall(): RelayCall {
    return {
      relayId: this.callId,
      beside: this.beside,
      agentSideSrtp: this.#passesSrtp && this.#isEncrypted,
      carrierSideSrtp: this.#isEncrypted,
    };
  }

  #ownRelaySession(): void {
    this.#hasRelaySession = true;
    this.#own();
  }

  #ownLeg(): void {
    this.#hasLeg = true;
    this.#own();
  }

  /** The leg and its agent go first, whichever came first: the agent must not talk on while the relay is asked to let go. */
  #own(): void {
    if (this.#isOwned) return;
    this.#isOwned = true;
    this.scope.defer('relay session', async () => {
      if (!this.#hasRelaySession) return;
      if (this.node === null && this.#leftOn !== null) this.services.relay.adopt(this.callId, this.#leftOn);
      const figures = await this.services.relay.delete(this.callId);
      this.#relayFigures = figures === null ? null : withoutErrors(figures, await this.#earlyErrors);
      this.trace.add('rtpengine', 'out', 'delete', JSON.stringify(this.#relayFigures));
    });
    this.scope.defer('media leg', async () => {
      await this.#closing;
      if (this.#hasLeg) this.closeLeg();
      await this.#closing;
    });
  }

  #relayed(command: string, sdp: string, ask: (sdp: string) => Promise<RelayAnswer>): Promise<RelayAnswer> {
    const { agentSideSrtp, carrierSideSrtp } = this.#relayCall;
    const flags = `${agentSideSrtp ? 'SRTP' : 'RTP'} inside, ${carrierSideSrtp ? 'SRTP' : 'RTP'} outside`;
    return this.trace.relay(`${command} (${flags})`, sdp, ask(sdp));
  }
}

/** The leg of a call that an earlier process had, at the address that rtpengine has; silent until its agent starts. `null`: it has none. */
export function keptLeg(
  callId: string,
  sipCallId: string,
  { session, agentFacing, local, agentSideKey }: CallState,
): LegDescription | null {
  if (session === null || agentFacing === null || local === null) return null;
  const { media } = session;
  return { ...legOf(callId, sipCallId, { media, agentFacing, agentSideKey }, local.rtpPort), startsAs: media.direction };
}

interface LegSides {
  readonly media: CarrierMedia;
  readonly agentFacing: RelaySide;
  readonly agentSideKey: CryptoLine | null;
}

function legOf(callId: string, sipCallId: string, { media, agentFacing, agentSideKey }: LegSides, localRtpPort: number): LegDescription {
  return {
    callId,
    sipCallId,
    localRtpPort,
    remote: addressOf(agentFacing),
    ...formatOf(media),
    srtp: keysOf(agentFacing, agentSideKey),
    carrierSuite: media.crypto === null ? null : SUITE,
  };
}

/** A call's rtpengine is gone, or takes nothing of the call's any more. */
export function relayLost({ newKey }: Pick<MediaServices, 'newKey'>, mayMove: boolean, cause: RelayLossCause = 'node'): CallEvent {
  return { type: 'relay-lost', mayMove, cause, newKey: cryptoLine(newKey()) };
}

function cryptoLine(key: Uint8Array, tag = '1'): CryptoLine {
  return { tag, inline: Buffer.from(key).toString('base64'), mki: null };
}

function withoutErrors(figures: RelayFigures, errors: number): RelayFigures {
  const { fromCarrier } = figures;
  return { ...figures, fromCarrier: { ...fromCarrier, errors: Math.max(0, fromCarrier.errors - errors) } };
}

/** Adds up two legs, one after the other. */
function sumOf(before: LegFigures | null, later: LegFigures | null): LegFigures | null {
  if (before === null || later === null) return later ?? before;
  return {
    ...later,
    packetsSent: before.packetsSent + later.packetsSent,
    packetsReceived: before.packetsReceived + later.packetsReceived,
    packetsLost: before.packetsLost + later.packetsLost,
    firstAudioMs: before.firstAudioMs,
    digitsReceived: before.digitsReceived + later.digitsReceived,
    framesLate: before.framesLate + later.framesLate,
    agentAudioMs: before.agentAudioMs,
    turnDelaysMs: [...before.turnDelaysMs, ...later.turnDelaysMs],
    samples: [...before.samples, ...later.samples],
  };
}

function addressOf({ address, rtpPort, rtcpPort }: RelaySide): MediaAddress {
  return { address, rtpPort, rtcpPort };
}

function formatOf({ codec, telephoneEvent, ownTelephoneEvent }: CarrierMedia): LegFormat {
  return {
    codec: codec.name,
    payloadType: codec.payloadType,
    telephoneEventPayloadType: telephoneEvent,
    ...(ownTelephoneEvent === undefined ? {} : { otherTelephoneEventPayloadType: ownTelephoneEvent }),
  };
}

function keysOf(agentFacing: RelaySide, agentSideKey: CryptoLine | null): SrtpKeys | null {
  if (agentFacing.crypto === null || agentSideKey === null) return null;
  return { receive: Buffer.from(agentFacing.crypto.inline, 'base64'), send: Buffer.from(agentSideKey.inline, 'base64') };
}
