import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { takeOrders } from '../support/orders.js';
import { percentile } from '../support/process-figures.js';

// One connection that carries every call, as a carrier's does. Text is put together from templates and read by a few searches:
// whatever the generator spends is missing on a machine that it shares with what it measures.

export interface LoadTarget {
  readonly port: number;
  readonly transport: 'TLS' | 'TCP';
  /** PEM of the CA; TLS only. */
  readonly ca: string | null;
  readonly messages: 'sipp' | 'carrier';
  /** Of the carrier's offers; `sendrecv` unless given. */
  readonly direction?: 'inactive';
}

/** Connections that share the calls; 1 unless given. */
interface Shared {
  readonly connections?: number;
}

export type LoadOrder =
  /** So many calls at once, each followed by the next. */
  | ({ readonly type: 'closed'; readonly target: LoadTarget; readonly concurrency: number; readonly seconds: number } & Shared)
  /** So many calls a second, whatever becomes of them. */
  | ({
      readonly type: 'open';
      readonly target: LoadTarget;
      readonly rate: number;
      readonly seconds: number;
      readonly mix?: boolean;
      /** Before the ACK, and before the BYE; 0 unless given. */
      readonly pauseMs?: number;
    } & Shared)
  /** Calls that stay up until `release`. */
  | { readonly type: 'hold'; readonly target: LoadTarget; readonly count: number }
  | { readonly type: 'idle'; readonly target: LoadTarget; readonly count: number }
  | { readonly type: 'release' };

export interface LoadResult {
  readonly started: number;
  readonly completed: number;
  readonly failed: number;
  /** INVITEs that got 503. */
  readonly refused: number;
  readonly seconds: number;
  /** Until the last call had ended. */
  readonly wholeSeconds: number;
  /** INVITE to 200, in milliseconds. */
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly p999: number };
  /** INVITE to 503, in milliseconds, 99th percentile. */
  readonly refusalMs: number;
  /** How late the generator itself was in sending, at worst, in milliseconds. */
  readonly maxLateMs: number;
}

/** What becomes of the calls of a mix, in turn: answered, refused with 486, cancelled by the caller. */
const MIX = ['answered', 'busy', 'answered', 'ringing', 'answered'] as const;

/** What SIPp's own scenarios send; the figures that drachtio-server is known by were made with them. */
const SIPP_OFFER =
  'v=0\r\no=user1 53655765 2353687637 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 6000 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n';
const SIPP_HEADERS = 'Subject: Performance Test\r\n';

/** What a session border controller of a carrier sends. */
const CARRIER_OFFER = [
  'v=0',
  'o=carrier 53655765 2353687637 IN IP4 127.0.0.1',
  's=-',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'm=audio 41000 RTP/SAVP 0 8 101',
  'a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR',
  'a=rtpmap:0 PCMU/8000',
  'a=rtpmap:8 PCMA/8000',
  'a=rtpmap:101 telephone-event/8000',
  'a=fmtp:101 0-15',
  'a=ptime:20',
  'a=sendrecv',
  '',
].join('\r\n');
const CARRIER_HEADERS =
  'User-Agent: Carrier SBC 7.2\r\nAllow: INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK\r\nSupported: timer, 100rel\r\nP-Asserted-Identity: <sip:+15550100999@carrier.example>\r\n';

/** A call that has had no end for so long has failed. */
const CALL_LIMIT_MS = 20_000;

/** From the 200: the address of requests in the dialog (RFC 3261 §12.1.2). */
interface Dialog {
  readonly toTag: string;
  readonly target: string;
  /** A Route header with its line end; '' where no proxy stays in the way. */
  readonly route: string;
}

function between(text: string, before: string, after: string, at: number, headEnd: number): string {
  const start = text.indexOf(before, at);
  return start < 0 || start > headEnd ? '' : text.slice(start + before.length, text.indexOf(after, start + before.length));
}

function routeOf(text: string, at: number, headEnd: number): string {
  const recorded = between(text, '\r\nRecord-Route: ', '\r\n', at, headEnd);
  return recorded === '' ? '' : `Route: ${recorded}\r\n`;
}

class Connection {
  readonly #socket: Socket;
  readonly #head: string;
  readonly #headers: string;
  readonly #offer: string;
  readonly #sentAt = new Map<number, number>();
  readonly #latencies: number[] = [];
  readonly #refusals: number[] = [];
  #pending = '';
  #outbox = '';
  #started = 0;
  #completed = 0;
  #failed = 0;
  onEnd: (id: number) => void = () => undefined;
  holds = false;
  held: { id: number; dialog: Dialog }[] = [];
  isMixed = false;
  pauseMs = 0;

