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
/** The server refreshes; in its own requests it is the UAC. */
const TIMER = '90;refresher=uas';
const OURS = 'Session-Expires: 90;refresher=uac';

/** One call, as its caller and the application have it. */
interface Call {
  readonly id: string;
  caller: 'idle' | 'ringing' | 'calling' | 'up' | 'over';
  app: 'unknown' | 'dialling' | 'offered' | 'up' | 'over';
  /** The INVITE of a call that the application places, as the caller got it; '': none, or the caller calls. */
  invite: string;
  /** The caller's From. */
  from: string;
  /** As the application names the dialog. */
  dialogId: string;
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
  readonly hasTimer: boolean;
  /** The caller takes its time for its next 2xx: whoever asked may be dead by then. */
  isSlow: boolean;
  /** A re-INVITE of the application's has no final response; a server that died gives none. */
  isAsking: boolean;
  isCancelled: boolean;
  /** The caller's re-INVITE, by its CSeq, has no final response. */
  reinvite: number | null;
  /** The caller's 2xx to a re-INVITE of ours, by its CSeq number, until the ACK. */
  readonly unacknowledged: Map<string, { readonly text: string; readonly untilMs: number }>;
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

  begin(hasTimer = false): Call {
    const id = `call-${String(this.calls.length)}`;
    const answers = new Map<string, number>();
    const parts = { to: '', cseq: 1, isAcknowledged: false, transactionId: '', offers: 0, shown: [], answers };
    const names = { invite: '', from: `<sip:a@caller>;tag=from-${id}`, dialogId: `${id};from-tag=from-${id}` };
    const changes = { ...names, hasTimer, isSlow: false, isAsking: false, isCancelled: false, reinvite: null, unacknowledged: new Map() };
    const call: Call = { id, caller: 'calling', app: 'unknown', isByePending: false, wasAway: false, ...parts, ...changes };
    this.calls.push(call);
    return call;
  }

  /** The application calls. */
  place(): void {
    if (!this.isConnected || !this.bench.isCallerConnected) return;
    const call = this.begin();
    Object.assign(call, { caller: 'idle', app: 'dialling', dialogId: '' });
    this.fromApp(call, 'dial', `|\r\nINVITE ${this.#contact} SIP/2.0\r\nCall-ID: ${call.id}\r\n\r\n${SDP}`);
  }

