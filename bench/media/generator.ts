import { createSocket, type Socket } from 'node:dgram';
import { generateSrtpKey, SrtpSession } from '../../src/srtp/srtp.js';
import { percentile } from '../support/process-figures.js';
import type { CarrierSide, DelayFigures, FarSide, GeneratorOrder, TrafficFigures } from './messages.js';
import { takeOrders } from '../support/orders.js';
import { ECHO_AT, elapsedMs, nowUs, readSerial, readTime, TIME_AT, writeSerial, writeTime } from './stamp.js';

// Many carriers in one process: each call sends a packet each 20 ms, at a phase of its own, and hears what comes back.

const CALLS_PER_SOCKET = 32;
const FRAME_MS = 20;
const PACKET_BYTES = 172;
const MAX_SAMPLES = 4_000_000;
/** As people speak: two seconds of words, one of silence. */
const ROUND_PACKETS = 150;
const WORD_PACKETS = 100;
const SILENCE = 0xff;

class Call {
  readonly packet = Buffer.alloc(PACKET_BYTES + 16, 0xff);
  protect: SrtpSession | null = null;
  unprotect: SrtpSession | null = null;
  far: FarSide | null = null;
  sequence = 0;
  timestamp = 0;
  sentFrom = 0;
  readonly heard = new Set<number>();
  transit: number | null = null;

  constructor(
    readonly index: number,
    readonly socket: Socket,
    readonly key: Uint8Array | null,
  ) {
    this.packet.writeUInt8(0x80, 0);
    this.packet.writeUInt32BE(0x10000 + index, 8);
  }
}

const calls: Call[] = [];
const sockets: Socket[] = [];
const byPorts = new Map<number, Call>();
const total = new Float64Array(MAX_SAMPLES);
const up = new Float64Array(MAX_SAMPLES);
let samples = 0;
let isMeasuring = false;
let sent = 0;
let received = 0;
let jitterMs = 0;
let lateMs = 0;
let startMs = 0;
let nextSlot = 0;

async function prepare(count: number, first: number, isSecure: boolean): Promise<CarrierSide[]> {
  for (let i = first; i < first + count; i += 1) {
    const slot = Math.floor(i / CALLS_PER_SOCKET);
    sockets[slot] ??= await bound();
    const socket = sockets[slot];
    calls[i] = new Call(i, socket, isSecure ? generateSrtpKey() : null);
  }
  return calls.slice(first, first + count).map((call) => ({
    id: `bench-${String(call.index)}`,
    port: call.socket.address().port,
    key: call.key === null ? null : Buffer.from(call.key).toString('base64'),
  }));
}

function bound(): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 << 20, lookup: (host, _options, done) => done(null, host, 4) });
  return new Promise((resolve) =>
    socket.bind(0, '127.0.0.1', () => {
      const own = socket.address().port;
      // A far port may have a call on each of our sockets.
      socket.on('message', (datagram, from) => hear(byPorts.get(from.port * 65_536 + own), datagram));
      resolve(socket);
    }),
  );
}

function start(far: readonly FarSide[]): void {
  for (const side of far) {
    const call = calls[Number(side.id.slice('bench-'.length))];
    if (call === undefined) throw new Error('no such call');
    call.far = side;
    if (call.key !== null && side.key !== null) {
      call.protect = new SrtpSession(call.key, 'send');
      call.unprotect = new SrtpSession(Buffer.from(side.key, 'base64'), 'receive');
    }
    byPorts.set(side.port * 65_536 + call.socket.address().port, call);
  }
  if (startMs === 0) {
    startMs = performance.now();
    tick();
  }
}

/** Slot n is due n ms after the start; call i sends in the slots that are i modulo 20. */
function tick(): void {
  const now = performance.now();
  for (; startMs + nextSlot <= now; nextSlot += 1) {
    if (isMeasuring) lateMs = Math.max(lateMs, now - startMs - nextSlot);
    for (let i = nextSlot % FRAME_MS; i < calls.length; i += FRAME_MS) {
      const call = calls[i];
      if (call?.far != null) send(call, call.far);
    }
  }
  setTimeout(tick, Math.max(0, startMs + nextSlot - performance.now()));
}

