import { IDENTITY_HEADER, PING_HEADER, PUBLIC_ONLY_HEADER, TLS_HEADER, TRUNK_TLS_HEADER } from '../lib/own-headers.js';
import { header, headerId } from '../sip/message/message.js';
import type { OwnHeaders } from '../sip/message/reception.js';
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type Server, type Socket } from 'node:net';
import { boundedLog } from '../lib/bounded-log.js';
import type { Clock } from '../lib/clock.js';
import { formatHostPort } from '../lib/address.js';
import { nextSerialId } from '../lib/ids.js';
import type { Log } from '../lib/log.js';
import { errorText } from '../lib/result.js';
import { Admission, type AdmissionLimits, type AdmissionTotals } from '../sip/admission.js';
import { SipStack, type StackLimits } from '../sip/stack.js';
import type { TimerSettings } from '../sip/transaction/timers.js';
import type { Endpoint, TransportName } from '../sip/transport/flow.js';
import type { TlsMaterial } from '../sip/transport/tls-server-contexts.js';
import type { NameResolver } from '../sip/transport/locator.js';
import type { ListenerTotals, ListenerTrust } from '../sip/transport/stream-listener.js';
import { Transports, type OutgoingTls, type TransportLimits } from '../sip/transport/transports.js';
import type { Flow } from '../sip/transport/flow.js';
import type { OpenTransactions } from '../sip/transport/retirement.js';
import type { DialogStore } from '../sip/dialog/dialog-record.js';
import { UserAgent } from '../sip/user-agent.js';
import { AppConnection, type AppLimits } from './applications.js';
import { Broker } from './broker.js';
import { RefusedCalls } from './refused-calls.js';
import { formatAnswer, frameTime, type AppCommand } from './control-protocol.js';
import type { Cell } from './cell.js';
import { SharedCalls, type CellSettings } from './cells/shared-calls.js';
import type { DialogJournal } from './dialog-journal.js';

export interface ApplicationLimits {
  readonly maxApplications: number;
  /** An application further behind gets no new calls. */
  readonly maxApplicationDelayMs: number;
  /** From connection to authentication. */
  readonly authenticateTimeoutMs: number;
}

export interface SipServerOptions {
  readonly bindAddress: string;
  /** Address in Contact and Via; `null`: the bind address. */
  readonly externalHost: string | null;
  readonly ports: { readonly tls: number | null; readonly tcp: number | null; readonly udp: number | null };
  /** Descriptors of sockets that were opened for us, by transport. */
  readonly sockets?: Readonly<Partial<Record<TransportName, number>>>;
  readonly tls: TlsMaterial | null;
  /** Adds a header with the name in the peer's verified certificate to each request. */
  readonly passClientIdentity: boolean;
  /** INVITEs over TLS carry version and cipher in X-Trunkline-Tls. */
  readonly passTls: boolean;
  readonly trust: ListenerTrust;
  readonly outgoingTls: OutgoingTls;
  /** Resolves names of peers. */
  readonly resolver: NameResolver;
  readonly control: Endpoint & { readonly secret: string };
  readonly timers: TimerSettings;
  readonly limits: TransportLimits & StackLimits & AdmissionLimits & AppLimits & ApplicationLimits;
  readonly optionsUserAgents: readonly string[];
  /** The Allow of our own 405 and 501; unset: the methods that applications routed. */
  readonly allow?: string | null;
  readonly silenceTimeoutMs: number;
  /** How long calls of a disconnected application wait for it. */
  readonly graceMs: number;
  /** How long calls outlive the last process that had them. */
  readonly parkMs: number;
  /** Where calls of applications with an instance id outlive this process; `null`: they end with it. */
  readonly journal: DialogJournal | null;
  /** Where those also outlive this host; `null`: nowhere. Needs a journal. */
  readonly cell: Cell | null;
  /** Where other SIP servers have the same sockets and share the calls; unset: this one has all. */
  readonly cells?: CellSettings | null;
  /** Resident bytes of this process; throws while it has no file handle left. */
  readonly memory: { readonly rss: () => number };
  readonly clock: Clock;
  readonly log: Log;
}

interface JournalTotals {
  /** From an earlier process, at the start. */
  readonly restoredDialogs: number;
  readonly journalFailures: number;
  /** Length of the file. */
  readonly journalBytes: number;
}

