import { summedRecord, type CallRecord } from '../../model/call-record.js';
import { newUuid } from '../../../lib/ids.js';
import type { Reason } from '../../model/reasons.js';

/** Records a second of calls that were refused as they came in: from one address, and to one organization. */
const OF_SOURCE = 20;
const OF_ORG = 100;

/** These refuse strangers, by the rules of the organization or of SIP: its callers keep their records. */
const STRANGERS: ReadonlySet<string> = new Set<Reason>([
  ...(['MALFORMED_REQUEST', 'SOURCE_NOT_ALLOWED', 'LOOP_DETECTED', 'NUMBER_NOT_ATTACHED', 'INVALID_NUMBER', 'NUMBER_TOO_SHORT'] as const),
  ...(['IDENTITY_REQUIRED', 'IDENTITY_STALE', 'IDENTITY_INFO_BAD', 'IDENTITY_CREDENTIAL_UNSUPPORTED', 'IDENTITY_INVALID'] as const),
  ...(['NOT_ACCEPTABLE', 'BAD_BODY', 'BAD_SCHEME', 'BAD_EXTENSION'] as const),
]);

/** Refused calls of one second: the first ones have a record each, the others are summed by organization and reason. */
export class RefusedSums {
  readonly #counts = new Map<string, number>();
  readonly #sums = new Map<string, CallRecord>();

  /** False: the call is summed. */
  hasRoom(record: CallRecord): boolean {
    const who = `${String(record.org_id)} ${STRANGERS.has(record.reason) ? 'stranger' : 'caller'}`;
    // What is summed of one address leaves room for others.
    if (this.#count(`${who} ${record.source.ip}`) <= OF_SOURCE && this.#count(who) <= OF_ORG) return true;
    const key = `${String(record.org_id)} ${record.reason}`;
    this.#sums.set(key, sumOf(this.#sums.get(key), record));
    return false;
  }

  /** The sums of the second that ends. */
  take(): readonly CallRecord[] {
    const sums = [...this.#sums.values()];
    this.#sums.clear();
    this.#counts.clear();
    return sums;
  }

  #count(key: string): number {
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return count;
  }
}

/** What the calls have in common is said of them. */
function sumOf(
  sum: CallRecord | undefined,
  { org_id: orgId, to, source, reason, reason_detail: detail, sip_status: status, ended_at: at }: CallRecord,
): CallRecord {
  if (sum === undefined) return { ...summedRecord(newUuid(), orgId, { to, reason, detail, status, calls: 1, at }), source };
  return {
    ...sum,
    ended_at: at,
    reason_detail: detail,
    summed_calls: (sum.summed_calls ?? 0) + 1,
    to: sum.to === to ? to : '',
    source: sum.source.ip === source.ip ? sum.source : { ...sum.source, ip: '', port: 0 },
  };
}
