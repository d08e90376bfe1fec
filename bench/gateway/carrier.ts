import { connect, type AddressInfo, type Socket } from 'node:net';
import { createServer } from 'node:tls';
import { testCertificates } from '../../test/support/certificates.js';
import type { LoadResult } from '../sip-server/generator.js';
import { takeOrders } from '../support/orders.js';
import { percentile } from '../support/process-figures.js';

// The carrier of calls that the product places: asks the API for each, takes it, acknowledges nothing it need not, and ends it. As of the
// generator, whatever it spends is missing on a machine that it shares: text from templates, read by a few searches.

export interface PlacingOrder {
  readonly type: 'place';
  /** Of the control API. */
  readonly port: number;
  readonly key: string;
  readonly from: string;
  readonly concurrency: number;
  readonly seconds: number;
}

const ANSWER = [
  ...['v=0', 'o=carrier 53655765 2353687637 IN IP4 127.0.0.1', 's=-', 'c=IN IP4 127.0.0.1', 't=0 0', 'm=audio 41000 RTP/SAVP 0 101'],
  'a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR',
  ...['a=rtpmap:0 PCMU/8000', 'a=rtpmap:101 telephone-event/8000', 'a=fmtp:101 0-15', 'a=ptime:20', 'a=sendrecv', ''],
].join('\r\n');
const CALL_LIMIT_MS = 20_000;

/** When its request went out, by called number. */
const underway = new Map<string, number>();
let latencies: number[] = [];
let completed = 0;
let failed = 0;
let started = 0;
let next: () => void = () => undefined;
let serial = 0;
let port = 0;

function lineOf(text: string, name: string, at: number, headEnd: number): string {
  const start = text.indexOf(`\r\n${name}: `, at);
  return start < 0 || start > headEnd ? '' : text.slice(start + name.length + 4, text.indexOf('\r\n', start + 2));
}

class Connection {
  #pending = '';
  #outbox = '';

  constructor(private readonly socket: Socket) {
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => this.#read(chunk.toString('latin1')));
  }

  #read(bytes: string): void {
    const text = this.#pending + bytes;
    let at = 0;
    for (;;) {
      if (text.startsWith('\r\n', at)) {
        at += 2;
        continue;
      }
      const headEnd = text.indexOf('\r\n\r\n', at);
      if (headEnd < 0) break;
      const end = headEnd + 4 + Number(lineOf(text, 'Content-Length', at, headEnd));
      if (end > text.length) break;
      this.#onMessage(text, at, headEnd);
      at = end;
    }
    this.#pending = text.slice(at);
  }

  #onMessage(text: string, at: number, headEnd: number): void {
    const line = (name: string): string => lineOf(text, name, at, headEnd);
    if (text.startsWith('SIP/2.0 ', at)) return this.#onResponse(line('Call-ID'));
    const called = line('To').slice(5, 18);
    const copied = (tag: string): string =>
      `Via: ${line('Via')}\r\nFrom: ${line('From')}\r\nTo: ${line('To')}${tag}\r\nCall-ID: ${line('Call-ID')}\r\nCSeq: ${line('CSeq')}\r\n`;
    if (text.startsWith('INVITE ', at)) {
      const contact = `Contact: <sip:carrier@127.0.0.1:${String(port)};transport=tls>\r\nContent-Type: application/sdp\r\n`;
      return this.#write(
        `SIP/2.0 200 OK\r\n${copied(`;tag=c${called}`)}${contact}Content-Length: ${String(ANSWER.length)}\r\n\r\n${ANSWER}`,
      );
    }
    if (!text.startsWith('ACK ', at)) return this.#write(`SIP/2.0 200 OK\r\n${copied('')}Content-Length: 0\r\n\r\n`);
    const begun = underway.get(called);
    if (begun !== undefined) latencies.push(performance.now() - begun);
    // The BYE goes where the INVITE's Contact was: the ACK has no such, and the connection is the way.
    const via = `SIP/2.0/TLS 127.0.0.1:${String(port)};branch=z9hG4bKb${line('Call-ID')}`;
    this.#write(
      `BYE sip:127.0.0.1;transport=tls SIP/2.0\r\nVia: ${via}\r\nMax-Forwards: 70\r\nFrom: ${line('To')}\r\nTo: ${line('From')}\r\nCall-ID: ${line('Call-ID')}\r\nCSeq: 1 BYE\r\nX: ${called}\r\nContent-Length: 0\r\n\r\n`,
    );
    byCallId.set(line('Call-ID'), called);
  }

  #onResponse(callId: string): void {
    const called = byCallId.get(callId);
    if (called === undefined) return;
    byCallId.delete(callId);
    if (!underway.delete(called)) return;
    completed += 1;
    next();
  }

  #write(text: string): void {
    if (this.#outbox === '')
      setImmediate(() => {
        this.socket.write(this.#outbox, 'latin1');
        this.#outbox = '';
      });
    this.#outbox += text;
  }
}

