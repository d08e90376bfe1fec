import { existsSync, readFileSync } from 'node:fs';
import { Duplex } from 'node:stream';
import { AppConnection, type ControlSocket } from '../../src/drachtio/app-connection.js';
import { Broker } from '../../src/drachtio/broker.js';
import { encodeFrame, FrameDecoder } from '../../src/drachtio/frame.js';
import { frameTime } from '../../src/drachtio/meta-line.js';
import { silentLog } from '../../src/lib/log.js';
import { SipStack } from '../../src/sip/stack.js';
import { DEFAULT_TIMERS } from '../../src/sip/transaction/timers.js';
import type { Endpoint, Flow, TransportName } from '../../src/sip/transport/flow.js';
import { UserAgent } from '../../src/sip/user-agent.js';
import { VirtualClock } from './virtual-clock.js';

/** One frame of a recorded session between an application and drachtio-server. */
export interface RecordedFrame {
  readonly from: 'app' | 'server';
  readonly payload: string;
}

const DIRECTORY = new URL('../fixtures/control-protocol/', import.meta.url);

/** The frames of the first connection, in order of time. */
export function readFrames(name: string): RecordedFrame[] {
  const text = readFileSync(new URL(`${name}.txt`, DIRECTORY), 'latin1');
  return [
    ...text.matchAll(/^===== \[conn1\] (APP -> SERVER|SERVER -> APP) frame \d+ bytes \(prefix (\d+) \+ payload (\d+)\).*\r?\n/gm),
  ].map((match) => {
    const start = match.index + match[0].length + Number(match[2]);
    return { from: match[1] === 'APP -> SERVER' ? 'app' : 'server', payload: text.slice(start, start + Number(match[3])) };
  });
}

/** What the caller received, as SIPp logged it; line ends as on the wire. */
export function readReceived(name: string): string[] {
  const file = new URL(`${name}.sip.txt`, DIRECTORY);
  if (!existsSync(file)) return [];
  const text = readFileSync(file, 'latin1').replace(/\r\n/g, '\n');
  return [...text.matchAll(/(?:UDP|TLS) message received \[(\d+)\] bytes:\n\n([\s\S]*?)(?=\n-{20,}|$)/g)].map((match) =>
    (match[2] ?? '').replace(/\n/g, '\r\n').slice(0, Number(match[1])),
  );
}

/** The embedded SIP server without sockets: one application, one caller. */
export class Bench {
  readonly toApp: string[] = [];
  readonly toCaller: string[] = [];
  readonly clock = new VirtualClock();
  readonly #stack: SipStack;
  readonly #broker: Broker;
  #socket: Duplex;
  #connection: AppConnection | undefined;
  readonly #flow: Flow & { isOpen: boolean };
  readonly #userAgent: UserAgent;
  #opens = true;

  constructor(transport: TransportName, remotePort: number) {
    const own = (name: TransportName): Endpoint => ({ address: '127.0.0.1', port: name === 'TLS' ? 25_061 : 25_060 });
    this.#flow = {
      transport,
      reliable: transport !== 'UDP',
      remote: { address: '127.0.0.1', port: remotePort },
      local: own(transport),
      isOpen: true,
      send: (text) => this.toCaller.push(text),
      close: () => undefined,
    };
    const limits = { maxHeaders: 100, maxHeaderBytes: 8_000, maxBodyBytes: 65_536, maxTransactions: 100 };
    this.#stack = new SipStack({ clock: this.clock, timers: DEFAULT_TIMERS, limits, log: silentLog });
    const userAgent = new UserAgent(this.#stack, { open: () => (this.#opens ? this.#flow : undefined), advertised: own }, 'key');
    this.#userAgent = userAgent;
    this.#broker = new Broker(userAgent, {
      log: silentLog,
      timers: this.#stack.timers,
      time: () => frameTime(this.clock.wallMs()),
      advertised: own,
      isSelf: (host, port) => host === '127.0.0.1' && (port === 25_060 || port === 25_061),
      silenceTimeoutMs: 20_000,
      tryingAfterMs: 3_500,
      graceMs: 10_000,
    });
    this.#socket = this.#connect();
  }

  /** A payload from the application. */
  fromApp(payload: string): void {
    this.#socket.push(Buffer.from(encodeFrame(payload), 'latin1'));
  }

  /** A message from the caller. */
  fromCaller(text: string): void {
    this.#stack.onMessage(this.#flow, text);
  }

  /** The caller's connection is gone. */
  dropCaller(): void {
    this.#flow.isOpen = false;
    this.#stack.onClose(this.#flow);
  }

  /** No other connection can be opened from now on. */
  refuseToOpen(): void {
    this.#opens = false;
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

  get dialogs(): number {
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

  #connect(): Duplex {
    const decoder = new FrameDecoder(1 << 20);
    const socket = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _encoding, done) => {
        for (const item of decoder.push(chunk.toString('latin1'))) this.toApp.push(item.type === 'frame' ? item.payload : item.reason);
        done();
      },
    });
    const control = Object.assign(socket, {
      setNoDelay: () => control,
      setKeepAlive: () => control,
      destroySoon: () => void socket.destroy(),
      remoteAddress: '127.0.0.1',
      remotePort: 1,
    }) as unknown as ControlSocket;
    const connection = new AppConnection(
      control,
      { maxFrameBytes: 1 << 20, maxUnsentBytes: 1 << 20 },
      {
        onCommand: (from, command) => this.#broker.onCommand(from, command),
        onGone: (gone) => this.#broker.onAppGone(gone),
      },
      silentLog,
    );
    connection.isAuthenticated = true;
    this.#connection = connection;
    return socket;
  }
}
