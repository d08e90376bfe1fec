import { SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import { ExportResultCode, millisToHrTime, type ExportResult } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { CancelTimer, Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import type { MetricCounts } from '../metrics/catalog.js';
import { isSampled, traceIdOf } from './trace-context.js';
import { packageVersion } from '../../config/version.js';

/** One span, before its conversion to OpenTelemetry. Times are milliseconds since the epoch. */
export interface CallSpan {
  readonly spanId: string;
  /** `null`: the call's own span. */
  readonly parentId: string | null;
  readonly name: string;
  /** `server`: the call; `client`: what it asked of another process. */
  readonly kind: 'server' | 'client' | 'internal';
  readonly startedMs: number;
  readonly endedMs: number;
  readonly isFailed: boolean;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly events: readonly { readonly name: string; readonly atMs: number }[];
}

export interface TraceOptions {
  /** OTLP/HTTP collector, such as http://127.0.0.1:4318/v1/traces. */
  readonly url: string;
  /** 0 to 1. */
  readonly ratio: number;
  readonly instance: string;
  readonly clock: Clock;
  readonly counts: Pick<MetricCounts, 'count'>;
  readonly log: Log;
}

export interface TraceExporter {
  /** Queues a call's spans if it is sampled. Never throws. @param makeSpans runs only for a sampled call */
  take(callId: string, makeSpans: () => readonly CallSpan[]): void;
  /** Sends the queue, within a short time. */
  close(): Promise<void>;
}

const MAX_QUEUE = 4_096;
const MAX_BATCH = 512;
const DELAY_MS = 2_000;
const TIMEOUT_MS = 5_000;
const CLOSE_LIMIT_MS = 2_000;
/** A batch that was not taken is sent again for a minute. Meanwhile its spans count against the queue. */
const AGAIN_MS = 5_000;
const MOST_TRIES = 12;

type Spans = Parameters<OTLPTraceExporter['export']>[0];

export function openTraceExporter(options: TraceOptions): TraceExporter {
  const resource = resourceFromAttributes({
    'service.name': 'trunkline',
    'service.version': packageVersion(),
    'service.instance.id': options.instance,
  });
  const otlp = new OTLPTraceExporter({ url: options.url, timeoutMillis: TIMEOUT_MS });
  const count = (outcome: 'exported' | 'dropped', spans: number): void =>
    options.counts.count('trunkline_trace_spans_total', { outcome }, spans);
  let waiting = 0;
  let isReported = false;
  let isClosed = false;
  /** Batches that wait to be sent again: how many spans, by what ends the wait. */
  const again = new Map<CancelTimer, number>();
  const settle = (outcome: 'exported' | 'dropped', spans: number): void => {
    waiting -= spans;
    count(outcome, spans);
  };
  const send = (spans: Spans, triesLeft: number, done: (result: ExportResult) => void): void =>
    otlp.export(spans, (result) => {
      const isSent = result.code === ExportResultCode.SUCCESS;
      if (!isSent && !isReported) options.log.warn({ error: result.error?.message ?? '' }, 'telemetry.not_exported');
      isReported = !isSent;
      if (isSent || triesLeft === 0 || isClosed) settle(isSent ? 'exported' : 'dropped', spans.length);
      else {
        const cancel = options.clock.setTimer(AGAIN_MS, () => {
          again.delete(cancel);
          send(spans, triesLeft - 1, () => undefined);
        });
        again.set(cancel, spans.length);
      }
      done(result);
    });
  const told: typeof otlp.export = (spans, done) => send(spans, MOST_TRIES - 1, done);
  const processor = new BatchSpanProcessor(
    { export: told, shutdown: () => otlp.shutdown(), forceFlush: () => otlp.forceFlush() },
    { maxQueueSize: MAX_QUEUE, maxExportBatchSize: MAX_BATCH, scheduledDelayMillis: DELAY_MS, exportTimeoutMillis: TIMEOUT_MS },
  );
  return {
    take: (callId, makeSpans) => {
      if (!isSampled(callId, options.ratio)) return;
      const spans = makeSpans();
      if (waiting + spans.length > MAX_QUEUE) {
        count('dropped', spans.length);
        return;
      }
      waiting += spans.length;
      for (const span of spans) processor.onEnd({ ...readable(callId, span), resource });
    },
    close: async () => {
      isClosed = true;
      for (const [cancel, spans] of again) {
        cancel();
        settle('dropped', spans);
      }
      let limit: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => (limit = setTimeout(resolve, CLOSE_LIMIT_MS)));
      await Promise.race([processor.shutdown().catch(() => undefined), late]);
      clearTimeout(limit);
    },
  };
}

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const;

/** The span in the form of OpenTelemetry's processor. */
function readable(callId: string, span: CallSpan) {
  const context = (spanId: string) => ({ traceId: traceIdOf(callId), spanId, traceFlags: TraceFlags.SAMPLED });
  return {
    name: span.name,
    kind: KINDS[span.kind],
    spanContext: () => context(span.spanId),
    ...(span.parentId === null ? {} : { parentSpanContext: context(span.parentId) }),
    startTime: millisToHrTime(span.startedMs),
    endTime: millisToHrTime(span.endedMs),
    duration: millisToHrTime(span.endedMs - span.startedMs),
    status: { code: span.isFailed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: { ...span.attributes },
    links: [],
    events: span.events.map(({ name, atMs }) => ({ name, time: millisToHrTime(atMs) })),
    ended: true,
    instrumentationScope: { name: 'trunkline', version: packageVersion() },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}
