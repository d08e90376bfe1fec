import type { Config } from '../../config/schema.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { resolveHostPort } from '../../lib/resolve.js';
import { HepSender } from '../../observability/hep/sender.js';
import { watchProcess } from '../../observability/metrics/process-metrics.js';
import type { Metrics } from '../../observability/metrics/registry.js';
import { traceparentOf } from '../../observability/tracing/trace-context.js';
import type { InboundServices } from '../drachtio/inbound.js';
import { subscribe } from '../ports/events.js';
import { CallArchive } from '../store/files/call-archive.js';
import { callSpans } from './call-spans.js';
import { webhookSpan } from './webhook-span.js';
import { countEvents } from './gateway-metrics.js';
import { callsDirectory } from './stores.js';

/** What the gateway hands to observers beside its events. */
export interface Observers {
  readonly services: Pick<InboundServices, 'isTimed' | 'onSipMessage' | 'traceparent'>;
  /** Sends and writes what waits. */
  close(): Promise<void>;
}

/** Observers of calls: metrics, the archive file, a Homer collector, an OpenTelemetry collector. */
export async function openObservers(config: Config, instance: string, clock: Clock, log: Log, metrics: Metrics): Promise<Observers> {
  const { telemetry, hep, calls } = config;
  const ends = [watchProcess(metrics, clock), countEvents(metrics)];
  const archive = calls.archive_days === 0 ? null : new CallArchive(callsDirectory(config), calls.archive_days, clock, log);
  if (archive !== null) ends.push(subscribe('call.ended', ({ record }) => archive.append(record)));
  const homer =
    hep.address === null
      ? null
      : new HepSender({
          collector: await resolveHostPort(hep.address),
          captureId: hep.capture_id,
          password: hep.password,
          ownAddress: config.public_address ?? config.bind_address,
          counts: metrics,
          log,
        });
  if (homer !== null) ends.push(subscribe('rtcp.seen', (seen) => homer.sendRtcp(seen)));
  const { otlp_url: url, sample_ratio: ratio } = telemetry;
  // OpenTelemetry is loaded only when traces are on.
  const exporter = url === null ? null : await import('../../observability/tracing/exporter.js');
  const traces =
    url === null || exporter === null ? null : exporter.openTraceExporter({ url, ratio, instance, clock, counts: metrics, log });
  if (traces !== null)
    ends.push(
      subscribe('webhook.attempt', (attempt) => traces.take(attempt.callId, () => [webhookSpan(attempt)])),
      subscribe('call.ended', ({ record, timeline }) => {
        if (timeline !== undefined) traces.take(record.call_id, () => callSpans(record, timeline));
      }),
    );
  return {
    services: {
      isTimed: traces !== null,
      ...(homer === null ? {} : { onSipMessage: (message) => homer.send(message) }),
      ...(traces === null ? {} : { traceparent: (callId: string) => traceparentOf(callId, ratio) }),
    },
    close: async () => {
      for (const end of ends) end();
      homer?.close();
      await traces?.close();
      await archive?.close();
    },
  };
}
