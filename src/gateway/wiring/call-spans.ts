import type { CallRecord } from '../model/call-record.js';
import type { Timeline } from '../model/call-trace.js';
import { REASONS, type Reason } from '../model/reasons.js';
import type { CallSpan } from '../../observability/tracing/exporter.js';
import { spanIdOf } from '../../observability/tracing/trace-context.js';

/** What became of a call as spans: one for all of it, and below it what it waited for. Nobody's number, address or name is among them. */
export function callSpans(record: CallRecord, timeline: Timeline): readonly CallSpan[] {
  const { call_id: callId } = record;
  const root = spanIdOf(callId);
  const startedMs = Date.parse(record.started_at);
  const endedMs = Date.parse(record.ended_at);
  const answeredMs = record.answered_at === null ? null : Date.parse(record.answered_at);
  const { ring_ms: ringMs } = record.timings;
  const steps = [
    ...timeline.steps,
    ...(ringMs === null ? [] : [{ name: 'ring', startedMs: startedMs + ringMs, endedMs: answeredMs ?? endedMs, isFailed: false }]),
    ...(answeredMs === null ? [] : [{ name: 'talk', startedMs: answeredMs, endedMs, isFailed: false }]),
  ];
  const fault = REASONS[record.reason as Reason].fault;
  return [
    {
      spanId: root,
      parentId: null,
      name: 'call',
      kind: 'server',
      startedMs,
      endedMs: Math.max(startedMs, endedMs),
      // A caller who cancels is no failure of anybody's.
      isFailed: fault === 'gateway' || fault === 'agent',
      attributes: attributesOf(record, fault),
      events: [...timeline.moments, { name: 'end', atMs: endedMs }],
    },
    ...steps.map(({ name, startedMs: from, endedMs: to, isFailed }, index): CallSpan => ({
      spanId: spanIdOf(callId, `${String(index)} ${name}`),
      parentId: root,
      name,
      kind: peerOf(name) === null ? 'internal' : 'client',
      startedMs: from,
      // The wall clock may be set back.
      endedMs: Math.max(from, to),
      isFailed,
      attributes: stepAttributes(name, isFailed),
      events: [],
    })),
  ];
}

/** The process that a step asks; `null`: none. */
function peerOf(step: string): string | null {
  if (step === 'look-up') return 'redis';
  if (step.startsWith('relay ')) return 'rtpengine';
  return step === 'agent connect' ? 'agent' : null;
}

function stepAttributes(step: string, isFailed: boolean): CallSpan['attributes'] {
  const peer = peerOf(step);
  return { ...(peer === null ? {} : { 'peer.service': peer }), ...(isFailed ? { 'error.type': '_OTHER' } : {}) };
}

/** `network.*` and `error.type` are OpenTelemetry's semantic conventions; there are none for SIP. */
function attributesOf(record: CallRecord, fault: string): CallSpan['attributes'] {
  const { reason, sip_status: status, codec, crypto_suite: suite, source, call_id: callId } = record;
  const isTls = source.transport === 'tls';
  return {
    'trunkline.call.id': callId,
    'trunkline.call.reason': reason,
    'trunkline.call.fault': fault,
    ...(status === null ? {} : { 'sip.response.status_code': status }),
    'network.protocol.name': 'sip',
    'network.transport': source.transport === 'udp' ? 'udp' : 'tcp',
    ...(isTls && source.tls_version !== null ? { 'tls.protocol.version': source.tls_version } : {}),
    ...(fault === 'gateway' || fault === 'agent' ? { 'error.type': reason } : {}),
    ...(codec === null ? {} : { 'trunkline.media.codec': codec }),
    ...(suite === null ? {} : { 'trunkline.media.srtp_suite': suite }),
    ...(record.stale_route ? { 'trunkline.route.stale': true } : {}),
  };
}