  constructor(private readonly target: LoadTarget) {
    const { port, transport, ca, messages, direction } = target;
    this.#socket =
      transport === 'TLS' ? connectTls({ host: '127.0.0.1', port, servername: 'localhost', ca: ca ?? '' }) : connectTcp(port, '127.0.0.1');
    this.#socket.setNoDelay(true);
    this.#socket.on('data', (chunk: Buffer) => this.#read(chunk.toString('latin1')));
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => {
      this.#failed += this.#sentAt.size;
      this.#sentAt.clear();
    });
    this.#headers = messages === 'sipp' ? SIPP_HEADERS : CARRIER_HEADERS;
    this.#offer = messages === 'sipp' ? SIPP_OFFER : CARRIER_OFFER.replace('sendrecv', direction ?? 'sendrecv');
    this.#head = `SIP/2.0/${transport} 127.0.0.1:55061;branch=z9hG4bK`;
  }

  opened(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.once(this.target.transport === 'TLS' ? 'secureConnect' : 'connect', () => resolve());
      this.#socket.once('error', reject);
    });
  }

  get underway(): number {
    return this.#sentAt.size;
  }

  invite(id: number): void {
    this.#started += 1;
    this.#sentAt.set(id, performance.now());
    this.#write(
      `INVITE sip:${this.#userOf(id)}@127.0.0.1 SIP/2.0\r\nVia: ${this.#head}i${id}\r\nMax-Forwards: 70\r\nFrom: "Caller" <sip:+15550100999@carrier.example>;tag=f${id}\r\nTo: <sip:+15550100100@127.0.0.1>\r\nCall-ID: c${id}@carrier.example\r\nCSeq: 1 INVITE\r\nContact: <sip:carrier@127.0.0.1:55061;transport=${this.target.transport.toLowerCase()}>\r\n${this.#headers}Content-Type: application/sdp\r\nContent-Length: ${this.#offer.length}\r\n\r\n${this.#offer}`,
    );
  }

  bye(id: number, dialog: Dialog): void {
    this.#sentAt.set(id, performance.now());
    this.#write(this.#inDialog('BYE', 2, 'b', id, dialog));
  }

  static result(connections: readonly Connection[], seconds: number, maxLateMs: number, wholeSeconds = seconds): LoadResult {
    const sorted = Float64Array.from(connections.flatMap((one) => one.#latencies)).sort();
    const sum = (of: (one: Connection) => number): number => connections.reduce((all, one) => all + of(one), 0);
    return {
      started: sum((one) => one.#started),
      completed: sum((one) => one.#completed),
      failed: sum((one) => one.#failed),
      refused: sum((one) => one.#refusals.length),
      seconds,
      wholeSeconds,
      latencyMs: { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), p999: percentile(sorted, 0.999) },
      refusalMs: percentile(Float64Array.from(connections.flatMap((one) => one.#refusals)).sort(), 0.99),
      maxLateMs,
    };
  }

  /** Calls that have waited too long are failures. */
  expire(): void {
    const limit = performance.now() - CALL_LIMIT_MS;
    for (const [id, sentAt] of this.#sentAt) if (sentAt < limit) this.#fail(id);
  }

  close(): void {
    this.#failed += this.#sentAt.size;
    this.#sentAt.clear();
    this.#socket.destroy();
  }

  #userOf(id: number): string {
    const kind = this.isMixed ? (MIX[id % MIX.length] ?? 'answered') : 'answered';
    return kind === 'answered' ? '+15550100100' : kind;
  }

  /** CANCEL, and the ACK to an error: of the INVITE's own transaction. */
  #ofInvite(method: string, id: number, to: string): string {
    return `${method} sip:${this.#userOf(id)}@127.0.0.1 SIP/2.0\r\nVia: ${this.#head}i${id}\r\nMax-Forwards: 70\r\nFrom: "Caller" <sip:+15550100999@carrier.example>;tag=f${id}\r\nTo: ${to}\r\nCall-ID: c${id}@carrier.example\r\nCSeq: 1 ${method}\r\nContent-Length: 0\r\n\r\n`;
  }

  #inDialog(method: string, cseq: number, branch: string, id: number, { toTag, target, route }: Dialog): string {
    return `${method} ${target} SIP/2.0\r\nVia: ${this.#head}${branch}${id}\r\n${route}Max-Forwards: 70\r\nFrom: "Caller" <sip:+15550100999@carrier.example>;tag=f${id}\r\nTo: <sip:+15550100100@127.0.0.1>;tag=${toTag}\r\nCall-ID: c${id}@carrier.example\r\nCSeq: ${cseq} ${method}\r\nContent-Length: 0\r\n\r\n`;
  }

  #write(text: string): void {
    if (this.#outbox === '') setImmediate(() => this.#flush());
    this.#outbox += text;
  }

  #flush(): void {
    this.#socket.write(this.#outbox, 'latin1');
    this.#outbox = '';
  }

  #read(bytes: string): void {
    const text = this.#pending === '' ? bytes : this.#pending + bytes;
    let at = 0;
    for (;;) {
      const headEnd = text.indexOf('\r\n\r\n', at);
      if (headEnd < 0) break;
      const length = text.lastIndexOf('\r\nContent-Length: ', headEnd);
      const end = headEnd + 4 + (length > at ? parseInt(text.slice(length + 18, length + 26), 10) : 0);
      if (end > text.length) break;
      this.#onMessage(text, at, headEnd);
      at = end;
    }
    this.#pending = text.slice(at);
  }

  /** A held call's peer is asked with OPTIONS whether it is still there. */
  #answer(text: string, at: number, headEnd: number): void {
    const copied = ['Via', 'From', 'To', 'Call-ID', 'CSeq'].map(
      (name) => `${name}: ${between(text, `\r\n${name}: `, '\r\n', at, headEnd)}\r\n`,
    );
    this.#write(`SIP/2.0 200 OK\r\n${copied.join('')}Content-Length: 0\r\n\r\n`);
  }

  #onMessage(text: string, at: number, headEnd: number): void {
    if (text.startsWith('OPTIONS ', at)) return this.#answer(text, at, headEnd);
    const status = parseInt(text.slice(at + 8, at + 11), 10);
    if (!(status >= 200) && !this.isMixed) return;
    const callId = text.indexOf('\r\nCall-ID: c', at);
    const id = parseInt(text.slice(callId + 12, callId + 22), 10);
    const sentAt = this.#sentAt.get(id);
    if (sentAt === undefined) return;
    if (this.isMixed && this.#onMixed(text, at, status, id)) return;
    if (status === 503) return this.#onRefused(text, at, id, sentAt);
    if (status >= 300) return this.#fail(id);
    if (text.startsWith('CSeq: 2', text.indexOf('\r\nCSeq: ', at) + 2)) {
      this.#sentAt.delete(id);
      this.#completed += 1;
      return this.onEnd(id);
    }
    this.#latencies.push(performance.now() - sentAt);
    const tag = text.indexOf(';tag=', text.indexOf('\r\nTo: ', at));
    const toTag = text.slice(tag + 5, Math.min(text.indexOf('\r\n', tag), headEnd));
    const dialog: Dialog = {
      toTag,
      target: between(text, '\r\nContact: <', '>', at, headEnd) || 'sip:127.0.0.1',
      route: routeOf(text, at, headEnd),
    };
    if (this.pauseMs > 0) return this.#acknowledgeLater(id, dialog);
    this.#write(this.#inDialog('ACK', 1, 'a', id, dialog));
    if (!this.holds) return this.bye(id, dialog);
    this.#sentAt.delete(id);
    this.held.push({ id, dialog });
    this.onEnd(id);
  }

  #acknowledgeLater(id: number, dialog: Dialog): void {
    setTimeout(() => this.#write(this.#inDialog('ACK', 1, 'a', id, dialog)), this.pauseMs);
    setTimeout(() => this.bye(id, dialog), 2 * this.pauseMs);
  }

  /** What is not the way of an answered call. */
  #onMixed(text: string, at: number, status: number, id: number): boolean {
    const kind = MIX[id % MIX.length] ?? 'answered';
    if (status === 100 && kind === 'ringing') this.#write(this.#ofInvite('CANCEL', id, '<sip:+15550100100@127.0.0.1>'));
    if (status < 200) return true;
    if (kind === 'answered') return false;
    const cseq = text.indexOf('\r\nCSeq: ', at);
    if (text.startsWith('1 CANCEL', cseq + 8)) return true;
    if (status !== (kind === 'busy' ? 486 : 487)) return false;
    const to = text.indexOf('\r\nTo: ', at);
    this.#write(this.#ofInvite('ACK', id, text.slice(to + 6, text.indexOf('\r\n', to + 2))));
    this.#sentAt.delete(id);
    this.#completed += 1;
    this.onEnd(id);
    return true;
  }

  #onRefused(text: string, at: number, id: number, sentAt: number): void {
    const to = text.indexOf('\r\nTo: ', at);
    this.#write(this.#ofInvite('ACK', id, text.slice(to + 6, text.indexOf('\r\n', to + 2))));
    this.#refusals.push(performance.now() - sentAt);
    this.#fail(id);
  }

  #fail(id: number): void {
    this.#sentAt.delete(id);
    this.#failed += 1;
    this.onEnd(id);
  }
}

