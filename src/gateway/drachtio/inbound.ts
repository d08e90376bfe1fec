import type { CallEvent, JoinedCall, StandIn } from '../call/state.js';
import type { OtherCalls } from '../call/call-legs.js';
import { randomInt } from 'node:crypto';
import type { CallSnapshot } from '../model/call-snapshot.js';
import type { CallRecord } from '../model/call-record.js';
import type { TraceEntry } from '../model/call-trace.js';
import type { IdentityVerdict } from '../model/verified-identity.js';
import type { OutboundTrunk } from '../model/records.js';
import type { QualitySample } from '../../rtp/quality.js';
import type { CallTarget, LiveCall, LiveCalls, StopReason } from '../model/live-calls.js';
import { formatHostPort } from '../../lib/address.js';
import { TimerQueue } from '../../lib/timers.js';
import { PassingMap } from '../../lib/passing-map.js';
import { newSessionId, newUuid } from '../../lib/ids.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import { SourceRates } from '../../lib/source-rates.js';
import { openAhead, type Ahead } from '../call/open-ahead.js';
import { headerValues } from '../call/trunk-authorization.js';
import { CallRunner } from '../call/call-runner.js';
import { relayLost } from '../call/call-media.js';
import type { CallServices, InviteContext } from '../call/call-services.js';
import { recordRefused } from '../call/refused-calls.js';
import { readSnapshot } from '../call/call-snapshot.js';
import type { Call } from '../call/call.js';
import { callerIdentity, claimedCallers, calledUri, type CalledNumberSource } from '../admission/parties.js';
import {
  hostOf,
  type ContactAddress,
  movedContact,
  ownContact,
  type OwnAddress,
  admit,
  SUPPORTED_OPTIONS,
  type AdmissibleInvite,
  refusalHeaders,
  sessionExpiresOf,
} from '../call/invite.js';
import { ALLOWED_METHODS } from '../../lib/sip-methods.js';
import type { PlaceRequest } from '../ports/place-call.js';
import type { RelayPort } from '../ports/ports.js';
import { placeContext, trunkRefusal, trunkUri, type TrunkHosts } from './outbound.js';
import {
  isTrusted,
  notReady,
  overloaded,
  type EdgePolicy,
  type EdgeState,
  type Refusal,
  type RequestSource,
} from '../admission/admission.js';
import { IDENTITY_HEADER, isOwnServer, PING_HEADER, TLS_HEADER } from '../../lib/own-headers.js';
import { REASONS, type Reason } from '../model/reasons.js';
import type { SrfRequest, SrfResponse } from '../ports/signalling.js';

export interface InboundOptions {
  /** Name in Contact and Warning; `null`: the host that the SIP server states. */
  readonly sipHost: string | null;
  /** Whether Contact names the port. */
  readonly contactPort: boolean;
  readonly ringingAfterMs: number;
  readonly maxDurationMs: number;
  /** What answers in place of an agent that cannot be reached; `null`: nothing. */
  readonly standIn: StandIn | null;
  /** Which STIR/SHAKEN verdicts refuse a call. */
  readonly refusedVerdicts: readonly IdentityVerdict[];
  /** The media relay's address on the carrier side; `null`: unknown. */
  readonly relayAddress: string | null;
  readonly trunkHosts: TrunkHosts;
  /** Where carriers may be asked to call SIP URIs. */
  readonly transferHosts: readonly string[];
  readonly transferPrefixes: readonly string[];
  readonly calledNumberFrom: CalledNumberSource;
  readonly edge: EdgePolicy & {
    /** New calls a second on this gateway; `null`: no limit. */
    readonly maxCallsPerSecond: number | null;
  };
}

/** After a time without the SIP server: between the questions whether a call is still there, and for all of them. */
const PING_STEP_MS = 10;
const PINGED_WITHIN_MS = 8_000;
const PARK_POLL_MS = 10;
/** A host counts as lost after so long without a sign. */
const LOST_AFTER_MS = 2_000;
const NO_HEAD = { requestUri: '', topRecordRoute: undefined, contactUri: undefined };

/** What the gateway checks before it accepts a call. */
export type EdgeProbe = () => Pick<EdgeState, 'overload' | 'isRelayUp' | 'mediaHeadroom'>;

