import { audioPacket } from '../support/audio-packet.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  IDLE_CONNECTION,
  stepConnection,
  type ConnectionEvent,
  type ConnectionState,
  type ConnectionTimer,
} from '../../src/gateway/agents/stream/connection.js';
import { readMessage } from '../../src/gateway/agents/stream/messages.js';
import { type AgentAnswer } from '../../src/gateway/model/agent.js';
import { STREAM_FORMATS, type StreamFormat } from '../../src/agent-protocol/stream-format.js';
import type { AudioCodec } from '../../src/rtp/codec/g711.js';
import { silenceByte } from '../../src/rtp/codec/g711.js';
import { withoutNulls } from '../../src/lib/without-nulls.js';
import { faultsFromAgent } from '../support/agent/message-schema.js';
import { markNames, openStream } from '../support/agent/stream-leg.js';

const VALID: readonly object[] = [
  { event: 'media', streamSid: 'MZ1', media: { payload: Buffer.alloc(160, 1).toString('base64') } },
  { event: 'media', media: { payload: '//8' } },
  { event: 'mark', streamSid: 'MZ1', mark: { name: 'm' } },
  { event: 'clear', streamSid: 'MZ1' },
  { event: 'configure', configure: { speech_events: true, barge_in: true, end_of_speech_ms: 200, drop_events: true } },
  { event: 'hangup' },
  { event: 'hangup', hangup: { after: 'now' } },
  { event: 'dtmf', dtmf: { digits: '12*#AD', duration_ms: 100 } },
  { event: 'transfer', transfer: { id: 't', to: '+15550001111' } },
  { event: 'transcript', transcript: { entries: [{ speaker: 'agent', text: 'Hello', at_ms: 5 }] } },
  { event: 'analysis', analysis: { id: 'a', data: { name: 'Ann' } } },
  { event: 'tool', tool: { id: '1', name: 'book', input: { day: 'Monday' } } },
];

/** What may stand at any place of a message. */
const odd = fc.oneof(
  fc.jsonValue(),
  fc.string({ unit: 'binary', maxLength: 50 }),
  fc.constantFrom('', ' ', '9'.repeat(70), 'é\u0000\ud800', -1, 1e21, 0.5, true, null, {}, [], { __proto__: 1 }, 'x'.repeat(20_000)),
);

/** The message with another value at one of its places, or without it, or with one more. */
const mutated = fc
  .tuple(fc.constantFrom(...VALID), fc.nat(20), odd, fc.constantFrom('set', 'delete', 'add'))
  .map(([message, at, value, how]) => {
    const copy = structuredClone(message) as Record<string, unknown>;
    const places: [Record<string, unknown>, string][] = [];
    const visit = (tree: Record<string, unknown>): void => {
      for (const [name, inner] of Object.entries(tree)) {
        places.push([tree, name]);
        if (typeof inner === 'object' && inner !== null) visit(inner as Record<string, unknown>);
      }
    };
    visit(copy);
    const [tree, name] = places[at % places.length] ?? [copy, 'event'];
    if (how === 'delete') Reflect.deleteProperty(tree, name);
    else tree[how === 'add' ? `${name}_` : name] = value;
    return JSON.stringify(copy);
  });

const text = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...VALID).map((message) => JSON.stringify(message)) },
  { weight: 3, arbitrary: mutated },
  { weight: 1, arbitrary: fc.json() },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...VALID), fc.nat(200), fc.nat(5))
      .map(([message, at, cut]) => JSON.stringify(message).slice(0, at) + JSON.stringify(message).slice(at + cut)),
  },
);

describe('the reader of agent messages', () => {
  it('takes one valid message of each kind', () => {
    for (const message of VALID)
      expect([faultsFromAgent(message), readMessage(JSON.stringify(message)).ok, message]).toEqual(['', true, message]);
  });

  it('takes any message that the published schema allows, and refuses every other one with a reason', () => {
    fc.assert(
      fc.property(text, (message) => {
        const read = readMessage(message);
        if (!read.ok) {
          expect(read.message).not.toBe('');
          expect(read.event.length).toBeLessThanOrEqual(40);
        }
        // A field that is null counts as left out; what is within `data` and `input` is the bot's own.
        const given = isJson(message) ? withoutNulls(JSON.parse(message), new Set(['data', 'input'])) : undefined;
        const faults = given === undefined ? 'not JSON' : faultsFromAgent(given);
        // `readMessage` checks only the payload of `media`: 50 of these arrive a second.
        if (read.ok && read.message.event === 'media') return;
        expect([message, read.ok]).toEqual([message, faults === '']);
      }),
      { numRuns: 3_000 },
    );
  });
});