let nextId = 1_000_000;
const open: Connection[] = [];
const sockets: Socket[] = [];

async function drain(...connections: readonly Connection[]): Promise<void> {
  const limit = performance.now() + CALL_LIMIT_MS;
  while (connections.some(({ underway }) => underway > 0) && performance.now() < limit) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    for (const connection of connections) connection.expire();
  }
}

async function opened(target: LoadTarget, count = 1): Promise<readonly [Connection, ...Connection[]]> {
  const connections: [Connection, ...Connection[]] = [new Connection(target)];
  while (connections.length < count) connections.push(new Connection(target));
  await Promise.all(connections.map((connection) => connection.opened()));
  return connections;
}

async function closedLoop(order: Extract<LoadOrder, { type: 'closed' }>): Promise<LoadResult> {
  const connections = await opened(order.target, order.connections);
  const begun = performance.now();
  const until = begun + order.seconds * 1_000;
  for (const connection of connections) {
    connection.onEnd = () => {
      if (performance.now() < until) connection.invite(nextId++);
    };
  }
  for (let index = 0; index < order.concurrency; index += 1) connections[index % connections.length]?.onEnd(0);
  await new Promise((resolve) => setTimeout(resolve, order.seconds * 1_000));
  const seconds = (performance.now() - begun) / 1_000;
  await drain(...connections);
  for (const connection of connections) connection.close();
  return Connection.result(connections, seconds, 0);
}