export type InboundServices = Omit<CallServices, 'retryAfterSeconds' | 'glareDelayMs' | 'others' | 'timers'>;

/** A call of an earlier process, and the media relay that has its session. */
interface OrphanedCall {
  readonly runner: CallRunner;
  readonly node: string | null;
}

/** Turns drachtio-srf's callbacks into call events, and lists the calls in progress. */
export class Inbound implements LiveCalls {
  readonly #services: CallServices;
  readonly #runners = new PassingMap<string, CallRunner>();
  /** Call-IDs of the calls that we place. */
  readonly #placedIds = new Set<string>();
  readonly #rate: SourceRates | null;
  #left: readonly OrphanedCall[] = [];
  /** Calls whose agents were connected while another process had them. */
  readonly #ahead = new Set<string>();
  /** Calls that were in progress when the connection to the SIP server broke. */
  readonly #interrupted = new Set<CallRunner>();
  #own: readonly OwnAddress[] = [];
  #isOwnServer = false;
  #begun = 0;
  #isConnected = false;
  #isLeaving = false;
  #isDraining = false;
  #isRetired = false;
  #isWithdrawn = false;
  #onIdle: (() => void) | undefined;
  #onConnected: (() => void) | undefined;
  #lastError = 'it did not answer';

  constructor(
    services: InboundServices,
    private readonly options: InboundOptions,
    private readonly probe: EdgeProbe,
    private readonly log: Log,
  ) {
    // In steps of 10 ms: 2.1 to 4 s for the side that made the Call-ID, 0 to 2 s for the other.
    const glareDelayMs = (madeCallId: boolean): number => 10 * (madeCallId ? randomInt(210, 401) : randomInt(0, 201));
    const others: OtherCalls = {
      placeLeg: (request, joins) => this.#place(request, joins),
      tell: (callId, event) => this.#notify(callId, event),
    };
    const timers = new TimerQueue(services.clock);
    this.#services = { ...services, others, timers, retryAfterSeconds: () => randomInt(1, 11), glareDelayMs };
    const { maxCallsPerSecond } = options.edge;
    this.#rate = maxCallsPerSecond === null ? null : new SourceRates(maxCallsPerSecond, services.clock);
    const { srf } = services;
    srf.invite((request, response) => this.#onInvite(request, response));
    srf.handle('options', (request, response) => this.#onOptions(request, response));
    // Handle every other method too: drachtio-srf answers 404 to a method without a handler.
    for (const method of ['register', 'message', 'subscribe', 'publish', 'info', 'notify', 'refer', 'update']) {
      srf.handle(method, (request, response) => this.#onOther(request, response));
    }
    srf.use((request, response) => this.#onOther(request, response));
    srf.onConnect((error, hostPorts, version) => this.#onConnect(error, hostPorts, version));
    srf.onLost((error) => {
      if (this.#isConnected && !this.#isLeaving) this.log.error({ error: error.message }, 'gateway.sip_server.lost');
      this.#isConnected = false;
      this.#lastError = error.message;
      for (const runner of this.#runners.values()) this.#interrupted.add(runner);
    });
  }

  /** Ends the connection to the SIP server. */
  leave(): void {
    this.#isLeaving = true;
    this.#services.srf.disconnect();
  }

  /** Whether it refuses new calls, as it shuts down. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** Our Contact over TLS with this user; `null`: the SIP server is not connected. */
  contactOf(user: string): string | null {
    if (!this.#isConnected) return null;
    return ownContact(this.#contactAddress(this.#ownAddress('tls')), NO_HEAD).replace('<sip:', `<sip:${user}@`);
  }

  get callCount(): number {
    return this.#runners.size;
  }

  /** Calls since the start, refused ones included. */
  get begunCount(): number {
    return this.#begun;
  }

  /** `null`: this process has no such call in progress. */
  find(callId: string): LiveCall | null {
    return this.#runners.get(callId)?.live ?? null;
  }

  trace(callId: string): readonly TraceEntry[] | null {
    return this.#runners.get(callId)?.trace ?? null;
  }

  transcript(callId: string): CallRecord['transcript'] | null {
    return this.#runners.get(callId)?.transcript ?? null;
  }

  async quality(callId: string): Promise<readonly QualitySample[] | null> {
    if (!this.#runners.has(callId)) return null;
    return (await this.#services.endpoint.figures(callId))?.samples ?? [];
  }

  stop(callId: string, reason: StopReason): boolean {
    const runner = this.#runners.get(callId);
    if (runner === undefined || runner.live === null) return false;
    runner.dispatch({ type: 'hangup', reason });
    return true;
  }

  redirect(callId: string, to: CallTarget): boolean {
    return this.#runners.get(callId)?.redirect(to) ?? false;
  }

  /** Why the gateway refuses new calls; `null`: it accepts them. */
  get relayAddress(): string | null {
    return this.options.relayAddress;
  }

  get notReady(): Refusal | null {
    return notReady(this.#edge(), this.options.edge);
  }

  /** Whether the trunk accepts calls from this source. */
  isSourceTrusted(source: RequestSource): boolean {
    return isTrusted(this.options.edge, source);
  }

  /** Resolves when the SIP server has accepted us and resumed calls have audio; rejects on timeout. */
  whenConnected(withinMs: number, where: string): Promise<void> {
    if (this.#isConnected) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const cancel = this.#services.clock.setTimer(withinMs, () =>
        reject(
          new Error(
            `no SIP server at ${where} within ${withinMs} ms: ${this.#lastError}. Check that it runs there and that both sides have the same drachtio.secret`,
          ),
        ),
      );
      this.#onConnected = () => {
        cancel();
        resolve();
      };
    });
  }

  /** `host:port` of the SIP server's listener for a transport; `null`: it has none. */
  listensOn(transport: string): string | null {
    const stated = this.#own.find((candidate) => candidate.transport === transport);
    return stated === undefined ? null : formatHostPort(stated.host, stated.port);
  }

  /**
   * Restores the calls of an earlier process, before the SIP server is connected, so that its first frames find them. Their media goes on
   * at once; when the SIP server states whether it kept their dialogs, they continue or end.
   * @param endedMs wall time of its end, or shortly after
   */
  adopt(snapshots: readonly CallSnapshot[], endedMs: number): void {
    this.#left = this.#restore(snapshots, endedMs, (kept) => kept);
    // These have ended meanwhile.
    for (const callId of this.#ahead) if (!this.#runners.has(callId)) void this.#services.endpoint.close(callId);
    this.#ahead.clear();
    for (const { runner, node } of this.#left) runner.reopen(node);
  }

  /**
   * Makes the legs of calls ready that another process still has, and connects their agents. An agent that cannot be connected now is
   * connected when its call is ours.
   */
  async openAhead(snapshots: readonly CallSnapshot[], ahead: Ahead): Promise<void> {
    const connected = await Promise.allSettled(
      snapshots.map(async (snapshot) => {
        const kept = readSnapshot(snapshot);
        this.#ahead.add(snapshot.call_id);
        if (kept !== undefined) await openAhead(this.#services, kept, ahead);
      }),
    );
    const failures = connected.filter(({ status }) => status === 'rejected');
    this.log.info({ calls: connected.length, failures: failures.length }, 'gateway.calls.ahead');
  }

  /** The calls of a gateway whose host is lost. The SIP server has their dialogs, and gives us these with our answer. */
  async #take(instance: string, response: SrfResponse): Promise<void> {
    try {
      const snapshots = await this.#services.snapshots.take(instance);
      const taken = this.#restore(snapshots, this.#services.clock.wallMs() - LOST_AFTER_MS, (kept) => {
        const own = this.#ownAddress(kept.origin.source.transport);
        const contact = movedContact(this.#contactAddress(own), kept.own.contact);
        return { ...kept, own: { ...kept.own, contact, warningHost: own.host }, node: null };
      });
      response.send(200, 'OK', {});
      await Promise.all(taken.map(({ runner, node }) => runner.resume(node)));
    } catch (error) {
      this.log.error({ gateway: instance, error: errorText(error) }, 'gateway.calls.not_taken');
      response.send(503, 'Service Unavailable', {});
    }
  }

  #restore(snapshots: readonly CallSnapshot[], endedMs: number, changed: (kept: Call) => Call): OrphanedCall[] {
    return snapshots.flatMap((snapshot) => {
      const read = readSnapshot(snapshot);
      const kept = read === undefined ? undefined : changed(read);
      const runner = kept === undefined ? undefined : this.#runnerOf(kept, endedMs);
      if (kept === undefined || runner === undefined) {
        this.log.error({ call_id: snapshot.call_id }, 'gateway.call.not_restored');
        this.#services.snapshots.delete(snapshot.call_id);
        this.#services.routes.release(snapshot.call_id);
        return [];
      }
      this.#runners.set(runner.callId, runner);
      return [{ runner, node: kept.node }];
    });
  }

  /** Why no call goes to the trunk; `null`: it may. */
  trunkRefusal(trunk: OutboundTrunk): string | null {
    const { host, port, hostPort } = trunkUri(trunk.sip_endpoint, '');
    if (this.#isOwnAddress(host, port)) return `the trunk ${hostPort} is this gateway itself: the call would come back`;
    return trunkRefusal(trunk, this.options.trunkHosts, this.#isOwnServer);
  }

  #isOwnAddress(host: string, port: number): boolean {
    const hosts = this.#own.filter((one) => one.transport === 'tls' && one.port === port).map((one) => one.host.toLowerCase());
    const { sipHost } = this.options;
    return hosts.length > 0 && (hosts.includes(host.toLowerCase()) || host.toLowerCase() === sipHost?.toLowerCase());
  }

  /** Begins a call that we place. The reason why this gateway places none now; `null`: the call has begun. */
  place(request: PlaceRequest): Reason | null {
    return this.#place(request, null);
  }

  /** Resolves once Redis has a call that was placed, or its record is written. */
  async kept(callId: string): Promise<void> {
    await this.#runners.get(callId)?.whenKept();
  }

  #notify(callId: string, event: CallEvent): boolean {
    const runner = this.#runners.get(callId);
    runner?.dispatch(event);
    return runner !== undefined;
  }

  #place(request: PlaceRequest, joins: JoinedCall | null): Reason | null {
    if (this.trunkRefusal(request.trunk) !== null) return 'DIAL_NOT_ALLOWED';
    const refusal = this.notReady ?? this.#overRate();
    if (refusal !== null) return refusal.reason;
    const own = this.#ownAddress('tls');
    const { maxDurationMs, standIn, relayAddress } = this.options;
    const facts = { maxDurationMs, standIn, relayAddress };
    const nowMs = this.#services.clock.wallMs();
    const { trunksArePublic } = this.#services;
    const context = placeContext(
      request,
      { contact: this.#contactAddress(own), warningHost: own.host, facts, nowMs, trunksArePublic, isOwnServer: this.#isOwnServer },
      joins,
    );
    const runner = CallRunner.placed(this.#services, context, (ended) => this.#onEnded(ended));
    this.#runners.set(runner.callId, runner);
    this.#placedIds.add(runner.origin.sipCallId);
    runner.dispatch({ type: 'placed' });
    return null;
  }

  /** The calls of a lost media relay. */
  relayLost(callIds: readonly string[]): void {
    const mayMove = this.#services.mayMoveMedia();
    for (const callId of callIds) this.#runners.get(callId)?.dispatch(relayLost(this.#services, mayMove));
  }

  /** The media relay reads a port of this call no more. Where the call may not move, the media timeout ends it. */
  relayPortDeaf(callId: string): void {
    if (this.#services.mayMoveMedia()) this.#runners.get(callId)?.dispatch(relayLost(this.#services, true, 'deaf-port'));
  }

  /** The media relays' ports of the calls that are answered. */
  relayPorts(): readonly RelayPort[] {
    return [...this.#runners.values()].flatMap((runner) => runner.relayPorts);
  }

  /**
   * Refuses new calls, lets those in progress continue for `drainMs`, then ends each with a BYE.
   * @param endMs time limit for the BYEs: the SIP server abandons a call without ACK after 64·T1
   */
  async drain(drainMs: number, endMs: number): Promise<void> {
    this.#isDraining = true;
    this.retire();
    await this.#idleWithin(drainMs);
    for (const runner of [...this.#runners.values()]) runner.dispatch({ type: 'hangup', reason: 'SHUTDOWN' });
    await this.#idleWithin(endMs);
  }

  /**
   * Takes no new calls, which wait for the next process at our own SIP server, and lets those that begin or end get through it; afterwards every call is in its snapshot, for the next process of
   * this instance. The carriers hear nothing of it.
   * @param limitMs after this time unanswered calls are refused
   */
  async park(limitMs: number): Promise<void> {
    // Requests on their way are taken, and senders of OPTIONS may call.
    if (!this.#isRetired) this.#services.srf.withdraw(['invite']);
    const { clock, snapshots } = this.#services;
    const deadlineMs = clock.nowMs() + limitMs;
    const moving = (): CallRunner[] => [...this.#runners.values()].filter(({ stateName }) => stateName !== 'Talking');
    const pause = (): Promise<void> => new Promise((resolve) => void clock.setTimer(PARK_POLL_MS, resolve));
    while (moving().length > 0 && clock.nowMs() < deadlineMs) await pause();
    for (const runner of moving()) if (runner.live?.answeredAtMs === null) runner.dispatch({ type: 'hangup', reason: 'SHUTDOWN' });
    await snapshots.flush();
    this.log.info({ calls: this.#runners.size }, 'gateway.calls.parked');
  }

  /** Takes no more calls than those on their way: a successor is there. */
  retire(): void {
    if (this.#isRetired) return;
    this.#isRetired = true;
    if (this.#isConnected) this.#withdraw();
  }

  #withdraw(): void {
    this.#isWithdrawn = true;
    this.#services.srf.withdraw(['invite', 'options']);
  }

  /** Whether a successor takes the calls. */
  get isRetired(): boolean {
    return this.#isRetired;
  }

  #idleWithin(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#services.clock.setTimer(limitMs, resolve);
      void this.whenIdle().then(() => {
        cancel();
        resolve();
      });
    });
  }

  /** Resolves when no call is in progress. */
  whenIdle(): Promise<void> {
    if (this.#runners.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  #onConnect(error: unknown, hostPorts: readonly string[], version: string): void {
    if (error !== null && error !== undefined) {
      this.#isConnected = false;
      this.#lastError = error instanceof Error ? error.message : 'the secret was not accepted';
      this.log.error({ error: this.#lastError }, 'gateway.sip_server.refused');
      return;
    }
    this.#own = hostPorts.flatMap(parseHostPort);
    this.#isOwnServer = isOwnServer(version);
    this.#isConnected = true;
    if (this.#isRetired && !this.#isWithdrawn) this.#withdraw();
    // The embedded SIP server keeps the calls of a gateway that was away; drachtio-server forgets their application.
    const isResumed = version.endsWith('-resume');
    const left = this.#left;
    this.#left = [];
    const isLeft = new Set(left.map(({ runner }) => runner));
    // New calls may come before the package reports the connection.
    const running = [...this.#runners.values()].filter((runner) => this.#interrupted.has(runner) && !isLeft.has(runner));
    this.#interrupted.clear();
    // Spread, as each carrier may need a new connection.
    const stepMs = Math.min(PING_STEP_MS, PINGED_WITHIN_MS / running.length);
    for (const [index, runner] of running.entries()) {
      if (isResumed) runner.serverBack(index * stepMs);
      else runner.serverLost();
    }
    this.log.info({ host_ports: hostPorts, version, left: left.length }, 'gateway.sip_server.connected');
    if (!isResumed) for (const { runner } of left) runner.abandon();
    void Promise.all(isResumed ? left.map(({ runner, node }) => runner.resume(node)) : []).then(() => this.#onConnected?.());
  }

  #onInvite(request: SrfRequest, response: SrfResponse): void {
    // A re-INVITE of an unknown dialog arrives here too.
    if (!request.isNewInvite) return this.#refuse(request, response, 'NO_DIALOG');
    const contactUri = contactOf(request);
    const uri = calledUri(this.options.calledNumberFrom, request.uri, (name) => request.get(name));
    const admission = admit({
      uri,
      require: request.get('Require'),
      accept: request.get('Accept'),
      contentType: request.get('Content-Type'),
      contentDisposition: request.get('Content-Disposition'),
      contentEncoding: request.get('Content-Encoding') ?? request.get('e'),
      body: request.body,
      contactUri,
      supported: request.get('Supported'),
      sessionExpires: sessionExpiresOf(request),
    });
    const context = this.#contextOf(request, response, contactUri, admission.ok ? admission.value : null);
    const runner = CallRunner.invited(this.#services, context, (ended) => this.#onEnded(ended));
    const refusal = this.#refusalOf(request) ?? (admission.ok ? null : { reason: admission.error, detail: null });
    this.#runners.set(runner.callId, runner);
    this.#begun += 1;
    // Attach first: a CANCEL arrives only here.
    request.on('cancel', () => runner.dispatch({ type: 'cancelled' }));
    runner.dispatch(refusal === null ? { type: 'invited' } : { type: 'inadmissible', ...refusal });
  }

  /** The checks that need no part of the INVITE, before anything is allocated. */
  #refusalOf(request: SrfRequest): Refusal | null {
    if (this.#isDraining) return { reason: 'DRAINING', detail: null };
    if (this.#cameBack(request))
      return { reason: 'LOOP_DETECTED', detail: 'the gateway placed this call itself, to a trunk that leads here' };
    const source = { address: request.source_address, identities: this.#identities(request) };
    if (!this.isSourceTrusted(source)) return { reason: 'SOURCE_NOT_ALLOWED', detail: null };
    return this.notReady ?? this.#overRate();
  }

  /** An INVITE of ours, from us: a proxy that brought it back by a way of its own would have added a Via. */
  #cameBack(request: SrfRequest): boolean {
    if (!this.#placedIds.has(request.get('Call-ID') ?? '')) return false;
    const vias = headerValues(request.msg.raw ?? '', 'via').flatMap((value) => value.split(','));
    return vias.length === 1;
  }

  /** Counts a new call. */
  #overRate(): Refusal | null {
    if (this.#rate?.take('') !== false) return null;
    return overloaded(`more than ${String(this.options.edge.maxCallsPerSecond)} new calls a second`);
  }

  #contextOf(request: SrfRequest, response: SrfResponse, contactUri: string | undefined, invite: AdmissibleInvite | null): InviteContext {
    const own = this.#ownAddress(request.protocol);
    const head = { requestUri: request.uri, topRecordRoute: request.get('Record-Route'), contactUri };
    const tls = this.#isOwnServer ? (request.get(TLS_HEADER) ?? '').split(' ') : [];
    return {
      origin: {
        callId: newUuid(),
        sipCallId: request.get('Call-ID') ?? '',
        direction: 'inbound',
        to: invite?.called ?? request.uri,
        caller: callerIdentity({ get: (name) => request.get(name), names: Object.keys(request.msg.headers) }),
        source: {
          ip: request.source_address,
          port: request.source_port,
          transport: request.protocol,
          tls_version: tls[0] === undefined || tls[0] === '' ? null : tls[0],
          tls_cipher: tls[1] ?? null,
        },
        startedAtMs: this.#services.clock.wallMs(),
      },
      open: { request, response, sessionTimer: invite?.sessionTimer ?? {} },
      called: invite?.called ?? null,
      claim: claimOf(request),
      // drachtio-srf keeps one of several.
      authorization: request.has('Authorization') ? headerValues(request.msg.raw ?? '', 'authorization') : [],
      facts: {
        sourceAddress: request.source_address,
        sdp: invite?.sdp ?? '',
        sessionId: newSessionId(),
        maxDurationMs: this.options.maxDurationMs,
        ringingAfterMs: /(?:^|,)\s*100rel\s*(?:,|$)/i.test(request.get('Require') ?? '') ? null : this.options.ringingAfterMs,
        standIn: this.options.standIn,
        refusedVerdicts: this.options.refusedVerdicts,
        relayAddress: this.options.relayAddress,
        transferHosts: this.options.transferHosts,
        transferPrefixes: this.options.transferPrefixes,
      },
      own: { contact: ownContact(this.#contactAddress(own), head), warningHost: own.host, peerHost: hostOf(contactUri ?? '') ?? own.host },
    };
  }

  #runnerOf(kept: Call, endedMs: number): CallRunner | undefined {
    try {
      return CallRunner.orphaned(this.#services, kept, endedMs, (ended) => this.#onEnded(ended));
    } catch {
      // The INVITE is unreadable. Do not log its text: it holds keys.
      return undefined;
    }
  }

  #onEnded(runner: CallRunner): void {
    this.#runners.delete(runner.callId);
    if (runner.origin.direction === 'outbound') this.#placedIds.delete(runner.origin.sipCallId);
    if (this.#runners.size === 0) this.#onIdle?.();
  }

  #edge(): EdgeState {
    return { ...this.probe(), isDraining: this.#isDraining, calls: this.#runners.size };
  }

  #identities(request: SrfRequest): string[] {
    const names = this.#isOwnServer ? (request.get(IDENTITY_HEADER) ?? '') : '';
    return names.split(',').map((name) => name.trim());
  }

  /** The carrier's health check, or the SIP server's question whether calls are better refused there: those leave no record. */
  #onOptions(request: SrfRequest, response: SrfResponse): void {
    // drachtio-server passes on what belongs to no dialog of its own: the carrier asks whether its call still exists.
    if (isInDialog(request)) return this.#refuse(request, response, 'NO_DIALOG');
    const ping = this.#isOwnServer ? request.get(PING_HEADER) : undefined;
    const lost = /^take (.+)$/.exec(ping ?? '')?.[1];
    if (lost !== undefined) return void this.#take(lost, response);
    const refused = /^refused (.+)$/.exec(ping ?? '')?.[1];
    if (refused !== undefined) void recordRefused(this.#services, refused);
    if (ping !== undefined) return this.#onPing(response);
    const refusal = this.notReady;
    if (refusal !== null) return this.#refuse(request, response, refusal.reason, refusal.detail);
    response.send(200, 'OK', { headers: { Allow: ALLOWED_METHODS, Accept: 'application/sdp', Supported: SUPPORTED_OPTIONS.join(', ') } });
  }

  #onPing(response: SrfResponse): void {
    const overload = this.probe().overload;
    if (overload === null) response.send(200, 'OK', {});
    else response.send(503, 'Service Unavailable', { headers: { [PING_HEADER]: overload } });
  }

  #onOther(request: SrfRequest, response: SrfResponse): void {
    if (request.method === 'ACK' || request.method === 'CANCEL') return;
    // Methods that we allow and that arrive here belong to a dialog (RFC 3261 §15.1.2, RFC 6086 §4.2.2, RFC 6665 §4.1.3).
    const isOfDialog = isInDialog(request) || ALLOWED_METHODS.split(', ').includes(request.method);
    this.#refuse(request, response, isOfDialog ? 'NO_DIALOG' : 'METHOD_NOT_ALLOWED');
  }

  #refuse(request: SrfRequest, response: SrfResponse, reason: Reason, detail: string | null = null): void {
    const { sipStatus, sipPhrase } = REASONS[reason];
    const headers = refusalHeaders(reason, {
      host: this.#ownAddress(request.protocol).host,
      require: request.get('Require'),
      accepted: 'application/sdp',
      retryAfterSeconds: this.#services.retryAfterSeconds,
      detail,
    });
    response.send(sipStatus, sipPhrase, { headers });
  }

  #contactAddress(own: OwnAddress): ContactAddress {
    return this.options.contactPort ? own : { ...own, port: null };
  }

  #ownAddress(transport: string): OwnAddress {
    const stated = this.#own.find((candidate) => candidate.transport === transport) ?? this.#own[0];
    return { host: this.options.sipHost ?? stated?.host ?? 'localhost', port: stated?.port ?? 5061, transport };
  }
}

function isInDialog(request: SrfRequest): boolean {
  return /;\s*tag\s*=/i.test(request.get('To') ?? '');
}

/** Most calls have no signature: read no further headers for them. */
function claimOf(request: SrfRequest): InviteContext['claim'] {
  // drachtio-srf does not support the compact form.
  const header = request.get('Identity') ?? request.get('y');
  if (header === undefined) return { header, date: undefined, callers: [] };
  return { header, date: request.get('Date'), callers: claimedCallers(request) };
}

/** The Contact's URI, or `undefined` if it is missing or unreadable: drachtio-srf would throw on it after the 200. */
function contactOf(request: SrfRequest): string | undefined {
  if (!request.has('Contact')) return undefined;
  try {
    const uri = request.getParsedHeader('contact')[0]?.uri;
    return uri !== undefined && /^sips?:.+/i.test(uri) ? uri : undefined;
  } catch {
    return undefined;
  }
}

/** `tls/192.0.2.1:5061`, the SIP server's form of a listener. */
function parseHostPort(text: string): OwnAddress[] {
  const match = /^(\w+)\/(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(text);
  return match === null ? [] : [{ transport: match[1] ?? '', host: match[2] ?? match[3] ?? '', port: Number(match[4]) }];
}