function isJson(message: string): boolean {
  try {
    JSON.parse(message);
    return true;
  } catch {
    return false;
  }
}

const ANSWERS: readonly AgentAnswer[] = [
  { type: 'tool-result', requestId: '1', result: { a: [null] }, httpStatus: 200 },
  { type: 'transfer-progress', requestId: null, state: 'failed', status: null },
  { type: 'refused', requestId: '1', request: 'tool', code: 'TOOL_UNKNOWN', message: 'no' },
];

type Action =
  | { readonly do: 'text'; readonly text: string }
  | { readonly do: 'binary'; readonly bytes: Uint8Array }
  | { readonly do: 'frames'; readonly count: number; readonly speaks: boolean }
  | { readonly do: 'packet'; readonly bytes: Uint8Array; readonly timestamp: number; readonly ssrc: number }
  | { readonly do: 'mark' | 'pass' | 'start' | 'accept' | 'fail' | 'pong' }
  | { readonly do: 'close'; readonly code: number }
  | { readonly do: 'slow'; readonly unsentBytes: number }
  | { readonly do: 'key'; readonly event: number }
  | { readonly do: 'answer'; readonly answer: AgentAnswer };

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 700 }),
  fc.nat(6_000).map((length) => new Uint8Array(length).fill(1)),
);
const action = fc.oneof<fc.WeightedArbitrary<Action>[]>(
  { weight: 6, arbitrary: text.map((one) => ({ do: 'text', text: one })) },
  { weight: 3, arbitrary: bytes.map((one) => ({ do: 'binary', bytes: one })) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('frames'), count: fc.integer({ min: 1, max: 40 }), speaks: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('packet'), bytes, timestamp: fc.nat(0xffff_ffff), ssrc: fc.nat(3) }) },
  {
    weight: 7,
    arbitrary: fc.constantFrom('mark', 'mark', 'mark', 'pass', 'accept', 'accept', 'fail', 'pong').map((what) => ({ do: what })),
  },
  { weight: 2, arbitrary: fc.constant({ do: 'start' }) },
  { weight: 1, arbitrary: fc.constantFrom(1_000, 1_006, 1_006, 1_006, 1_011).map((code) => ({ do: 'close', code })) },
  { weight: 1, arbitrary: fc.constantFrom(0, 0, 20_000).map((unsentBytes) => ({ do: 'slow', unsentBytes })) },
  { weight: 1, arbitrary: fc.nat(20).map((event) => ({ do: 'key', event })) },
  { weight: 1, arbitrary: fc.constantFrom(...ANSWERS).map((answer) => ({ do: 'answer', answer })) },
);

const MAX_QUEUED_MS = 400;
const MAX_UNSENT_MS = 200;
/** What the reorder buffer may hold beside. */
const MAX_HELD_MS = 500;
const BINARY_BYTES: Readonly<Record<StreamFormat, number>> = { twilio: 0, pcmu: 160, pcma: 160, 'pcm16-8000': 320, 'pcm16-16000': 640 };

/** An agent on its leg, and a bot that does only what a WebSocket can. */
class Played {
  readonly leg;
  #link: 'none' | 'dialling' | 'open' = 'none';
  #attempts = 0;
  #ended = 0;
  #marks = 0;
  #isReady = false;
  isStarted = false;

  constructor(
    format: StreamFormat,
    private readonly codec: AudioCodec,
  ) {
    const limits = { maxQueuedSpeechMs: MAX_QUEUED_MS, maxUnsentAudioMs: MAX_UNSENT_MS };
    this.leg = openStream({ settings: { format }, limits, codec });
    this.leg.agent.connect().catch(() => undefined);
    this.look();
  }

  play(one: Action): void {
    this.#perform(one);
    this.look();
  }