async function openLoop(order: Extract<LoadOrder, { type: 'open' }>): Promise<LoadResult> {
  const connections = await opened(order.target, order.connections);
  for (const connection of connections) Object.assign(connection, { isMixed: order.mix ?? false, pauseMs: order.pauseMs ?? 0 });
  const begun = performance.now();
  const total = order.rate * order.seconds;
  let sent = 0;
  let maxLateMs = 0;
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const now = performance.now() - begun;
      if (sent < total) maxLateMs = Math.max(maxLateMs, now - (sent * 1_000) / order.rate);
      for (const due = Math.min(total, Math.floor((now * order.rate) / 1_000)); sent < due; sent += 1)
        connections[sent % connections.length]?.invite(nextId++);
      if (sent < total) return;
      clearInterval(timer);
      resolve();
    }, 1);
  });
  const seconds = (performance.now() - begun) / 1_000;
  await drain(...connections);
  const wholeSeconds = (performance.now() - begun) / 1_000;
  for (const connection of connections) connection.close();
  return Connection.result(connections, seconds, maxLateMs, wholeSeconds);
}

async function hold(order: Extract<LoadOrder, { type: 'hold' }>): Promise<LoadResult> {
  const connection = new Connection(order.target);
  await connection.opened();
  open.push(connection);
  connection.holds = true;
  let left = order.count;
  const begun = performance.now();
  const next = (): void => {
    if (left-- > 0) connection.invite(nextId++);
  };
  connection.onEnd = next;
  for (let index = 0; index < 50; index += 1) next();
  while (connection.held.length < order.count && performance.now() - begun < 120_000)
    await new Promise((resolve) => setTimeout(resolve, 20));
  return Connection.result([connection], (performance.now() - begun) / 1_000, 0);
}

async function idle(order: Extract<LoadOrder, { type: 'idle' }>): Promise<void> {
  const { port, ca } = order.target;
  for (let index = 0; index < order.count; index += 1) {
    // The limit of connections is one of a source address.
    const localAddress = `127.0.1.${String(1 + Math.floor(index / 500))}`;
    const socket = connectTls({ socket: connectTcp({ host: '127.0.0.1', port, localAddress }), servername: 'localhost', ca: ca ?? '' });
    await new Promise((resolve, reject) => {
      socket.once('secureConnect', resolve);
      socket.once('error', reject);
    });
    socket.on('error', () => undefined);
    sockets.push(socket);
  }
}

async function release(): Promise<LoadResult> {
  const released = [...open];
  for (const connection of open.splice(0)) {
    connection.holds = false;
    for (const { id, dialog } of connection.held.splice(0)) connection.bye(id, dialog);
    await drain(connection);
    connection.close();
  }
  for (const socket of sockets.splice(0)) socket.destroy();
  return Connection.result(released, 0, 0);
}

async function carryOut(order: LoadOrder): Promise<LoadResult | null> {
  switch (order.type) {
    case 'closed':
      return closedLoop(order);
    case 'open':
      return openLoop(order);
    case 'hold':
      return hold(order);
    case 'idle':
      await idle(order);
      return null;
    case 'release':
      return release();
  }
}

takeOrders(carryOut);