const byCallId = new Map<string, string>();

/** A connection to the API that is kept, with one request at a time: Node's own client costs as much as all of the calls here. */
class ApiConnection {
  readonly #socket: Socket;
  #answer = '';
  #onStatus: ((status: number) => void) | null = null;

  constructor(
    port: number,
    private readonly head: string,
    private readonly onFree: (connection: ApiConnection) => void,
  ) {
    this.#socket = connect(port, '127.0.0.1');
    this.#socket.setNoDelay(true);
    this.#socket.on('data', (chunk: Buffer) => this.#read(chunk.toString('latin1')));
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => this.#done(0));
  }

  /** @param onStatus of HTTP; 0: none came */
  post(body: string, onStatus: (status: number) => void): void {
    this.#onStatus = onStatus;
    this.#socket.write(`${this.head}content-length: ${String(body.length)}\r\n\r\n${body}`, 'latin1');
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(text: string): void {
    this.#answer += text;
    const headEnd = this.#answer.indexOf('\r\n\r\n');
    const length = /content-length: (\d+)/i.exec(this.#answer)?.[1];
    if (headEnd < 0 || length === undefined || this.#answer.length < headEnd + 4 + Number(length)) return;
    const status = Number(this.#answer.slice(9, 12));
    this.#answer = '';
    this.#done(status);
    this.onFree(this);
  }

  #done(status: number): void {
    const tell = this.#onStatus;
    this.#onStatus = null;
    tell?.(status);
  }
}

async function place(order: PlacingOrder): Promise<LoadResult> {
  [latencies, completed, failed, started] = [[], 0, 0, 0];
  const head = `POST /v1/calls HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${order.key}\r\ncontent-type: application/json\r\n`;
  const connections: ApiConnection[] = [];
  const free: ApiConnection[] = [];
  const connection = (): ApiConnection => {
    const known = free.pop();
    if (known !== undefined) return known;
    const made = new ApiConnection(order.port, head, (one) => free.push(one));
    connections.push(made);
    return made;
  };
  const begun = performance.now();
  const until = begun + order.seconds * 1_000;
  const fail = (called: string): void => {
    if (!underway.delete(called)) return;
    failed += 1;
    next();
  };
  next = () => {
    if (performance.now() >= until) return;
    const called = `+4930${String((serial += 1) % 100_000_000).padStart(8, '0')}`;
    underway.set(called, performance.now());
    started += 1;
    connection().post(`{"phone_number":"${called}","from":"${order.from}"}`, (status) => {
      if (status !== 200) fail(called);
    });
  };
  for (let index = 0; index < order.concurrency; index += 1) next();
  await new Promise((resolve) => setTimeout(resolve, order.seconds * 1_000));
  const seconds = (performance.now() - begun) / 1_000;
  while (underway.size > 0 && performance.now() < until + CALL_LIMIT_MS) await new Promise((resolve) => setTimeout(resolve, 10));
  for (const called of underway.keys()) fail(called);
  for (const one of connections) one.close();
  const sorted = Float64Array.from(latencies).sort();
  return {
    started,
    completed,
    failed,
    refused: 0,
    seconds,
    wholeSeconds: (performance.now() - begun) / 1_000,
    refusalMs: 0,
    maxLateMs: 0,
    latencyMs: { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), p999: percentile(sorted, 0.999) },
  };
}

const { cert, key } = await testCertificates();
const server = createServer({ cert, key, minVersion: 'TLSv1.2' }, (socket) => new Connection(socket));
server.listen(0, '127.0.0.1', () => {
  ({ port } = server.address() as AddressInfo);
  takeOrders(place, port);
});
