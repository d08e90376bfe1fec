import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { AppConnection, type ControlSocket } from '../../src/sip-server/applications.js';
import { Broker } from '../../src/sip-server/broker.js';
import { encodeFrame, FrameDecoder, frameTime } from '../../src/sip-server/control-protocol.js';
import { DialogJournal } from '../../src/sip-server/dialog-journal.js';
import type { DialogStore } from '../../src/sip/dialog/dialog-record.js';
import { silentLog } from '../../src/lib/log.js';
import { SipStack, type StackLimits } from '../../src/sip/stack.js';
import { DEFAULT_TIMERS } from '../../src/sip/transaction/timers.js';
import type { Endpoint, Flow, Target, TransportName } from '../../src/sip/transport/flow.js';
import { StreamFlow } from '../../src/sip/transport/stream-flow.js';
import { UserAgent } from '../../src/sip/user-agent.js';
import { VirtualClock } from './virtual-clock.js';

/** Limits of the SIP server under test. Those of heads and connections matter only for a caller that sends bytes. */
export interface BenchLimits extends StackLimits {
  readonly maxHeadBytes: number;
}

const LIMITS: BenchLimits = { maxHeaders: 100, maxHeaderBytes: 8_000, maxHeadBytes: 65_536, maxBodyBytes: 65_536, maxTransactions: 100 };

/** The embedded SIP server without sockets: one application, one caller. */
export class Bench {
  readonly toApp: string[] = [];
  readonly toCaller: string[] = [];
  /** What connections were asked for. */
  readonly opened: Target[] = [];
  readonly clock = new VirtualClock();
  #stack!: SipStack;
  #broker!: Broker;
  #userAgent!: UserAgent;
  #journal: DialogJournal | null = null;
  /** False: another host may have the dialogs. */
  isOwner = true;
  /** False: it stood still, and does not know. */
  isAwake = true;
  #socket: Duplex;
  #connection: AppConnection | undefined;
  #flow!: Flow;
  #wire: Duplex | undefined;
  #isOpen = { now: true };
  #opens = true;

  /**
   * @param caller what it sends is whole messages, or the bytes of a connection, cut by the server itself
   * @param journalFile where calls outlive the server; left out: they end with it
   */
  constructor(
    private readonly transport: TransportName,
    private readonly remotePort: number,
    caller: 'messages' | 'bytes' = 'messages',
    limits: Partial<BenchLimits> = {},
    private readonly journalFile: string | null = null,
  ) {
    const all = { ...LIMITS, ...limits };
    this.#startServer(all);
    if (caller === 'bytes' && transport !== 'UDP') {
      this.#wire = this.#callerSocket();
      const more = { messageTimeoutMs: 10_000, maxUnsentBytes: 1 << 20 };
      const remote = { address: '127.0.0.1', port: remotePort };
      this.#flow = new StreamFlow(asSocket(this.#wire), transport, ownOf(transport), remote, this.#stack, { ...all, ...more }, this.clock);
    } else this.callAgainFrom('127.0.0.1');
    this.#socket = this.#connect();
  }

