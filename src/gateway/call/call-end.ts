import type { Reason } from '../model/reasons.js';
import type { LegFigures, RelayFigures } from '../model/media.js';
import { pii } from '../../lib/pii.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import { publish } from '../ports/events.js';
import type { CallStore, VoiceServer } from '../ports/ports.js';
import type { CallNotes } from './agent-requests.js';
import { callRecord, completionOf, withRetention, type CallOrigin, type CallProgress } from './call-record.js';
import type { CallTrace } from './call-trace.js';
import type { CallState } from './state.js';
import { statusCallback } from './status-callback.js';

interface EndServices {
  readonly calls: CallStore;
  readonly voiceServer: VoiceServer;
  readonly isTimed?: boolean;
}

/** A call that is over, with everything freed. */
interface OverCall {
  readonly origin: CallOrigin;
  readonly progress: CallProgress;
  readonly state: CallState;
  readonly quality: { readonly endpoint: LegFigures | null; readonly relay: RelayFigures | null };
  readonly notes: CallNotes;
  readonly trace: CallTrace;
  readonly log: Log;
}

/** Logs the end of a call, writes its record, and reports it to the number's owner. Never rejects. */
export async function writeEnd(
  services: EndServices,
  call: OverCall,
  end: { readonly reason: Reason; readonly atMs: number },
): Promise<void> {
  const { origin, progress, state, quality: seen, notes, trace, log } = call;
  const record = callRecord(origin, progress, state, seen, notes, end);
  const { sip_status: sipStatus, direction, from, to, source, quality, timings, stale_route: stale } = record;
  const facts = {
    ...{ reason: end.reason, sip_status: sipStatus, from: pii(from), to: pii(to), source: source.ip, quality, timings },
    ...(direction === 'outbound' ? { direction } : {}),
    ...(stale ? { stale } : {}),
  };
  log.info(facts, record.answered_at === null ? 'call.refused' : 'call.ended');
  try {
    const completion = completionOf(record, state.route?.agent ?? null);
    const timeline = services.isTimed === true ? { timeline: trace.timeline.read() } : {};
    const ended = { ...withRetention(record, state.route), trace: trace.read(), completion, ...timeline };
    publish('call.ended', ended);
    await services.calls.write(ended);
    publish('call.stored', ended);
  } catch (error) {
    log.error({ error: errorText(error) }, 'call.record.not_written');
  }
  const callback = statusCallback(record, state.route);
  if (callback === null) return;
  void services.voiceServer.notify(callback).then((sent) => {
    if (!sent.ok) log.warn({ error: sent.error }, 'call.status_callback.failed');
  });
}