  /** What became of the connection. */
  look(): void {
    const { attempts, ended } = this.leg.bot;
    if (ended.length > this.#ended || attempts[this.#attempts - 1]?.isGivenUp === true) this.#link = 'none';
    this.#ended = ended.length;
    if (attempts.length === this.#attempts) return;
    expect(this.#link).toBe('none');
    this.#link = 'dialling';
    this.#attempts = attempts.length;
  }

  #perform(one: Action): void {
    const { agent, bot, clock, frames } = this.leg;
    switch (one.do) {
      case 'frames':
        return frames(one.count, one.speaks);
      case 'packet':
        return agent.hear(audioPacket(this.codec, one.ssrc, one.timestamp, one.bytes, 0, one.bytes.length, clock.nowMs()));
      case 'pass':
        return agent.pass(clock.nowMs(), 1);
      case 'key':
        return agent.digit(one.event);
      case 'answer':
        return agent.notify(one.answer);
      case 'slow':
        bot.unsentBytes = one.unsentBytes;
        return;
      case 'start':
        if (!this.#isReady || this.isStarted) return;
        this.isStarted = true;
        return agent.start(this.codec, clock.nowMs());
      default:
        if (this.#link === 'open') this.#speak(one);
        else if (this.#link === 'dialling') this.#answer(one);
    }
  }

  #answer(one: Action): void {
    const { bot } = this.leg;
    if (one.do === 'accept') {
      this.#link = 'open';
      this.#isReady = true;
      bot.accept();
    } else if (one.do === 'fail') {
      this.#link = 'none';
      bot.events.onFailed('no');
    }
  }

  #speak(one: Action): void {
    const { bot } = this.leg;
    if (one.do === 'text') bot.events.onText(one.text);
    else if (one.do === 'binary') bot.events.onBinary(one.bytes.slice());
    else if (one.do === 'mark') bot.says({ event: 'mark', mark: { name: `serial ${String((this.#marks += 1))}` } });
    else if (one.do === 'pong') bot.events.onPong(bot.pings.at(-1) ?? Number.NaN);
    else if (one.do === 'close') {
      this.#link = 'none';
      bot.events.onClosed(one.code);
    }
  }
}

describe('an agent on its leg', () => {
  it('handles messages and events of any kind in any order: within its bounds, marks once and in order, and messages of the schema', () => {
    const script = fc.record({
      actions: fc.array(action, { minLength: 20, maxLength: 100, size: 'max' }),
      format: fc.constantFrom(...STREAM_FORMATS),
      codec: fc.constantFrom<AudioCodec[]>('PCMU', 'PCMA'),
      isPrompt: fc.boolean(),
    });
    let [marked, reconnected] = [0, 0];
    fc.assert(
      fc.property(script, ({ actions, format, codec, isPrompt }) => {
        const played = new Played(format, codec);
        const { agent, asked, bot, clock, frames, said } = played.leg;
        // Half of the agents are there and heard at once.
        for (const one of isPrompt ? (['accept', 'start'] as const) : []) played.play({ do: one });
        for (const one of actions) {
          played.play(one);
          expect(agent.bufferedMs).toBeLessThanOrEqual(MAX_UNSENT_MS + MAX_HELD_MS);
        }
        // Whatever it queued is played within the limit; then there is silence.
        frames(MAX_QUEUED_MS / 20 + 2);
        frames(1);
        if (played.isStarted) expect(said.at(-1)).toEqual(Buffer.alloc(160, silenceByte(codec)));
        agent.close();
        const sent = bot.messages.length;
        const dialled = bot.attempts.length;
        clock.advance(60_000);
        expect([bot.messages.length, bot.attempts.length, clock.pendingTimers]).toEqual([sent, dialled, 0]);

        const serials = markNames(bot).flatMap((name) => /^serial (\d+)$/.exec(String(name))?.[1] ?? []);
        expect(serials.map(Number)).toEqual([...new Set(serials.map(Number))].sort((a, b) => a - b));
        for (const { streamSid } of bot.of('start')) {
          const numbers = bot.messages
            .filter((message) => message.streamSid === streamSid)
            .map(({ sequenceNumber }) => Number(sequenceNumber));
          expect(numbers).toEqual(numbers.map((_, index) => index + 1));
        }
        expect(asked.filter(({ type }) => type === 'agent-lost').length).toBeLessThanOrEqual(1);
        expect(bot.binary.every(({ length }) => length === BINARY_BYTES[format])).toBe(true);
        if (format !== 'twilio') expect(bot.of('media')).toEqual([]);
        marked += serials.length;
        reconnected += bot.of('start').length > 1 ? 1 : 0;
      }),
      { numRuns: 300 },
    );
    // The scripts did get that far.
    expect(marked).toBeGreaterThan(100);
    expect(reconnected).toBeGreaterThan(5);
  });
});

const LIMITS = { connectTimeoutMs: 5_000, reconnectGraceMs: 10_000 };
const EVENTS: readonly ConnectionEvent[] = [
  { type: 'connect' },
  { type: 'opened' },
  { type: 'opened' },
  { type: 'failed', message: 'no' },
  { type: 'closed', code: 1_006 },
  { type: 'closed', code: 1_006 },
  { type: 'closed', code: 1_000 },
  { type: 'silent' },
  { type: 'started' },
  { type: 'timer', timer: 'connect' },
  { type: 'timer', timer: 'retry' },
  { type: 'timer', timer: 'grace' },
  { type: 'released' },
];

describe('the connection of an agent', () => {
  it('under any order of events ends at most once, leaves no timer, never dials twice at once, and pauses between the attempts', () => {
    const graces = fc.constantFrom(0, LIMITS.reconnectGraceMs);
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...EVENTS), { maxLength: 60 }), graces, (events, reconnectGraceMs) => {
        const run = new Connection({ ...LIMITS, reconnectGraceMs });
        for (const event of [{ type: 'connect' } as const, ...events]) run.take(event);
        run.take({ type: 'released' });
        expect([run.link, [...run.timers], run.state.name]).toEqual(['none', [], 'Closed']);
        expect(stepConnection(run.state, { type: 'connect' }, LIMITS).effects).toEqual([]);
      }),
      { numRuns: 5_000 },
    );
  });
});