/** Of what stands before a datagram that another cell gets. */
const CELL_FRAME_BYTES = 128;
/** For each kind of event that peers cause. */
const PEER_LINES_PER_SECOND = 20;

/** drachtio-srf derives features from it. `-resume`: calls wait for a disconnected application (docs/control-protocol.md). */
const VERSION = 'v0.9.10-trunkline-resume';

/** The embedded SIP server: SIP on one side, drachtio-server's control protocol on the other. */
export class SipServer {
  readonly #admission: Admission;
  readonly #refused: RefusedCalls;
  readonly #stack: SipStack;
  readonly #shared: SharedCalls | null;
  readonly #transports: Transports;
  readonly #userAgent: UserAgent;
  readonly #broker: Broker;
  readonly #control: Server;
  readonly #apps = new Set<AppConnection>();
  readonly #secretHash: Buffer;
  readonly #ownEndpoints = new Map<TransportName, Endpoint>();
  #controlPort = 0;
  #restored = 0;

  constructor(private readonly options: SipServerOptions) {
    const { clock, log, timers, limits } = options;
    this.#secretHash = sha256(options.control.secret);
    this.#admission = new Admission({
      limits,
      clock,
      log,
      dialogCount: () => this.#userAgent.dialogCount,
      behind: () => this.#broker.behind(),
      onFull: (uri, why) => this.#refused.add(uri, why),
      memory: options.memory,
    });
    const peerLog = boundedLog(log, clock, PEER_LINES_PER_SECOND);
    this.#stack = new SipStack({
      clock,
      timers,
      limits,
      log: peerLog,
      ownHeaders: tlsHeaders(options.passClientIdentity, options.passTls),
      reopen: (target) => this.#transports.open(target),
      alias: (flow, sentBy) => this.#transports.alias(flow, sentBy),
      admission: this.#admission,
    });
    this.#refused = new RefusedCalls(this.#stack.timers, (refused, text, why) => {
      log.warn({ refused, over: why }, 'sip_server.calls.refused');
      this.#broker.tellRefused(text);
    });
    this.#shared = this.#shareCalls(peerLog);
    this.#transports = new Transports({ ...options, udp: this.#shared?.datagrams ?? undefined, log: peerLog }, this.#shared ?? this.#stack);
    this.#userAgent = new UserAgent(
      this.#stack,
      {
        open: (target) => this.#transports.open(target),
        openNext: (target, tried, from, restMs) => this.#transports.openNext(target, tried, from, restMs),
        advertised: (transport) => this.#advertised(transport),
      },
      { key: sha256(`proxy|${options.control.secret}`).toString('hex'), isSelf: ({ host, port }) => this.#isSelf(host, port) },
      storeOf(options),
    );
    this.#broker = new Broker(this.#userAgent, {
      log,
      timers: this.#stack.timers,
      time: () => frameTime(clock.wallMs()),
      advertised: (transport) => this.#advertised(transport),
      isSelf: (host, port) => this.#isSelf(host, port),
      optionsUserAgents: options.optionsUserAgents,
      allow: options.allow ?? null,
      silenceTimeoutMs: options.silenceTimeoutMs,
      tryingAfterMs: timers.t2Ms - timers.t1Ms,
      graceMs: options.graceMs,
      parkMs: options.parkMs,
      maxApplicationDelayMs: limits.maxApplicationDelayMs,
      clock,
    });
    this.#control = createServer((socket) => this.#onApplication(socket));
  }

  /** Opens every socket. Rejects with the system error, with address and port. */
  async listen(): Promise<void> {
    this.#openJournal();
    this.#openCell();
    await this.#shared?.open();
    await this.#openSockets();
    await new Promise<void>((resolve, reject) => {
      this.#control.once('error', reject);
      this.#control.listen({ host: this.options.control.address, port: this.options.control.port }, () => {
        this.#control.off('error', reject);
        // No file handle left for a connecting gateway, which retries.
        this.#control.on('error', (error) => this.options.log.error({ error: error.message }, 'sip_server.listener.error'));
        const bound = this.#control.address();
        if (bound !== null && typeof bound === 'object') this.#controlPort = bound.port;
        resolve();
      });
    });
  }

  /** Where the holder of the sockets died with another cell left that has them, this one lives on what that one hands over. */
  async #openSockets(): Promise<void> {
    try {
      await this.#transports.listen();
    } catch (error) {
      if (this.#shared === null || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
      this.options.log.warn({ error: errorText(error) }, 'sip_server.sockets.held');
    }
    for (const transport of ['TLS', 'TCP', 'UDP'] as const) this.#advertised(transport);
  }

  /** For new connections. Throws on unusable certificates, and changes nothing. */
  setTls(material: TlsMaterial): void {
    this.#transports.setTls(material);
  }

  /** Before `close`, for a successor: ends each connection once no transaction is open on it, at the latest after the limit. */
  async retire(limitMs: number): Promise<void> {
    this.#userAgent.retire();
    this.#shared?.retire();
    const transactions = (flow?: Flow): OpenTransactions => {
      const [own, others] = [this.#stack.open(flow), this.#shared?.transactions(flow)];
      return others === undefined ? own : { client: own.client + others.client, server: own.server + others.server };
    };
    const retired = await this.#transports.retire({ transactions, unacknowledged: () => this.#userAgent.unacknowledged() }, limitMs);
    this.options.log.info({ ...retired }, 'sip_server.retired');
  }

  async close(): Promise<void> {
    this.#stack.close();
    this.options.journal?.close();
    for (const app of this.#apps) app.close();
    await this.#shared?.close();
    await Promise.all([this.options.cell?.close(), this.#transports.close(), new Promise((resolve) => this.#control.close(resolve))]);
  }

  get controlPort(): number {
    return this.#controlPort;
  }

  /** The real port of a transport; `undefined`: disabled. */
  portOf(transport: TransportName): number | undefined {
    return this.#transports.bound.find((candidate) => candidate.transport === transport)?.local.port;
  }

  /** For leak detection: all but `connections` and `applications` are zero when idle. */
  get counts(): Readonly<Record<string, number>> {
    return {
      ...this.#broker.counts,
      transactions: this.#stack.transactionCount,
      timers: this.#stack.timers.size,
      connections: this.#transports.connectionCount,
      dialogs: this.#userAgent.dialogCount,
      applications: this.#apps.size,
    };
  }

  /** Since the start: received and refused. */
  get totals(): AdmissionTotals & ListenerTotals & SipStack['messageTotals'] & JournalTotals {
    const { journal } = this.options;
    return {
      ...this.#admission.totals,
      ...this.#transports.listenerTotals,
      ...this.#stack.messageTotals,
      restoredDialogs: this.#restored,
      journalFailures: journal?.failures ?? 0,
      journalBytes: journal?.bytes ?? 0,
    };
  }

  /** Restores the dialogs of an earlier process, before the first message. */
  #openJournal(): void {
    const { journal, log } = this.options;
    if (journal === null) return;
    journal.open({
      records: () => this.#userAgent.records(),
      restore: (records, awayMs) => {
        for (const record of records) this.#broker.restore(this.#userAgent.restore(record), awayMs);
        this.#restored += records.length;
        this.#userAgent.isComplete = true;
        // Where the file could not be read at the start.
        for (const app of this.#apps) if (app.isAuthenticated) this.#broker.onAppHere(app);
        if (records.length > 0) log.info({ calls: records.length, away_ms: Math.round(awayMs) }, 'sip_server.dialogs.restored');
      },
    });
    this.#userAgent.isComplete = journal.isRead;
    this.#broker.expectApplications();
  }

  #openCell(): void {
    this.options.cell?.open({
      record: (key) => this.#userAgent.byKey(key)?.written,
      keys: () => this.#userAgent.writtenKeys(),
      gateways: () => [...this.#apps].flatMap(({ instance }) => (instance === null ? [] : [instance.slice('gw:'.length)])),
      takeOver: (records, awayMs) => this.#broker.takeOver(records, awayMs),
      drop: (keys) => {
        for (const key of keys) {
          const dialog = this.#userAgent.byKey(key);
          if (dialog !== undefined) this.#broker.drop(dialog);
        }
      },
    });
  }

  #shareCalls(log: Log): SharedCalls | null {
    const { cells = null, bindAddress, ports, limits, clock } = this.options;
    if (cells === null) return null;
    return new SharedCalls({
      settings: cells,
      stack: this.#stack,
      admission: this.#admission,
      takesCalls: () => this.#broker.takesCalls(),
      udp: ports.udp === null ? null : { address: bindAddress, port: ports.udp },
      flowTo: ({ address, port }) => this.#transports.open({ transport: 'UDP', host: address, port }),
      limits: {
        maxFrameBytes: limits.maxHeadBytes + limits.maxBodyBytes + CELL_FRAME_BYTES,
        maxUnsentBytes: limits.maxUnsentFrameBytes,
      },
      clock,
      log,
    });
  }

  #onApplication(socket: Socket): void {
    if (this.#apps.size >= this.options.limits.maxApplications) {
      socket.destroy();
      return;
    }
    const cancelWait = this.options.clock.setTimer(this.options.limits.authenticateTimeoutMs, () => {
      if (app.isAuthenticated) return;
      this.options.log.warn({ application: app.peer }, 'sip_server.application.not_authenticated');
      app.close();
    });
    const app = new AppConnection(
      socket,
      this.options.limits,
      {
        onCommand: (connection, command) => this.#onCommand(connection, command),
        onGone: (connection) => {
          cancelWait();
          this.#apps.delete(connection);
          this.#broker.onAppGone(connection);
          this.options.log.info({ application: connection.peer }, 'sip_server.application.gone');
        },
      },
      this.options.log,
    );
    this.#apps.add(app);
  }

  /** Unlike drachtio-server, ignores all commands before authentication. */
  #onCommand(app: AppConnection, command: AppCommand): void {
    if (app.isAuthenticated) return this.#broker.onCommand(app, command);
    if (command.verb !== 'authenticate') return app.refuse(command.id, 'not authenticated');
    if (!timingSafeEqual(sha256(command.secret), this.#secretHash)) return app.refuse(command.id, 'incorrect secret');
    app.isAuthenticated = true;
    app.tags = command.tags;
    this.options.log.info({ application: app.peer, tags: command.tags }, 'sip_server.application.connected');
    app.payload(formatAnswer(nextSerialId(), command.id, 'OK', this.#hostPorts(true), VERSION, this.#hostPorts(false)));
    this.#broker.onAppHere(app);
  }

  #hostPorts(external: boolean): string {
    return this.#transports.bound
      .map(({ transport, local }) => {
        const host = external ? this.#advertised(transport).address : local.address;
        return `${transport.toLowerCase()}/${formatHostPort(host, local.port)}`;
      })
      .join(',');
  }

  #advertised(transport: TransportName): Endpoint {
    const known = this.#ownEndpoints.get(transport);
    if (known !== undefined) return known;
    const bound = this.#transports.bound.find((candidate) => candidate.transport === transport);
    const own: Endpoint = {
      address: this.options.externalHost ?? bound?.local.address ?? this.options.bindAddress,
      port: bound?.local.port ?? (transport === 'TLS' ? 5061 : 5060),
    };
    if (bound?.local.port !== 0) this.#ownEndpoints.set(transport, own);
    return own;
  }

  #isSelf(host: string, port: number | null): boolean {
    return this.#transports.bound.some(
      ({ transport, local }) =>
        (host === local.address || host === this.options.externalHost) && (port ?? (transport === 'TLS' ? 5061 : 5060)) === local.port,
    );
  }
}