const LOUD = 0xd0;

function isSpoken(serial: number): boolean {
  return serial % ROUND_PACKETS < WORD_PACKETS;
}

function send(call: Call, far: FarSide): void {
  const { packet } = call;
  call.sequence += 1;
  call.timestamp = (call.timestamp + 160) >>> 0;
  packet.writeUInt8(0, 1);
  packet.writeUInt16BE(call.sequence & 0xffff, 2);
  packet.writeUInt32BE(call.timestamp, 4);
  const isWord = isSpoken(call.sequence);
  packet.fill(isWord ? LOUD : SILENCE, 12, PACKET_BYTES);
  if (isWord) {
    writeTime(packet, 12 + TIME_AT, nowUs());
    writeSerial(packet, 12, call.sequence);
  }
  const length = call.protect === null ? PACKET_BYTES : call.protect.protectRtp(packet, PACKET_BYTES);
  call.socket.send(packet, 0, length, far.port, '127.0.0.1');
  if (isMeasuring && isWord) sent += 1;
}

function hear(call: Call | undefined, datagram: Buffer): void {
  if (call === undefined) return;
  const now = nowUs();
  const length = call.unprotect === null ? datagram.length : call.unprotect.tryUnprotectRtp(datagram, datagram.length);
  if (length < PACKET_BYTES || (datagram[12 + TIME_AT] ?? 0) >= 0xc0) return;
  const serial = readSerial(datagram, 12);
  if (!isMeasuring || serial < call.sentFrom || serial > call.sequence || call.heard.has(serial)) return;
  call.heard.add(serial);
  received += 1;
  const sentUs = readTime(datagram, 12 + TIME_AT);
  const delayMs = elapsedMs(sentUs, now);
  const echoMs = elapsedMs(sentUs, readTime(datagram, 12 + ECHO_AT));
  if (samples < MAX_SAMPLES) {
    total[samples] = delayMs;
    up[samples] = echoMs < delayMs ? echoMs : Number.NaN;
    samples += 1;
  }
  // RFC 3550 §6.4.1, over all calls.
  if (call.transit !== null) jitterMs += (Math.abs(delayMs - call.transit) - jitterMs) / 1_024;
  call.transit = delayMs;
}

function measure(): void {
  isMeasuring = true;
  sent = received = samples = 0;
  lateMs = 0;
  for (const call of calls) {
    call.sentFrom = call.sequence + 1;
    call.heard.clear();
    call.transit = null;
  }
}

async function figures(): Promise<TrafficFigures> {
  const sentSoFar = sent;
  const sequences = calls.map((call) => call.sequence);
  // What is under way arrives meanwhile.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  let missing = 0;
  calls.forEach((call, i) => {
    for (let serial = call.sentFrom; serial <= (sequences[i] ?? 0); serial += 1)
      if (isSpoken(serial) && !call.heard.has(serial)) missing += 1;
  });
  isMeasuring = false;
  const all = total.slice(0, samples);
  const ups = up.slice(0, samples);
  const downs = all.map((value, i) => value - (ups[i] ?? Number.NaN));
  return {
    sent: sentSoFar,
    received,
    lost: missing,
    total: summary(all),
    up: summary(ups),
    down: summary(downs),
    jitterMs,
    generatorLateMs: lateMs,
  };
}

function summary(values: Float64Array): DelayFigures {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort();
  return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), p999: percentile(sorted, 0.999), max: sorted.at(-1) ?? Number.NaN };
}

async function obey(order: GeneratorOrder): Promise<unknown> {
  switch (order.type) {
    case 'prepare':
      return prepare(order.calls, order.first, order.srtp);
    case 'start': {
      start(order.far);
      return;
    }
    case 'measure': {
      measure();
      return;
    }
    case 'figures':
      return figures();
  }
}

takeOrders(obey);