/** Gives the machine the events that can happen, and does what it says. */
class Connection {
  state: ConnectionState = IDLE_CONNECTION;
  link: 'none' | 'dialling' | 'open' = 'none';
  readonly timers = new Set<ConnectionTimer>();
  #ends = 0;
  /** Dials one after another without a pause between. */
  #hasty = 0;

  constructor(private readonly limits: typeof LIMITS) {}

  take(event: ConnectionEvent): void {
    if (!this.#canHappen(event)) return;
    if (event.type === 'opened') this.link = 'open';
    if (event.type === 'failed' || event.type === 'closed') this.link = 'none';
    if (event.type === 'timer') {
      this.timers.delete(event.timer);
      this.#hasty = 0;
    }
    const { state, effects } = stepConnection(this.state, event, this.limits);
    this.state = state;
    for (const effect of effects) {
      if (effect.do === 'dial') {
        expect(this.link).toBe('none');
        this.link = 'dialling';
        this.#hasty += 1;
        // The first one, and the one at once when it breaks.
        expect(this.#hasty).toBeLessThanOrEqual(2);
      }
      if (effect.do === 'abandon' || effect.do === 'say-stop') this.link = 'none';
      if (effect.do === 'start-timer') this.timers.add(effect.timer);
      if (effect.do === 'start-timer' && effect.timer === 'retry') {
        expect(effect.delayMs).toBeGreaterThanOrEqual(100);
        expect(effect.delayMs).toBeLessThanOrEqual(2_000);
      }
      if (effect.do === 'stop-timer') this.timers.delete(effect.timer);
      if (effect.do === 'hang-up' || effect.do === 'lost' || effect.do === 'refused') this.#ends += 1;
      if (effect.do === 'announce') expect(this.link).toBe('open');
    }
    expect(this.#ends).toBeLessThanOrEqual(1);
    if (state.name === 'Closed') expect([this.link, [...this.timers]]).toEqual(['none', []]);
    // A call never waits for nothing: somebody is connected, or a timer runs.
    else expect(state.name === 'Idle' || this.link === 'open' || this.timers.size > 0).toBe(true);
  }

  #canHappen(event: ConnectionEvent): boolean {
    if (event.type === 'timer') return this.timers.has(event.timer);
    if (event.type === 'opened' || event.type === 'failed') return this.link === 'dialling';
    if (event.type === 'closed') return this.link !== 'none';
    return event.type !== 'silent' || this.link === 'open';
  }
}