/** A dialog that outlives this process may outlive this host too. */
function storeOf({ journal, cell }: Pick<SipServerOptions, 'journal' | 'cell'>): DialogStore | null {
  if (journal === null || cell === null) return journal;
  return {
    get isOwner() {
      return cell.isOwner;
    },
    get isAwake() {
      return cell.isAwake;
    },
    write: (key, changes, when) => {
      journal.write(key, changes, when);
      cell.write(key);
    },
    end: (key) => {
      journal.end(key);
      cell.end(key);
    },
    isElsewhere: (key) => cell.isElsewhere(key),
  };
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/**
 * Headers that describe the TLS connection of a request's peer.
 * @param passClientIdentity each request names the owner of the peer's verified certificate
 * @param passTls the INVITE of a new dialog has TLS version and cipher
 */
export function tlsHeaders(passClientIdentity: boolean, passTls: boolean): OwnHeaders {
  return {
    ids: new Set([IDENTITY_HEADER, TLS_HEADER, PING_HEADER, TRUNK_TLS_HEADER, PUBLIC_ONLY_HEADER].map(headerId)),
    of: ({ tlsIdentity = '', tls = null }, method, toTag) => [
      ...(passClientIdentity && tlsIdentity !== '' ? [header(IDENTITY_HEADER, tlsIdentity)] : []),
      ...(passTls && tls !== null && method === 'INVITE' && toTag === undefined
        ? [header(TLS_HEADER, `${tls.version} ${tls.cipher}`)]
        : []),
    ],
  };
}
