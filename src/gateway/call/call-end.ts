import type { CallRecord } from '../model/call-record.js';
import type { Reason } from '../model/reasons.js';
import type { LegFigures, RelayFigures } from '../model/media.js';
import { pii } from '../../lib/pii.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import { publish } from '../ports/events.js';
import type { CallStore } from '../ports/ports.js';
import type { Call } from './call.js';
import { callRecord, completionOf, placedEnd, withRetention } from './call-record.js';
import type { CallTrace } from './call-trace.js';

interface EndServices {
  readonly calls: CallStore;
  readonly isTimed?: boolean;
}

/** A call that is over, with everything freed. */
interface OverCall {
  readonly data: Call;
  readonly quality: { readonly endpoint: LegFigures | null; readonly relay: RelayFigures | null };
  readonly trace: CallTrace;
  readonly log: Log;
}

/** Logs the end of a call and writes its record. Never rejects. */
export async function writeEnd(
  services: EndServices,
  call: OverCall,
  end: { readonly reason: Reason; readonly atMs: number },
): Promise<CallRecord> {
  const { data, quality: seen, trace, log } = call;
  const { state } = data;
  const record = callRecord(data, seen, end);
  const { org_id, agent_id, sip_status: sipStatus, direction, from, to, source, quality, timings, stale_route: stale } = record;
  const facts = {
    org_id,
    agent_id,
    reason: end.reason,
    ...(record.reason_detail === null ? {} : { over: record.reason_detail }),
    sip_status: sipStatus,
    from: pii(from),
    to: pii(to),
    source: source.ip,
    quality,
    timings,
    ...(direction === 'outbound' ? { direction } : {}),
    ...(stale ? { stale } : {}),
  };
  log.info(facts, record.answered_at === null ? 'call.refused' : 'call.ended');
  try {
    const completion = completionOf(record, state.route?.agent ?? null);
    const timeline = services.isTimed === true ? { timeline: trace.timeline.read() } : {};
    const placed = placedEnd(record, data);
    const kept = { ...withRetention(record, state.route), trace: trace.read(), completion, ...timeline };
    const ended = placed === undefined ? kept : { ...kept, placed };
    publish('call.ended', ended);
    await services.calls.write(ended);
    publish('call.stored', ended);
  } catch (error) {
    log.error({ error: errorText(error) }, 'call.record.not_written');
  }
  return record;
}
