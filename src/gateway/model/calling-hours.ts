import { z } from 'zod';

// When people may be called, in their own time.

export const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

const time = (pattern: RegExp, message: string) => z.string().regex(pattern, message);

export const callingHoursSchema = z
  .strictObject({
    from: time(/^([01][0-9]|2[0-3]):[0-5][0-9]$/, 'must be a time of day, 00:00 to 23:59'),
    to: time(/^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$/, 'must be a time of day, 00:01 to 24:00'),
    days: z
      .array(z.enum(WEEKDAYS))
      .min(1)
      .refine((days) => new Set(days).size === days.length, 'must not name a day twice')
      .meta({ uniqueItems: true })
      .readonly(),
  })
  .refine(({ from, to }) => from < to, { path: ['to'], message: 'must be later than from' });

export type CallingHours = Readonly<z.output<typeof callingHoursSchema>>;

export const DEFAULT_CALLING_HOURS: CallingHours = { from: '09:00', to: '20:00', days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat'] };

const STEP_MS = 5 * 60_000;
/** A week, and a day in which the clocks change. */
const SEARCHED_MS = 8 * 86_400_000;

/** By the name in lower case, in which they are the same: as many as the time zone database has names. */
const formats = new Map<string, Intl.DateTimeFormat>();
/** `+01:00` and the like, which Intl takes too: no names, and no summer time. */
const OFFSET = /^[+-]/;

/** Whether a text names a time zone (IANA). */
export function isTimeZone(zone: string): boolean {
  try {
    formatOf(zone);
    return true;
  } catch {
    return false;
  }
}

/**
 * From when on it is within the hours in all these zones at once: `nowMs` when it is so already; `null`: never, or there are no zones.
 * To 5 minutes. @param nowMs epoch milliseconds
 */
export function nextCallableMs(zones: readonly string[], hours: CallingHours, nowMs: number): number | null {
  if (zones.length === 0) return null;
  const isWithin = (atMs: number): boolean => zones.every((zone) => isOpen(zone, hours, atMs));
  if (isWithin(nowMs)) return nowMs;
  const first = Math.ceil(nowMs / STEP_MS) * STEP_MS;
  for (let atMs = first; atMs < first + SEARCHED_MS; atMs += STEP_MS) if (isWithin(atMs)) return atMs;
  return null;
}

function isOpen(zone: string, { from, to, days }: CallingHours, atMs: number): boolean {
  const parts = new Map(
    formatOf(zone)
      .formatToParts(atMs)
      .map(({ type, value }) => [type, value]),
  );
  const day = parts.get('weekday')?.toLowerCase();
  const time = `${parts.get('hour') ?? ''}:${parts.get('minute') ?? ''}`;
  return days.some((one) => one === day) && from <= time && time < to;
}

function formatOf(zone: string): Intl.DateTimeFormat {
  const name = zone.toLowerCase();
  let format = formats.get(name);
  if (format === undefined) {
    if (OFFSET.test(zone)) throw new RangeError(`${zone} is an offset, not a time zone`);
    format = new Intl.DateTimeFormat('en-GB', { timeZone: zone, weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
    formats.set(name, format);
  }
  return format;
}
