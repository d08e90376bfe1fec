import { setTimeout as pause } from 'node:timers/promises';
import type { CarrierSide, FarSide } from './messages.js';
import type { NativePrograms, NativeProcess } from './native.js';

/** Milliseconds; NaN where nothing was measured. */
export interface DelayFigures {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** Of a receiver that is fed from the wire. */
export interface ReceiverFigures {
  /** From the bot's message to its first sample played, of what was played. */
  readonly meanMs: number;
  /** Packets that came too late to be played. */
  readonly late: number;
}

/** Packets of words; silence is sent and not counted. */
export interface TrafficFigures {
  /** By the callers, or by bots that speak by themselves. */
  readonly sent: number;
  readonly lost: number;
  /** Caller to bot. */
  readonly up: DelayFigures;
  /** The bot's message written to its datagram at the caller. */
  readonly down: DelayFigures;
  /** There and back; of no use when bots speak by themselves. */
  readonly total: DelayFigures;
  /** Datagrams that came over 10 ms later than their timestamps say, by the earliest of the last second or two. */
  readonly sentLate: number;
  /** Pieces of 20 ms of silence within a word. */
  readonly silenced: number;
  readonly fixed: ReceiverFigures;
  readonly adaptive: ReceiverFigures;
  readonly generatorLateMs: number;
}

/** Bots that say back what they hear, or that pace their own speech. */
export type BotKind = 'echo' | 'paced';

/** Until what is under way has come. */
const LAST_MS = 1_500;
/** The orders are there before the time that they name. */
const LEAD_MS = 100;

/** The callers and the bots of one measurement: a process each. */
export class Traffic {
  private constructor(
    private readonly kind: BotKind,
    private readonly generator: NativeProcess,
    private readonly bot: NativeProcess,
  ) {}

  static async started(programs: NativePrograms, kind: BotKind): Promise<Traffic> {
    const bot = await programs.started('bot', kind);
    return new Traffic(kind, await programs.started('generator'), bot);
  }

  get botPort(): number {
    return Number(this.bot.ready[0]);
  }

  get pids(): Readonly<Record<'bots' | 'generator', number>> {
    return { bots: this.bot.pid, generator: this.generator.pid };
  }

  /** Sockets for callers, and their keys. */
  async prepare(first: number, calls: number, isSecure: boolean): Promise<CarrierSide[]> {
    const words = await this.generator.ask('prepare', first, calls, isSecure ? 'srtp' : 'plain');
    return Array.from({ length: calls }, (_, i) => {
      const key = words[2 * i + 1] ?? '-';
      return { id: `bench-${String(first + i)}`, port: Number(words[2 * i]), key: key === '-' ? null : key };
    });
  }

  /** They speak from now on. */
  async start(first: number, far: readonly FarSide[]): Promise<void> {
    await this.generator.ask('start', first, ...far.flatMap(({ port, key }) => [port, key ?? '-']));
  }

  /** What is sent in so many seconds from now on. */
  async measured(seconds: number): Promise<TrafficFigures> {
    const fromUs = Number(process.hrtime.bigint() / 1_000n) + LEAD_MS * 1_000;
    for (const one of [this.generator, this.bot]) await one.ask('measure', fromUs, fromUs + seconds * 1_000_000);
    await pause(LEAD_MS + seconds * 1_000 + LAST_MS);
    return this.#figures(await this.generator.ask('figures'), await this.bot.ask('figures'));
  }

  kill(): void {
    this.generator.kill();
    this.bot.kill();
  }

  #figures(generator: readonly string[], bot: readonly string[]): TrafficFigures {
    const sent = this.kind === 'paced' ? numberOf(bot, 'said') : numberOf(generator, 'sent');
    return {
      sent,
      lost: sent - numberOf(generator, 'heard'),
      up: delaysOf(bot, 'up'),
      down: delaysOf(generator, 'down'),
      total: delaysOf(generator, 'total'),
      sentLate: numberOf(generator, 'sent-late'),
      silenced: numberOf(generator, 'silenced'),
      fixed: receiverOf(generator, 'fixed'),
      adaptive: receiverOf(generator, 'adaptive'),
      generatorLateMs: numberOf(generator, 'late'),
    };
  }
}

/** A number of an answer, by the name before it. NaN: it is not there. */
export function numberOf(words: readonly string[], name: string, index = 0): number {
  const at = words.indexOf(name);
  return at < 0 ? Number.NaN : Number(words[at + 1 + index]);
}

function delaysOf(words: readonly string[], name: string): DelayFigures {
  const [p50, p99, p999, max] = [0, 1, 2, 3].map((index) => numberOf(words, name, index)) as [number, number, number, number];
  return { p50, p99, p999, max };
}

function receiverOf(words: readonly string[], name: string): ReceiverFigures {
  return { meanMs: numberOf(words, name), late: numberOf(words, name, 1) };
}
