import { z } from 'zod';
import type { MediaFigures, MediaSecond } from './figures.js';
import type { MediaStart } from './sipp-files.js';

// The line protocol of native/build/Release/media-generator: commands in, events as JSON lines out.

const count = z.number().min(0);
const delays = z.object({ p50: z.number().nullish(), p99: z.number().nullish(), max: z.number().nullish() }).nullish();

const eventSchema = z.discriminatedUnion('event', [
  z.object({ event: z.literal('ready'), slots: z.array(z.object({ slot: z.int().min(0), port: z.int().min(1), key: z.base64() })) }),
  z.object({
    event: z.literal('second'),
    calls: count,
    sent: count,
    received: count,
    lost: z.number(),
    late_ms: z.number().nullish(),
    jitter_ms: z.number().nullish(),
    delay_ms: delays,
  }),
  z.object({
    event: z.literal('call'),
    slot: z.int().min(0),
    seconds: count,
    sent: count,
    received: count,
    expected: count,
    lost: z.number(),
    out_of_order: count,
    duplicates: count,
    rejected: count,
    jitter_ms: z.number().nullish(),
    delay_ms: delays,
    mos: z.number().nullish(),
    tone: z.enum(['heard', 'silent', 'wrong']),
    digits: z.string(),
    digits_answered: count,
  }),
  z.object({ event: z.literal('total') }),
  z.object({ event: z.literal('error'), text: z.string() }),
]);

export type MediaEvent = z.output<typeof eventSchema>;
export type MediaCall = Extract<MediaEvent, { event: 'call' }>;
export type Slot = Extract<MediaEvent, { event: 'ready' }>['slots'][number];

/** null: no event of the protocol. */
export function parseMediaEvent(line: string): MediaEvent | null {
  try {
    return eventSchema.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}

/** @param digits keys to press; '': none */
export function startCommand({ slot, address, port, key, payloadType, eventsType }: MediaStart, digits: string): string {
  const pressed = eventsType === null || digits === '' ? '-' : digits;
  return `start ${String(slot)} ${address} ${String(port)} ${key} ${String(payloadType)} ${eventsType === null ? '-' : String(eventsType)} ${pressed}\n`;
}

export const stopCommand = (slot: number): string => `stop ${String(slot)}\n`;

export function secondOf(event: Extract<MediaEvent, { event: 'second' }>): MediaSecond {
  return {
    calls: event.calls,
    received: event.received,
    lost: event.lost,
    jitterMs: event.jitter_ms ?? 0,
    delay50: event.delay_ms?.p50 ?? null,
    delay99: event.delay_ms?.p99 ?? null,
    lateMs: event.late_ms ?? 0,
  };
}

/** Sums the calls of a stage. */
export class MediaTally {
  readonly #calls: MediaCall[] = [];
  #unchecked = 0;
  #lateMs = 0;

  call(event: MediaCall): void {
    this.#calls.push(event);
  }

  unchecked(): void {
    this.#unchecked += 1;
  }

  late(ms: number): void {
    this.#lateMs = Math.max(this.#lateMs, ms);
  }

  figures(): MediaFigures {
    const calls = this.#calls;
    const sum = (pick: (call: MediaCall) => number): number => calls.reduce((all, call) => all + pick(call), 0);
    const toned = (tone: MediaCall['tone']): number => calls.filter((call) => call.tone === tone).length;
    const most = (values: readonly (number | null | undefined)[]): number =>
      values.reduce<number>((max, value) => Math.max(max, value ?? 0), 0);
    const scores = calls.map(({ mos }) => mos).filter((mos) => mos != null);
    const delayed = calls.map(({ delay_ms: delay }) => delay).filter((delay) => delay?.p50 != null);
    return {
      calls: calls.length,
      unchecked: this.#unchecked,
      tone: { heard: toned('heard'), silent: toned('silent'), wrong: toned('wrong') },
      digits: { pressed: sum(({ digits }) => digits.length), answered: sum((call) => call.digits_answered) },
      packets: {
        sent: sum((call) => call.sent),
        received: sum((call) => call.received),
        expected: sum((call) => call.expected),
        lost: sum((call) => call.lost),
        outOfOrder: sum((call) => call.out_of_order),
        duplicates: sum((call) => call.duplicates),
        rejected: sum((call) => call.rejected),
      },
      delayMs:
        delayed.length === 0
          ? null
          : { p50: most(delayed.map((d) => d?.p50)), p99: most(delayed.map((d) => d?.p99)), max: most(delayed.map((d) => d?.max)) },
      jitterMs: most(calls.map((call) => call.jitter_ms)),
      mos: scores.length === 0 ? null : { least: Math.min(...scores), mean: scores.reduce((all, mos) => all + mos, 0) / scores.length },
      lateMs: this.#lateMs,
    };
  }
}
