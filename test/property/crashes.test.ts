import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readJournal } from '../../src/sip-server/dialog-journal.js';
import { headerOf, NOTHING_LEFT, SDP, startOf } from '../support/scenario.js';
import { Bench } from '../support/transcript.js';

// Calls, and kill -9 of the SIP server between any two steps, or in the middle of one: what callers and application believe of each call
// must be one again in the end, and no call that both have may be gone.

const INSTANCE = ['gw:a'];

/** One call, as its caller and the application have it. */
interface Call {
  readonly id: string;
  caller: 'calling' | 'up' | 'over';
  app: 'unknown' | 'offered' | 'up' | 'over';
  /** To with our tag. */
  to: string;
  cseq: number;
  isAcknowledged: boolean;
  transactionId: string;
  /** INVITEs that the application was shown. */
  offers: number;
  /** INFOs that it was shown, by their CSeq. */
  readonly shown: string[];
  /** Statuses of the caller's requests, by their CSeq. */
  readonly answers: Map<string, number>;
  /** The application's BYE has no answer. */
  isByePending: boolean;
  /** When it was asked about the call, the caller could not be reached. */
  wasAway: boolean;
}

class World {
  readonly calls: Call[] = [];
  readonly bench: Bench;
  isConnected = true;

  constructor(
    private readonly transport: 'TLS' | 'UDP',
    file: string,
  ) {
    this.bench = new Bench(transport, 6_000, 'messages', {}, file);
    this.bench.identify(INSTANCE);
    this.bench.fromApp('r|route|invite');
  }

  begin(): void {
    const id = `call-${String(this.calls.length)}`;
    const answers = new Map<string, number>();
    const parts = { to: '', cseq: 1, isAcknowledged: false, transactionId: '', offers: 0, shown: [], answers };
    const call: Call = { id, caller: 'calling', app: 'unknown', isByePending: false, wasAway: false, ...parts };
    this.calls.push(call);
    this.invite(call);
  }

  invite(call: Call): void {
    this.fromCaller(call, 'INVITE', 1, '<sip:b@server>');
  }

  /** The caller's next request in the call. */
  ask(call: Call, method: string): string {
    call.cseq += 1;
    this.fromCaller(call, method, call.cseq, call.to);
    return `${String(call.cseq)} ${method}`;
  }

  fromCaller(call: Call, method: string, cseq: number, to: string): void {
    const branch = `z9hG4bK${call.id}-${String(cseq)}-${method === 'ACK' ? 'a' : 'r'}`;
    const lines = [
      `${method} sip:b@server SIP/2.0`,
      `Via: SIP/2.0/${this.transport} 127.0.0.1:6000;branch=${branch}`,
      ...['Max-Forwards: 70', `From: <sip:a@caller>;tag=from-${call.id}`, `To: ${to}`, `Call-ID: ${call.id}`],
      ...[`CSeq: ${String(cseq)} ${method}`, `Contact: <sip:a@127.0.0.1:6000;transport=${this.transport.toLowerCase()}>`],
      'Content-Length: 0',
    ];
    if (this.bench.isCallerConnected) this.bench.fromCaller(`${lines.join('\r\n')}\r\n\r\n`);
  }

  fromApp(call: Call, what: string, text: string): void {
    if (this.isConnected) this.bench.fromApp(`${what}-${call.id}|sip|${text}`);
  }

  request(call: Call, what: string, method: string): void {
    this.fromApp(call, what, `|${call.id};from-tag=from-${call.id}\r\n${method} sip:x SIP/2.0\r\n\r\n`);
  }

  bye(call: Call): void {
    call.app = 'over';
    call.isByePending = true;
    this.request(call, 'bye', 'BYE');
  }

  /** kill -9, and the next one. */
  crash(): void {
    this.bench.crash();
    this.isConnected = false;
  }

  /** As the gateway does. */
  async connectApp(): Promise<void> {
    if (this.isConnected) return;
    await this.bench.connectAgain(INSTANCE);
    this.isConnected = true;
    this.bench.fromApp('r|route|invite');
    for (const call of this.calls) {
      if (call.app === 'offered') call.app = 'over';
      if (call.isByePending) this.request(call, 'bye', 'BYE');
      else if (call.app === 'up') this.request(call, 'ping', 'OPTIONS');
    }
  }

  connectCaller(): void {
    if (this.bench.isCallerConnected) return;
    this.bench.callAgainFrom('127.0.0.1');
    // Over UDP a caller goes on with its transaction; over TLS it may try the same once more.
    for (const call of this.calls) if (call.caller === 'calling') this.invite(call);
  }