  #startServer(limits: BenchLimits): void {
    const { journalFile, clock } = this;
    this.#journal = journalFile === null ? null : new DialogJournal({ file: journalFile, clock, log: silentLog });
    this.#stack = new SipStack({ clock, timers: DEFAULT_TIMERS, limits, log: silentLog });
    const isSelf = (host: string, port: number | null): boolean => host === '127.0.0.1' && (port === 25_060 || port === 25_061);
    const flows = {
      open: (target: Target): Flow | undefined => {
        this.opened.push(target);
        return this.#opens ? this.#flow : undefined;
      },
      advertised: ownOf,
    };
    this.#userAgent = new UserAgent(this.#stack, flows, { key: 'key', isSelf: ({ host, port }) => isSelf(host, port) }, this.#store());
    this.#broker = new Broker(this.#userAgent, {
      log: silentLog,
      timers: this.#stack.timers,
      time: () => frameTime(clock.wallMs()),
      advertised: ownOf,
      isSelf,
      optionsUserAgents: ['probe/1.0'],
      silenceTimeoutMs: 20_000,
      tryingAfterMs: 3_500,
      graceMs: 10_000,
      parkMs: 300_000,
      maxApplicationDelayMs: 100,
      clock,
    });
    this.#journal?.open({
      records: () => this.#userAgent.records(),
      restore: (records, awayMs) => {
        for (const record of records) this.#broker.restore(this.#userAgent.restore(record), awayMs);
      },
    });
  }

  #store(): DialogStore | null {
    const journal = this.#journal;
    const isOwner = (): boolean => this.isOwner;
    const isAwake = (): boolean => this.isAwake;
    return (
      journal && {
        get isOwner() {
          return isOwner();
        },
        get isAwake() {
          return isAwake();
        },
        write: (key, changes, when) => journal.write(key, changes, when),
        end: (key) => journal.end(key),
        isElsewhere: () => false,
      }
    );
  }

  /** kill -9 of the server, and its next start: connections are gone, and the application is. */
  crash(awayMs = 0): void {
    this.#stack.close();
    this.#journal?.close();
    this.#isOpen.now = false;
    this.#connection = undefined;
    this.clock.advance(awayMs);
    this.#startServer(LIMITS);
  }

  /** The caller has another connection. */
  callAgainFrom(address: string): void {
    this.#isOpen = { now: true };
    this.#flow = this.#messageFlow(this.transport, ownOf(this.transport), { address, port: this.remotePort }, this.#isOpen);
  }

  /** A payload from the application. */
  fromApp(payload: string): void {
    this.#socket.push(Buffer.from(encodeFrame(payload), 'latin1'));
  }

  /** A message from the caller; any bytes where the caller sends bytes. */
  fromCaller(text: string): void {
    if (this.#wire === undefined) this.#stack.onMessage(this.#flow, text);
    else this.#wire.push(Buffer.from(text, 'latin1'));
  }

  /** The caller's connection is gone. */
  dropCaller(): void {
    this.#isOpen.now = false;
    this.#stack.onClose(this.#flow);
  }

  /** No other connection can be opened from now on. */
  refuseToOpen(): void {
    this.#opens = false;
  }

  /** Whether the caller's connection stands. */
  get isCallerConnected(): boolean {
    return this.#flow.isOpen;
  }

  /** The application is gone. */
  dropApp(): void {
    this.#socket.destroy();
  }

  /** Tags as the application states them when it authenticates. */
  identify(tags: readonly string[]): void {
    if (this.#connection !== undefined) this.#connection.tags = tags;
  }

  /** An application is there again. */
  async connectAgain(tags: readonly string[]): Promise<void> {
    this.#socket = this.#connect();
    this.identify(tags);
    if (this.#connection !== undefined) this.#broker.onAppHere(this.#connection);
    await this.settle();
  }

  get dialogCount(): number {
    return this.#userAgent.dialogCount;
  }

  /** Everything that could be left behind. */
  get left(): Readonly<Record<string, number>> {
    return { ...this.#broker.counts, transactions: this.#stack.transactionCount, timers: this.#stack.timers.size };
  }

  /** Time passes; everything that falls due happens. */
  async pass(ms: number): Promise<void> {
    this.clock.advance(ms);
    await this.settle();
  }

  /** Lets everything of this turn of the event loop happen. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }

  #messageFlow(transport: TransportName, local: Endpoint, remote: Endpoint, isOpen: { readonly now: boolean }): Flow {
    return {
      transport,
      reliable: transport !== 'UDP',
      remote,
      local,
      get isOpen() {
        return isOpen.now;
      },
      send: (text) => {
        if (isOpen.now) this.toCaller.push(text);
      },
      close: () => undefined,
    };
  }

  /** What the server writes in one go comes as one text. */
  #callerSocket(): Duplex {
    return new Duplex({
      read: () => undefined,
      write: (chunk: Buffer | string, encoding, done) => {
        this.toCaller.push(typeof chunk === 'string' ? Buffer.from(chunk, encoding).toString('latin1') : chunk.toString('latin1'));
        done();
      },
    });
  }

  #connect(): Duplex {
    const decoder = new FrameDecoder(1 << 20);
    const broker = this.#broker;
    const socket = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _encoding, done) => {
        if (this.#connection !== connection) return done();
        for (const item of decoder.push(chunk.toString('latin1'))) this.toApp.push(item.type === 'frame' ? item.payload : item.reason);
        done();
      },
    });
    const connection = new AppConnection(
      asSocket(socket),
      { maxFrameBytes: 1 << 20, maxUnsentFrameBytes: 1 << 20 },
      {
        onCommand: (from, command) => {
          if (broker === this.#broker) broker.onCommand(from, command);
        },
        onGone: (gone) => {
          if (broker === this.#broker) broker.onAppGone(gone);
        },
      },
      silentLog,
    );
    connection.isAuthenticated = true;
    this.#connection = connection;
    return socket;
  }
}

function ownOf(name: TransportName): Endpoint {
  return { address: '127.0.0.1', port: name === 'TLS' ? 25_061 : 25_060 };
}

/** A stream with what else a socket has. */
function asSocket(stream: Duplex): ControlSocket & Socket {
  const socket = Object.assign(stream, {
    setNoDelay: () => socket,
    setKeepAlive: () => socket,
    destroySoon: () => void stream.destroy(),
    remoteAddress: '127.0.0.1',
    remotePort: 1,
  }) as unknown as ControlSocket & Socket;
  return socket;
}
