/** A metric. Every sample has the label `process` besides these. */
export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** `true`: the gateway counts as it happens. Any other counter is read at each scrape. Histograms are always counted. */
  readonly isCounted?: true;
  /** A sentence for a person. */
  readonly help: string;
  /** Each label with all its values, or with what bounds them: never a number, an organization, a call or a caller's address. */
  readonly labels?: Readonly<Record<string, string | readonly string[]>>;
  /** Upper bounds of a histogram's buckets, in its unit. */
  readonly buckets?: readonly number[];
}

const ANSWER_BUCKETS = [0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 3, 5, 10];
const COMMAND_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const TALK_BUCKETS = [1, 5, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200];

const REASON = {
  labels: { reason: 'codes of docs/errors.md', fault: 'caller, customer, gateway, agent, nobody' },
};
/** From the carrier: by the media endpoint's RTCP. To the carrier: by the carrier's. */
const DIRECTION = { direction: ['from_carrier', 'to_carrier'] };
const COMMANDS = ['offer', 'answer', 'delete', 'query', 'list'];
const NODE = { node: 'the host:port of each entry of rtpengine.address' };
const WORKER = { worker: 'media worker threads, from 1 (media.workers, at most 32)' };

/** Every metric, in the order of docs/metrics.md, which `npm run docs` generates from it. */
export const METRICS = {
  trunkline_build_info: { type: 'gauge', help: 'Always 1.', labels: { version: 'one', node: 'one: the version of Node.js' } },
  trunkline_process_up: { type: 'gauge', help: '1 when the process answered this scrape in time, else 0.' },

  trunkline_calls_in_progress: { type: 'gauge', help: 'Calls from their INVITE until everything of them is freed.' },
  trunkline_calls_begun_total: { type: 'counter', help: 'INVITEs that made a call, those that were refused too.' },
  trunkline_calls_ended_total: { type: 'counter', isCounted: true, help: 'Answered calls that ended.', ...REASON },
  trunkline_calls_refused_total: { type: 'counter', isCounted: true, help: 'Calls that ended without an answer.', ...REASON },
  trunkline_calls_identity_total: {
    type: 'counter',
    isCounted: true,
    help: 'Calls whose Identity header was looked at (STIR/SHAKEN). The attestation is as claimed.',
    labels: { verdict: 'verdicts of docs/stir-shaken.md', attestation: ['A', 'B', 'C', 'none'] },
  },
  trunkline_call_answer_seconds: { type: 'histogram', help: 'From the INVITE to the 200.', buckets: ANSWER_BUCKETS },
  trunkline_call_first_audio_seconds: {
    type: 'histogram',
    help: 'From the ACK to the first audio of the caller; 0 when it came before.',
    buckets: ANSWER_BUCKETS,
  },
  trunkline_call_talk_seconds: { type: 'histogram', help: 'From the 200 to the end.', buckets: TALK_BUCKETS },
  trunkline_call_mos: {
    type: 'histogram',
    help: 'Mean opinion score of an answered call, 1.0 to 4.5, where RTCP reports came.',
    labels: DIRECTION,
    buckets: [1.5, 2, 2.5, 3, 3.5, 3.8, 4, 4.2, 4.4],
  },
  trunkline_call_lost_ratio: {
    type: 'histogram',
    help: 'Share of the packets of an answered call that were lost, 0 to 1, where RTCP reports came.',
    labels: DIRECTION,
    buckets: [0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25],
  },
  trunkline_call_jitter_seconds: {
    type: 'histogram',
    help: 'Interarrival jitter of an answered call (RFC 3550 §6.4.1), where RTCP reports came.',
    labels: DIRECTION,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1],
  },
  trunkline_calls_stale_route_total: {
    type: 'counter',
    isCounted: true,
    help: 'Calls decided on what was remembered, for Redis was away.',
  },
  trunkline_calls_resumed_total: { type: 'counter', isCounted: true, help: 'Ended calls that a restarted gateway had taken up again.' },
  trunkline_call_room: {
    type: 'gauge',
    help: 'Calls that there is still media for: ports and open files of rtpengine, ports of the media endpoint.',
  },
  trunkline_call_places: { type: 'gauge', help: 'Calls counted under the limits of numbers and organizations.' },
  trunkline_call_snapshots: { type: 'gauge', help: 'Answered calls kept for a restart.' },
  trunkline_taking_calls: { type: 'gauge', help: '1 when new calls are taken, 0 while they get 503.' },
  trunkline_sip_server_connected: { type: 'gauge', help: '1 while the control connection to the SIP server stands.' },

  trunkline_relay_up: { type: 'gauge', help: '1 while the rtpengine answers.', labels: NODE },
  trunkline_relay_sessions: { type: 'gauge', help: 'Calls of this gateway on the rtpengine.', labels: NODE },
  trunkline_relay_outstanding_commands: { type: 'gauge', help: 'Commands that wait for an answer, or to be sent.', labels: NODE },
  trunkline_relay_command_seconds: {
    type: 'histogram',
    help: 'From a command to its answer, waiting for a turn included.',
    labels: { ...NODE, command: COMMANDS },
    buckets: COMMAND_BUCKETS,
  },
  trunkline_relay_command_failures_total: {
    type: 'counter',
    isCounted: true,
    help: 'Commands that were refused or had no answer.',
    labels: { ...NODE, command: COMMANDS, cause: ['timeout', 'refused', 'closed'] },
  },

  trunkline_media_capacity: { type: 'gauge', help: 'Calls that the media endpoint has sockets for.' },
  trunkline_media_legs: { type: 'gauge', help: 'Open media legs.', labels: WORKER },
  trunkline_media_packets_sent_total: { type: 'counter', help: 'RTP packets towards callers.', labels: WORKER },
  trunkline_media_packets_received_total: { type: 'counter', help: 'RTP packets of callers.', labels: WORKER },
  trunkline_media_packets_lost_total: {
    type: 'counter',
    help: 'Packets of callers that never came, by their sequence numbers.',
    labels: WORKER,
  },
  trunkline_media_packets_late_total: {
    type: 'counter',
    help: 'Packets of callers that came after their time to be played.',
    labels: WORKER,
  },
  trunkline_media_srtp_failures_total: {
    type: 'counter',
    help: 'SRTP and SRTCP packets with a wrong key, changed, or seen before.',
    labels: WORKER,
  },
  trunkline_media_stray_packets_total: {
    type: 'counter',
    help: 'Datagrams that belong to no call.',
    labels: { ...WORKER, kind: 'stranger, malformed, earlier_call' },
  },
  trunkline_media_send_errors_total: { type: 'counter', help: 'Packets that the system did not take.', labels: WORKER },
  trunkline_media_late_frames_total: {
    type: 'counter',
    help: 'Wake-ups of the 20 ms pacing that came a whole frame late or more.',
    labels: WORKER,
  },
  trunkline_media_pacing_late_seconds: { type: 'gauge', help: 'The latest wake-up since the last scrape.', labels: WORKER },
  trunkline_media_delay_seconds: {
    type: 'gauge',
    help: 'How late the latest media thread sends frames: 99th percentile of half a second. New calls get 503 above admission.max_media_delay_ms.',
  },
  trunkline_media_kernel_drops_total: { type: 'counter', help: 'Datagrams that the kernel threw away because a receive buffer was full.' },
  trunkline_media_worker_restarts_total: { type: 'counter', help: 'Media worker threads that died and were replaced.' },

  trunkline_agent_connects_total: {
    type: 'counter',
    isCounted: true,
    help: 'Attempts to get the agent of a call ready.',
    labels: { agent: ['stream', 'test-line'], outcome: ['connected', 'failed'] },
  },
  trunkline_agent_connect_seconds: {
    type: 'histogram',
    help: 'What it took until the agent was ready: of a stream the WebSocket handshake.',
    labels: { agent: ['stream', 'test-line'] },
    buckets: REQUEST_BUCKETS,
  },
  trunkline_agent_reconnects_total: { type: 'counter', help: 'Connections of agents that broke in a call and came back.', labels: WORKER },
  trunkline_agent_dropped_audio_seconds_total: {
    type: 'counter',
    help: 'Audio that was thrown away: inbound, because the agent reads too slowly; outbound, because it says more than may wait.',
    labels: { ...WORKER, direction: 'inbound, outbound' },
  },

  trunkline_tool_calls_total: {
    type: 'counter',
    isCounted: true,
    help: 'Custom tools that were called.',
    labels: { outcome: ['ok', 'TOOL_BAD_INPUT', 'TOOL_FAILED', 'TOOL_TIMEOUT'] },
  },
  trunkline_tool_seconds: { type: 'histogram', help: 'What a tool took.', buckets: REQUEST_BUCKETS },

  trunkline_webhook_attempts_total: {
    type: 'counter',
    isCounted: true,
    help: 'Webhooks that were sent, each attempt.',
    labels: { outcome: ['delivered', 'failed', 'refused', 'aborted'] },
  },
  trunkline_webhook_seconds: { type: 'histogram', help: 'What one attempt took.', buckets: REQUEST_BUCKETS },
  trunkline_webhook_dead_letters_total: { type: 'counter', isCounted: true, help: 'Webhooks that were given up.' },
  trunkline_webhooks_waiting: { type: 'gauge', help: 'Webhooks to be sent, of all gateways on this Redis.' },

  trunkline_api_requests_total: {
    type: 'counter',
    isCounted: true,
    help: 'Answered requests to the control API.',
    labels: { method: 'HTTP methods of the API, other', route: 'patterns of the API, none', status: '2xx, 3xx, 4xx, 5xx' },
  },
  trunkline_api_request_seconds: { type: 'histogram', help: 'From a request to its answer.', buckets: REQUEST_BUCKETS },

  trunkline_redis_up: { type: 'gauge', help: '1 when the connection to Redis can be used.' },
  trunkline_redis_command_seconds: {
    type: 'histogram',
    help: 'One command, script or pipeline.',
    labels: { outcome: ['ok', 'failed'] },
    buckets: COMMAND_BUCKETS,
  },
  trunkline_redis_connects_total: {
    type: 'counter',
    help: 'Times that the connection became usable: the first, and each time that it was lost before.',
  },
  trunkline_redis_waiting_records: { type: 'gauge', help: 'Ended calls in the spool file, for Redis does not take them.' },
  trunkline_stored_calls_bytes: {
    type: 'gauge',
    help: 'Records and traces of calls in Redis, of all gateways on it; calls.max_stored_mb bounds them.',
  },
  trunkline_stored_calls_evicted_total: {
    type: 'counter',
    help: 'Traces and records that were dropped before the end of their retention, to stay below calls.max_stored_mb.',
    labels: { kind: ['trace', 'record'] },
  },

  trunkline_hep_packets_total: {
    type: 'counter',
    isCounted: true,
    help: 'Messages for the Homer collector.',
    labels: { outcome: ['sent', 'dropped'] },
  },
  trunkline_trace_spans_total: {
    type: 'counter',
    isCounted: true,
    help: 'Spans for the OpenTelemetry collector.',
    labels: { outcome: ['exported', 'dropped'] },
  },

  trunkline_sip_transactions: { type: 'gauge', help: 'SIP transactions of both kinds.' },
  trunkline_sip_dialogs: { type: 'gauge', help: 'SIP dialogs.' },
  trunkline_sip_connections: { type: 'gauge', help: 'TLS and TCP connections with peers.' },
  trunkline_sip_applications: { type: 'gauge', help: 'Gateways on the control port.' },
  trunkline_sip_timers: { type: 'gauge', help: 'Timers that run.' },
  trunkline_sip_messages_total: { type: 'counter', help: 'SIP messages of peers.', labels: { kind: 'taken, malformed' } },
  trunkline_sip_tls_handshakes_total: { type: 'counter', help: 'TLS handshakes of peers.', labels: { outcome: 'ok, failed' } },
  trunkline_sip_refused_total: {
    type: 'counter',
    help: 'Requests that got 503, and connections that were closed at once, at a limit.',
    labels: { cause: 'rate, dialogs, memory, connections_per_source, file_handles, stranger' },
  },
  trunkline_sip_dropped_total: { type: 'counter', help: 'Messages that got no answer.', labels: { cause: 'rate, scanner' } },
  trunkline_certificate_end_seconds: {
    type: 'gauge',
    help: 'When a certificate of the SIP server ends, in seconds of the Unix epoch.',
    labels: { certificate: 'sip.cert_file, and sip.certificates.0 and so on' },
  },

  trunkline_process_cpu_seconds_total: { type: 'counter', help: 'CPU time.', labels: { mode: 'user, system' } },
  trunkline_process_resident_bytes: { type: 'gauge', help: 'Resident memory.' },
  trunkline_process_heap_bytes: { type: 'gauge', help: 'Used JavaScript heap of the main thread.' },
  trunkline_process_open_files: { type: 'gauge', help: 'Open file handles, sockets too.' },
  trunkline_process_max_files: { type: 'gauge', help: 'How many may be open (ulimit -n).' },
  trunkline_log_lines_dropped_total: {
    type: 'counter',
    help: 'Log lines that were dropped because whoever reads the log was behind by 1 MiB.',
  },
  trunkline_process_start_seconds: { type: 'gauge', help: 'When the process started, in seconds of the Unix epoch.' },
  trunkline_event_loop_delay_seconds: {
    type: 'gauge',
    help: 'How late the event loop was in the last whole 5 s.',
    labels: { percentile: '50, 99, 100' },
  },
} as const satisfies Readonly<Record<`trunkline_${string}`, MetricDefinition>>;

export type MetricName = keyof typeof METRICS;

type LabelsOf<Name extends MetricName> = (typeof METRICS)[Name] extends { readonly labels: infer Labels }
  ? Readonly<Record<keyof Labels, string>>
  : Readonly<Record<string, never>>;

type NamesOf<Definition extends Partial<MetricDefinition>> = {
  [Name in MetricName]: (typeof METRICS)[Name] extends Definition ? Name : never;
}[MetricName];

type CountedCounter = NamesOf<{ type: 'counter'; isCounted: true }>;

/** Counts events. The compiler checks names and labels against the catalog. */
export interface MetricCounts {
  count<Name extends CountedCounter>(name: Name, labels: LabelsOf<Name>, by?: number): void;
  observe<Name extends NamesOf<{ type: 'histogram' }>>(name: Name, labels: LabelsOf<Name>, value: number): void;
}

/** Receives figures that other objects hold, at each scrape. */
export interface MetricFigures {
  set<Name extends Exclude<NamesOf<{ type: 'gauge' | 'counter' }>, CountedCounter>>(
    name: Name,
    labels: LabelsOf<Name>,
    value: number,
  ): void;
}