  /** What came is looked at, and answered as one has to, until nothing comes any more. */
  async read(): Promise<void> {
    for (;;) {
      await this.bench.settle();
      const [toCaller, toApp] = [this.bench.toCaller.splice(0), this.bench.toApp.splice(0)];
      if (toCaller.length + toApp.length === 0) return;
      for (const text of toCaller) this.#onCaller(text);
      for (const payload of toApp) this.#onApp(payload);
    }
  }

  #onCaller(text: string): void {
    const call = this.calls.find(({ id }) => id === headerOf(text, 'Call-ID'));
    if (call === undefined) return;
    const start = startOf(text);
    const [number = '', method = ''] = headerOf(text, 'CSeq').split(' ');
    if (!start.startsWith('SIP/2.0')) {
      if (method === 'ACK') return;
      const status = call.caller === 'up' ? '200 OK' : '481 Gone';
      if (method === 'BYE') call.caller = 'over';
      const copied = ['Via', 'From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${headerOf(text, name)}`);
      this.bench.fromCaller([`SIP/2.0 ${status}`, ...copied, 'Content-Length: 0', '', ''].join('\r\n'));
      return;
    }
    const status = Number(start.split(' ')[1]);
    if (status < 200) return;
    if (method !== 'INVITE' || number !== '1') return void call.answers.set(`${number} ${method}`, status);
    if (status >= 300) {
      if (call.caller === 'calling') call.caller = 'over';
      return;
    }
    const isOther = call.to !== '' && call.to !== headerOf(text, 'To');
    expect(isOther).toBe(false);
    call.to = headerOf(text, 'To');
    if (call.caller === 'calling') call.caller = 'up';
    else if (call.isAcknowledged || call.caller === 'over') this.acknowledge(call);
  }

  acknowledge(call: Call): void {
    call.isAcknowledged = true;
    this.fromCaller(call, 'ACK', 1, call.to);
  }

  #onApp(payload: string): void {
    const [head = '', start = ''] = payload.split('\r\n');
    const fields = head.split('|');
    const [, verb = '', answered = '', verdict = ''] = fields;
    if (verb === 'response') return this.#onVerdict(answered, verdict);
    const call = this.calls.find(({ id }) => id === headerOf(payload, 'Call-ID'));
    if (call === undefined || verb !== 'sip') return;
    const transactionId = fields[8] ?? '';
    const method = start.split(' ', 1)[0] ?? '';
    if (method === 'INVITE') {
      Object.assign(call, { app: 'offered', transactionId, offers: call.offers + 1 });
      return;
    }
    if (method === 'CANCEL' || method === 'BYE') call.app = 'over';
    if (method === 'INFO' && call.app !== 'up') return this.fromApp(call, 'no', `${transactionId}|\r\nSIP/2.0 481 Gone\r\n\r\n`);
    if (method === 'INFO') call.shown.push(headerOf(payload, 'CSeq'));
    if ((method === 'BYE' && transactionId !== 'unsolicited') || method === 'INFO') this.respond(call, transactionId, 'ok');
    if (method !== 'SIP/2.0') return;
    const status = Number(start.split(' ')[1]);
    if (headerOf(payload, 'CSeq').endsWith('BYE')) call.isByePending = false;
    else if (status === 481) call.app = 'over';
    else if (status === 408) this.bye(call);
    else if (status === 503) call.wasAway = true;
  }

  respond(call: Call, transactionId: string, what: string): void {
    this.fromApp(call, what, `${transactionId}|\r\nSIP/2.0 200 OK\r\n\r\n${what === 'answer' ? SDP : ''}`);
  }

  #onVerdict(answered: string, verdict: string): void {
    const [, what = '', id = ''] = /^(\w+)-(.*)$/.exec(answered) ?? [];
    const call = this.calls.find((each) => each.id === id);
    if (call === undefined) return;
    if (what === 'answer' && call.app === 'offered') call.app = verdict === 'OK' ? 'up' : 'over';
    if (what === 'ping' && verdict !== 'OK') call.app = 'over';
    if (what === 'bye' && verdict !== 'OK') call.isByePending = false;
  }
}

type Step = (world: World, call: Call | undefined) => void | Promise<void>;
const inCall =
  (isFit: (call: Call) => boolean, act: (world: World, call: Call) => void): Step =>
  (world, call) => {
    if (call !== undefined && isFit(call)) act(world, call);
  };

