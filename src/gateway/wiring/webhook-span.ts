import type { GatewayEvents } from '../ports/events.js';
import type { CallSpan } from '../../observability/tracing/exporter.js';
import { spanIdOf } from '../../observability/tracing/trace-context.js';

/** One attempt to deliver the webhook of a call, by OpenTelemetry's conventions for HTTP clients. Without the receiver's address. */
export function webhookSpan({ callId, attempt, startedMs, tookMs, outcome, status }: GatewayEvents['webhook.attempt']): CallSpan {
  return {
    spanId: spanIdOf(callId, `webhook ${String(attempt)} ${String(startedMs)}`),
    parentId: spanIdOf(callId),
    name: 'webhook',
    kind: 'client',
    startedMs,
    endedMs: startedMs + tookMs,
    isFailed: outcome !== 'delivered',
    attributes: {
      'trunkline.call.id': callId,
      'http.request.method': 'POST',
      ...(attempt > 1 ? { 'http.request.resend_count': attempt - 1 } : {}),
      ...(status === null ? {} : { 'http.response.status_code': status }),
      ...(outcome === 'delivered' ? {} : { 'error.type': status === null ? outcome : String(status) }),
    },
    events: [],
  };
}