  get #contact(): string {
    return `sip:a@127.0.0.1:6000;transport=${this.transport.toLowerCase()}`;
  }

  /** The caller answers the application's call. */
  pickUp(call: Call): void {
    call.caller = 'up';
    this.#answer(call, call.invite, headerOf(call.invite, 'CSeq').split(' ')[0] ?? '', 'INVITE', `;tag=peer-${call.id}`);
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
    const timer = method === 'INVITE' && call.hasTimer ? ['Supported: timer', `Session-Expires: ${TIMER}`] : [];
    const lines = [
      `${method} sip:b@server SIP/2.0`,
      `Via: SIP/2.0/${this.transport} 127.0.0.1:6000;branch=${branch}`,
      ...['Max-Forwards: 70', `From: ${call.from}`, `To: ${to}`, `Call-ID: ${call.id}`],
      ...[`CSeq: ${String(cseq)} ${method}`, `Contact: <${this.#contact}>`],
      ...[...timer, 'Content-Length: 0'],
    ];
    if (this.bench.isCallerConnected) this.bench.fromCaller(`${lines.join('\r\n')}\r\n\r\n`);
  }

  fromApp(call: Call, what: string, text: string): void {
    if (this.isConnected) this.bench.fromApp(`${what}-${call.id}|sip|${text}`);
  }

  request(call: Call, what: string, method: string, body = ''): void {
    this.fromApp(call, what, `|${call.dialogId}\r\n${method} sip:x SIP/2.0\r\n\r\n${body}`);
  }

  reinvite(call: Call): void {
    call.isAsking = this.isConnected;
    this.request(call, 'reinvite', 'INVITE', SDP);
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
      call.isAsking = false;
      // Whether the caller has answered is not known.
      if (call.app === 'dialling') this.bye(call);
      if (call.isByePending) this.request(call, 'bye', 'BYE');
      else if (call.app === 'up') this.request(call, 'ping', 'OPTIONS');
    }
  }

  connectCaller(): void {
    if (this.bench.isCallerConnected) return;
    this.bench.callAgainFrom('127.0.0.1');
    for (const call of this.calls) {
      // Over UDP a caller goes on with its transaction; over TLS it may try the same once more, unless it has given it up.
      if (call.caller === 'calling' && !call.isCancelled) this.invite(call);
      else if (call.caller === 'calling') call.caller = 'over';
      call.reinvite = null;
    }
    this.repeat();
  }

  /** RFC 3261 §13.3.1.4: 2xx of callers go out again until their ACKs, or 64·T1: then the caller hangs up. */
  repeat(): void {
    for (const call of this.calls)
      for (const [number, { text, untilMs }] of call.unacknowledged) {
        if (this.bench.isCallerConnected) this.bench.fromCaller(text);
        if (this.bench.clock.nowMs() < untilMs) continue;
        call.unacknowledged.delete(number);
        if (call.caller === 'up') this.ask(call, 'BYE');
        call.caller = 'over';
      }
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
      if (method === 'ACK') {
        if (number === headerOf(call.invite, 'CSeq').split(' ')[0]) call.isAcknowledged = true;
        return void call.unacknowledged.delete(number);
      }
      if (method === 'INVITE' && !headerOf(text, 'To').includes(';tag=')) return this.#ring(call, text);
      // RFC 3261 §9.2
      if (method === 'CANCEL') return;
      return this.#answer(call, text, number, method);
    }
    const status = Number(start.split(' ')[1]);
    if (status < 200) return;
    if (method !== 'INVITE' || number !== '1') {
      call.answers.set(`${number} ${method}`, status);
      if (method !== 'INVITE') return;
      if (call.reinvite === Number(number)) call.reinvite = null;
      if (status < 300) this.fromCaller(call, 'ACK', Number(number), call.to);
      return;
    }
    if (status >= 300) {
      if (call.caller === 'calling') call.caller = 'over';
      return;
    }
    const isOther = call.to !== '' && call.to !== headerOf(text, 'To');
    expect(isOther).toBe(false);
    call.to = headerOf(text, 'To');
    if (call.isCancelled && call.caller !== 'up') {
      // RFC 3261 §9.1: the answer crossed the CANCEL, or the death of who had it.
      this.acknowledge(call);
      this.ask(call, 'BYE');
      call.caller = 'over';
    } else if (call.caller === 'calling') call.caller = 'up';
    else if (call.isAcknowledged || call.caller === 'over') this.acknowledge(call);
  }

  #ring(call: Call, invite: string): void {
    if (call.caller !== 'idle') return;
    const [from, tag = ''] = [headerOf(invite, 'From'), /;tag=([^;]+)/.exec(headerOf(invite, 'From'))?.[1]];
    const names = { to: from, from: `${headerOf(invite, 'To')};tag=peer-${call.id}`, dialogId: `${call.id};from-tag=${tag}` };
    Object.assign(call, { caller: 'ringing', invite, ...names });
  }

  /** The caller's response to a request of the server's. */
  #answer(call: Call, text: string, number: string, method: string, toTag = ''): void {
    const isGlare = method === 'INVITE' && call.reinvite !== null;
    const status = call.caller !== 'up' ? '481 Gone' : isGlare ? '491 Request Pending' : '200 OK';
    if (method === 'BYE') {
      call.caller = 'over';
      // RFC 3261 §15.1.2: what was pending gets 487.
      call.unacknowledged.clear();
    }
    const copied = ['Via', 'From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${headerOf(text, name)}${name === 'To' ? toTag : ''}`);
    const isSession = status === '200 OK' && (method === 'INVITE' || method === 'UPDATE');
    const session = [`Contact: <${this.#contact}>`, ...(call.hasTimer ? [OURS] : [])];
    const body = isSession && method === 'INVITE' ? SDP : '';
    const lines = [...copied, ...(isSession ? session : []), `Content-Length: ${String(body.length)}`];
    const answer = [`SIP/2.0 ${status}`, ...lines, '', body].join('\r\n');
    if (body !== '') call.unacknowledged.set(number, { text: answer, untilMs: this.bench.clock.nowMs() + 32_000 });
    if (body !== '' && call.isSlow) call.isSlow = false;
    else this.bench.fromCaller(answer);
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
    const isInDialog = headerOf(payload, 'To').includes(';tag=');
    if (method === 'INVITE' && !isInDialog) {
      Object.assign(call, { app: 'offered', transactionId, offers: call.offers + 1 });
      return;
    }
    if (method === 'CANCEL' || method === 'BYE') call.app = 'over';
    const isWithin = method === 'INFO' || method === 'UPDATE' || method === 'INVITE';
    if (isWithin && call.app !== 'up') return this.fromApp(call, 'no', `${transactionId}|\r\nSIP/2.0 481 Gone\r\n\r\n`);
    if (isWithin) call.shown.push(headerOf(payload, 'CSeq'));
    if (method === 'INVITE') return this.respond(call, transactionId, 'again');
    if ((method === 'BYE' && transactionId !== 'unsolicited') || isWithin) this.respond(call, transactionId, 'ok');
    if (method !== 'SIP/2.0') return;
    const status = Number(start.split(' ')[1]);
    const isInvite = headerOf(payload, 'CSeq').endsWith('INVITE');
    if (isInvite && status >= 200) call.isAsking = false;
    if (isInvite && call.app === 'dialling' && status >= 200) call.app = status < 300 ? 'up' : 'over';
    if (isInvite && status >= 200 && status < 300) return this.request(call, 'ack', 'ACK');
    if (headerOf(payload, 'CSeq').endsWith('BYE')) call.isByePending = false;
    else if (status === 481) call.app = 'over';
    else if (status === 408) this.bye(call);
    else if (status === 503) call.wasAway = true;
  }

  respond(call: Call, transactionId: string, what: string): void {
    const isInvite = what === 'answer' || what === 'again';
    const timer = isInvite && call.hasTimer ? `Require: timer\r\nSession-Expires: ${TIMER}\r\n` : '';
    this.fromApp(call, what, `${transactionId}|\r\nSIP/2.0 200 OK\r\n${timer}\r\n${isInvite ? SDP : ''}`);
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

/** RFC 3261 §14.1: one INVITE at a time. */
const mayAsk = ({ app, isAcknowledged, isAsking }: Call): boolean => app === 'up' && isAcknowledged && !isAsking;

const STEPS: Readonly<Record<string, Step>> = {
  'an INVITE': (world) => world.invite(world.begin()),
  'an INVITE with a session timer': (world) => world.invite(world.begin(true)),
  'the application calls': (world) => world.place(),
  'the caller picks up': inCall(
    ({ caller }) => caller === 'ringing',
    (world, call) => world.pickUp(call),
  ),
  'a CANCEL': inCall(
    ({ caller, isCancelled }) => caller === 'calling' && !isCancelled,
    (world, call) => {
      call.isCancelled = true;
      world.fromCaller(call, 'CANCEL', 1, '<sip:b@server>');
    },
  ),
  'a re-INVITE of the caller’s': inCall(
    ({ caller, isAcknowledged, reinvite }) => caller === 'up' && isAcknowledged && reinvite === null,
    (world, call) => {
      world.ask(call, 'INVITE');
      call.reinvite = call.cseq;
    },
  ),
  'a re-INVITE of the application’s': inCall(
    (call) => mayAsk(call),
    (world, call) => world.reinvite(call),
  ),
  'a re-INVITE of the application’s, answered late': inCall(
    (call) => mayAsk(call),
    (world, call) => {
      call.isSlow = true;
      world.reinvite(call);
    },
  ),
  'an UPDATE': inCall(
    ({ caller }) => caller === 'up',
    (world, call) => void world.ask(call, 'UPDATE'),
  ),
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
  'kill -9, and everybody is back': (world) => {
    world.crash();
    world.connectCaller();
    return world.connectApp();
  },
  'the application is back': (world) => world.connectApp(),
  'the caller is back': (world) => world.connectCaller(),
  'a second passes': (world) => {
    world.repeat();
    return world.bench.pass(1_000);
  },
};

let directory: string;
let serial = 0;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'trunkline-crashes-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function pass(world: World, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    world.repeat();
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
  const begun = ['an INVITE with a session timer', 'the application answers', 'an ACK'].map((name) => [name, 0, false] as const);
  for (const [name, index, isCutOff] of [...begun, ...steps]) {
    await STEPS[name]?.(world, world.calls[index % Math.max(world.calls.length, 1)]);
    // In the middle: what the server was about to say dies with it.
    if (isCutOff) world.crash();
    await world.read();
  }
  // Everybody is back, and does what one has to.
  world.connectCaller();
  await world.connectApp();
  await world.read();
  for (const call of world.calls) if (call.caller === 'ringing') world.pickUp(call);
  await world.read();
  for (const call of world.calls) if (call.caller === 'up' && !call.isAcknowledged) world.acknowledge(call);
  const both = world.calls.filter(({ caller, app }) => caller === 'up' && app === 'up');
  // Of a caller that was away when it had to be asked, the application learns by the silence: MEDIA_TIMEOUT.
  for (const call of world.calls) if (call.wasAway && call.app === 'up' && call.caller === 'over') world.bye(call);
  await pass(world, 5);
  // A 2xx of a caller's is acknowledged, over UDP by who has the call.
  const waiting = (transport === 'TLS' ? world.calls : both).filter(({ caller }) => caller === 'up');
  expect(waiting.flatMap(({ id, unacknowledged }) => [...unacknowledged.keys()].map((number) => [id, number]))).toEqual([]);
  await pass(world, 65);
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
      { weight: 6, arbitrary: fc.constantFrom(...Object.keys(STEPS)) },
    ),
    fc.nat({ max: 3 }),
    fc.boolean().chain((isOdd) => (isOdd ? fc.constant(false) : fc.nat({ max: 4 }).map((n) => n === 0))),
  ),
  { minLength: 3, maxLength: 25 },
);

/** Killed twice, with a re-INVITE each time: the 2xx to the first one comes to a process that knows of the second one alone. */
const LATE_ANSWER: [string, number, boolean][] = [
  ['a re-INVITE of the application’s, answered late', 0, false],
  ['an INVITE', 0, true],
  ['the application is back', 0, false],
  ['a re-INVITE of the application’s', 0, true],
];

describe('a SIP server that gets SIGKILL between any two steps', () => {
  it.each(['TLS', 'UDP'] as const)('over %s loses no call, doubles none and leaves none stuck', async (transport) => {
    await fc.assert(
      fc.asyncProperty(steps, (each) => holds(transport, each)),
      { numRuns: 150, examples: [[LATE_ANSWER]] },
    );
  });
});