const STEPS: Readonly<Record<string, Step>> = {
  'an INVITE': (world) => world.begin(),
  'the application answers': inCall(
    ({ app }) => app === 'offered',
    (world, call) => world.respond(call, call.transactionId, 'answer'),
  ),
  'an ACK': inCall(
    ({ caller, isAcknowledged }) => caller === 'up' && !isAcknowledged,
    (world, call) => world.acknowledge(call),
  ),
  'an INFO': inCall(
    ({ caller }) => caller === 'up',
    (world, call) => void world.ask(call, 'INFO'),
  ),
  'the caller hangs up': inCall(
    ({ caller }) => caller === 'up',
    (world, call) => {
      world.ask(call, 'BYE');
      call.caller = 'over';
    },
  ),
  'the application hangs up': inCall(
    ({ app }) => app === 'up',
    (world, call) => world.bye(call),
  ),
  'kill -9': (world) => world.crash(),
  'the application is back': (world) => world.connectApp(),
  'the caller is back': (world) => world.connectCaller(),
  'a second passes': (world) => world.bench.pass(1_000),
};

let directory: string;
let serial = 0;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'trunkline-crashes-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function pass(world: World, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    await world.bench.pass(1_000);
    await world.read();
  }
}

/** The calls' dialogs in the journal. */
const kept = (file: string): string[] => readJournal(readFileSync(file, 'latin1')).records.map(({ callId }) => callId);

async function holds(transport: 'TLS' | 'UDP', steps: readonly (readonly [string, number, boolean])[]): Promise<void> {
  const file = join(directory, String((serial += 1)));
  const world = new World(transport, file);
  await world.read();
  for (const [name, index, isCutOff] of steps) {
    await STEPS[name]?.(world, world.calls[index % Math.max(world.calls.length, 1)]);
    // In the middle: what the server was about to say dies with it.
    if (isCutOff) world.crash();
    await world.read();
  }
  // Everybody is back, and does what one has to.
  world.connectCaller();
  await world.connectApp();
  await world.read();
  for (const call of world.calls) if (call.caller === 'up' && !call.isAcknowledged) world.acknowledge(call);
  const both = world.calls.filter(({ caller, app }) => caller === 'up' && app === 'up');
  // Of a caller that was away when it had to be asked, the application learns by the silence: MEDIA_TIMEOUT.
  for (const call of world.calls) if (call.wasAway && call.app === 'up' && call.caller === 'over') world.bye(call);
  await pass(world, 70);
  for (const call of world.calls) {
    // A request of the caller's shows it when the call is gone.
    if (call.caller === 'up') {
      const cseq = world.ask(call, 'INFO');
      await world.read();
      if (call.answers.get(cseq) === 481) call.caller = 'over';
      else expect([call.id, call.answers.get(cseq), call.shown.filter((each) => each === cseq)]).toEqual([call.id, 200, [cseq]]);
    }
  }
  // Nothing lost: what both had they still have. Nothing stuck: nobody has a call that the other one has not.
  expect(both.filter(({ caller, app }) => caller !== 'up' || app !== 'up').map(({ id }) => id)).toEqual([]);
  expect(world.calls.filter(({ caller, app }) => (caller === 'up') !== (app === 'up'))).toEqual([]);
  expect([kept(file).sort(), world.bench.dialogCount]).toEqual([both.map(({ id }) => id).sort(), both.length]);
  // Nothing doubled.
  for (const { shown } of world.calls) expect(new Set(shown).size).toBe(shown.length);
  for (const call of both) {
    const cseq = world.ask(call, 'BYE');
    await world.read();
    expect(call.answers.get(cseq)).toBe(200);
  }
  await pass(world, 40);
  expect([kept(file), world.bench.left]).toEqual([[], NOTHING_LEFT]);
}

const steps = fc.array(
  fc.tuple(
    fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom('an INVITE', 'the application answers', 'an ACK', 'an INFO') },
      { weight: 4, arbitrary: fc.constantFrom(...Object.keys(STEPS)) },
    ),
    fc.nat({ max: 3 }),
    fc.boolean().chain((isOdd) => (isOdd ? fc.constant(false) : fc.nat({ max: 4 }).map((n) => n === 0))),
  ),
  { minLength: 3, maxLength: 25 },
);

describe('kill -9 of the SIP server between any two steps', () => {
  it.each(['TLS', 'UDP'] as const)('over %s: no call is lost, doubled or stuck', async (transport) => {
    await fc.assert(
      fc.asyncProperty(steps, (each) => holds(transport, each)),
      { numRuns: 150 },
    );
  });
});
