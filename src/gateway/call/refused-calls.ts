import { errorText } from '../../lib/result.js';
import { isoNow } from '../../lib/clock.js';
import { newUuid } from '../../lib/ids.js';
import { summedRecord } from '../model/call-record.js';
import { parseE164, type E164 } from '../model/e164.js';
import { REASONS } from '../model/reasons.js';
import { publish } from '../ports/events.js';
import { StoreUnavailableError } from '../ports/ports.js';
import type { CallServices } from './call-services.js';

type Services = Pick<CallServices, 'routes' | 'calls' | 'clock' | 'log'>;

/** Calls of one organization; its most called number. */
interface Refused {
  calls: number;
  readonly to: string;
}

/**
 * Counts the calls that the SIP server refused itself in the last second, and writes one record for those of each organization. Never
 * rejects.
 * @param text `TOTAL NUMBER=CALLS … why:WHY`; an earlier version of the SIP server does not say why
 */
export async function recordRefused(services: Services, text: string): Promise<void> {
  const { calls: store, clock, log } = services;
  const at = isoNow(clock);
  const reason = 'OVERLOADED';
  const [counts = '', why] = text.split(' why:');
  const detail = why === undefined ? null : decodeURIComponent(why);
  for (const [orgId, { calls, to }] of await byOrg(services, counts)) {
    log.warn({ org_id: orgId, calls, over: detail }, 'call.refused.summed');
    const ended = {
      record: summedRecord(newUuid(), orgId, { to, calls, at, reason, detail, status: REASONS[reason].sipStatus }),
      trace: [],
      completion: null,
    };
    try {
      publish('call.ended', ended);
      await store.write(ended);
      publish('call.stored', ended);
    } catch (error) {
      log.error({ org_id: orgId, error: errorText(error) }, 'call.record.not_written');
    }
  }
}

/** `null`: numbers that nobody has, or that could not be looked up. */
async function byOrg(services: Services, text: string): Promise<ReadonlyMap<string | null, Refused>> {
  const [total = '0', ...numbers] = text.split(' ');
  const counted = numbers.map((part) => part.split('=')).map(([number = '', calls = '0']) => ({ number, calls: Number(calls) }));
  counted.sort((a, b) => b.calls - a.calls);
  const orgs = await Promise.all(counted.map(({ number }) => orgOf(services, parseE164(number))));
  const found = new Map<string | null, Refused>();
  const add = (orgId: string | null, to: string, calls: number): void => {
    const known = found.get(orgId);
    if (known === undefined) found.set(orgId, { calls, to });
    else known.calls += calls;
  };
  counted.forEach(({ number, calls }, index) => add(orgs[index] ?? null, number, calls));
  const others = Number(total) - counted.reduce((sum, { calls }) => sum + calls, 0);
  if (others > 0) add(null, '', others);
  return found;
}

async function orgOf({ routes }: Services, number: E164 | undefined): Promise<string | null> {
  if (number === undefined) return null;
  try {
    return (await routes.lookup(number, null)).route?.org.org_id ?? null;
  } catch (error) {
    if (error instanceof StoreUnavailableError) return null;
    throw error;
  }
}
