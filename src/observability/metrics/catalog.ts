type Labels = Readonly<Record<string, string | readonly string[]>>;

/** A metric. Every sample has the label `process` besides these. */
export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** `true`: the gateway counts as it happens. Any other counter is read at each scrape. Histograms are always counted. */
  readonly isCounted?: true;
  /** A sentence for a person. */
  readonly help: string;
  /** Each label with all its values, or with what bounds them: never a number, an organization, a call or a caller's address. */
  readonly labels?: Labels;
  /** Upper bounds of a histogram's buckets, in its unit. */
  readonly buckets?: readonly number[];
}

interface Metric<Kind> {
  (help: string): Kind & { readonly help: string };
  <L extends Labels>(help: string, labels: L): Kind & { readonly help: string; readonly labels: L };
}
const metric = <const Kind extends Omit<MetricDefinition, 'help' | 'labels'>>(kind: Kind) =>
  ((help: string, labels?: Labels) => ({ ...kind, help, ...(labels === undefined ? {} : { labels }) })) as Metric<Kind>;
const gauge = metric({ type: 'gauge' });
const counter = metric({ type: 'counter' });
const counted = metric({ type: 'counter', isCounted: true });
const histogram = (buckets: readonly number[]) => metric({ type: 'histogram', buckets });

const ANSWER_BUCKETS = [0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 3, 5, 10];
const COMMAND_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const TALK_BUCKETS = [1, 5, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200];

const REASON = { reason: 'codes of docs/errors.md', fault: 'caller, customer, gateway, agent, nobody' };
/** From the carrier: by the media endpoint's RTCP. To the carrier: by the carrier's. */
const DIRECTION = { direction: ['from_carrier', 'to_carrier'] };
const COMMANDS = ['offer', 'answer', 'delete', 'query', 'list'];
const NODE = { node: 'the host:port of each entry of rtpengine.address' };
const WORKER = { worker: 'media worker threads, from 1 (media.workers, at most 32)' };

/** Every metric, in the order of docs/metrics.md, which `npm run docs` generates from it. */
export const METRICS = {
  trunkline_build_info: gauge('Always 1.', { version: 'one', node: 'one: the version of Node.js' }),
  trunkline_process_up: gauge('1 when the process answered this scrape in time, else 0.'),

  trunkline_calls_in_progress: gauge('Calls from INVITE until all their resources are freed.'),
  trunkline_calls_begun_total: counter('INVITEs for new calls, including refused ones.'),
  trunkline_calls_ended_total: counted('Answered calls that ended.', REASON),
  trunkline_calls_refused_total: counted('Calls that ended without an answer.', REASON),
  trunkline_calls_identity_total: counted('Calls whose Identity header was checked (STIR/SHAKEN). The attestation is as claimed.', {
    verdict: 'verdicts of docs/stir-shaken.md',
    attestation: ['A', 'B', 'C', 'none'],
  }),
  trunkline_calls_challenged_total: counted(
    'INVITEs to numbers with a `challenge`. All but `right` got 401; `stale`: right for a nonce that is too old.',
    { credentials: ['right', 'missing', 'stale', 'wrong'] },
  ),
  trunkline_call_answer_seconds: histogram(ANSWER_BUCKETS)('From the INVITE to the 200, counted at the 200.'),
  trunkline_call_first_audio_seconds: histogram(ANSWER_BUCKETS)(
    "From the ACK to the caller's first audio; 0 if it arrived earlier. Counted when the call ends.",
  ),
  trunkline_call_turn_seconds: histogram([0.2, 0.4, 0.6, 0.8, 1, 1.5, 2, 3, 5, 10])(
    "From the end of the caller's speech to the agent's first audio, of each turn. Counted when the call ends.",
  ),
  trunkline_call_talk_seconds: histogram(TALK_BUCKETS)('From the 200 to the end.'),
  trunkline_call_mos: histogram([1.5, 2, 2.5, 3, 3.5, 3.8, 4, 4.2, 4.4])(
    'Mean opinion score of an answered call, 1.0 to 4.5, if RTCP reports arrived.',
    DIRECTION,
  ),
  trunkline_call_lost_ratio: histogram([0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25])(
    'Share of the packets of an answered call that were lost, 0 to 1, if RTCP reports arrived.',
    DIRECTION,
  ),
  trunkline_call_jitter_seconds: histogram([0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1])(
    'Interarrival jitter of an answered call (RFC 3550 §6.4.1), if RTCP reports arrived.',
    DIRECTION,
  ),
  trunkline_calls_stale_route_total: counted('Calls decided with cached routes because Redis was unavailable.'),
  trunkline_calls_resumed_total: counted('Ended calls that a restarted gateway had resumed.'),
  trunkline_call_room: gauge('Calls for which media capacity is left: ports and open files of rtpengine, ports of the media endpoint.'),
  trunkline_call_places: gauge('Calls counted under the limits of numbers and organizations.'),
  trunkline_call_snapshots: gauge('Answered calls kept for a restart.'),
  trunkline_taking_calls: gauge('1 while the gateway accepts new calls, 0 while they get 503.'),
  trunkline_sip_server_connected: gauge('1 while the control connection to the SIP server is up.'),

  trunkline_trunks: gauge('Trunks that get OPTIONS (`options_interval_s`), of all organizations on this Redis.', { state: ['up', 'down'] }),

  trunkline_relay_up: gauge('1 while the rtpengine answers.', NODE),
  trunkline_relay_sessions: gauge('Calls of this gateway on the rtpengine.', NODE),
  trunkline_relay_outstanding_commands: gauge('Commands that wait for an answer, or to be sent.', NODE),
  trunkline_relay_command_seconds: histogram(COMMAND_BUCKETS)('From a command to its answer, waiting for a turn included.', {
    ...NODE,
    command: COMMANDS,
  }),
  trunkline_relay_command_failures_total: counted('Commands that were refused or not answered.', {
    ...NODE,
    command: COMMANDS,
    cause: ['timeout', 'refused', 'closed'],
  }),

  trunkline_media_capacity: gauge('Calls that the media endpoint has sockets for.'),
  trunkline_media_legs: gauge('Open media legs.', WORKER),
  trunkline_media_packets_sent_total: counter('RTP packets towards callers.', WORKER),
  trunkline_media_packets_received_total: counter('RTP packets of callers.', WORKER),
  trunkline_media_packets_lost_total: counter('Lost packets of callers, by sequence number.', WORKER),
  trunkline_media_packets_late_total: counter('Packets of callers that arrived after their playout time.', WORKER),
  trunkline_media_srtp_failures_total: counter('SRTP and SRTCP packets with a wrong key, changed, or seen before.', WORKER),
  trunkline_media_stray_packets_total: counter('Datagrams that belong to no call.', {
    ...WORKER,
    kind: 'stranger, malformed, earlier_call',
  }),
  trunkline_media_send_errors_total: counter('Packets that the kernel did not accept.', WORKER),
  trunkline_media_late_frames_total: counter('Wake-ups of the 20 ms pacing that were late by a frame or more.', WORKER),
  trunkline_media_pacing_late_seconds: gauge('The latest wake-up since the last scrape.', WORKER),
  trunkline_media_delay_seconds: gauge(
    'How late the latest media thread sends frames: 99th percentile of half a second. New calls get 503 above admission.max_media_delay_ms.',
  ),
  trunkline_media_arrival_delay_seconds: gauge(
    "How late the callers' packets are read, beyond the fastest of late: the median of the calls. New calls get 503 above admission.max_media_delay_ms while the machine's CPU is used up.",
  ),
  trunkline_media_kernel_drops_total: counter('Datagrams that the kernel dropped because a receive buffer was full.'),
  trunkline_media_worker_restarts_total: counter('Media worker threads that died and were replaced.'),

  trunkline_agent_connects_total: counted('Attempts to connect the agent of a call.', {
    agent: ['stream', 'provider', 'test-line'],
    outcome: ['connected', 'failed'],
  }),
  trunkline_agent_connect_seconds: histogram(REQUEST_BUCKETS)(
    'Time until the agent was ready; for a stream, the WebSocket handshake; for a provider, the accepted session.',
    {
      agent: ['stream', 'provider', 'test-line'],
    },
  ),
  trunkline_agent_reconnects_total: counter('Agent connections that broke during a call and were restored.', WORKER),
  trunkline_agent_dropped_audio_seconds_total: counter(
    'Dropped audio: inbound, because the agent reads too slowly; outbound, because its queue is full.',
    { ...WORKER, direction: 'inbound, outbound' },
  ),

  trunkline_tool_calls_total: counted('Calls of custom tools.', {
    outcome: ['ok', 'TOOL_BAD_INPUT', 'TOOL_FAILED', 'TOOL_TIMEOUT'],
  }),
  trunkline_tool_seconds: histogram(REQUEST_BUCKETS)('Duration of a tool call.'),

  trunkline_webhook_attempts_total: counted('Webhook delivery attempts.', {
    outcome: ['delivered', 'failed', 'refused', 'aborted'],
  }),
  trunkline_webhook_seconds: histogram(REQUEST_BUCKETS)('Duration of an attempt.'),
  trunkline_webhook_dead_letters_total: counted('Webhooks that were given up.'),
  trunkline_webhooks_waiting: gauge('Webhooks to be sent, of all gateways on this Redis.'),

  trunkline_api_requests_total: counted('Answered requests to the control API.', {
    method: 'HTTP methods of the API, other',
    route: 'patterns of the API, none',
    status: '2xx, 3xx, 4xx, 5xx',
  }),
  trunkline_api_request_seconds: histogram(REQUEST_BUCKETS)('From a request to its answer.'),

  trunkline_redis_up: gauge('1 while the connection to Redis is usable.'),
  trunkline_redis_writable: gauge('1 while Redis takes writes: one that is full or read-only answers, and takes none.'),
  trunkline_redis_write_seconds: gauge('The last write that was tried at a scrape, until its answer.'),
  trunkline_redis_memory_bytes: gauge('Memory in use by Redis, of a cluster by the fullest primary.'),
  trunkline_redis_memory_limit_bytes: gauge('`maxmemory` of the same Redis; absent without a limit.'),
  trunkline_redis_command_seconds: histogram(COMMAND_BUCKETS)('One command, script or pipeline.', { outcome: ['ok', 'failed'] }),
  trunkline_redis_connects_total: counter('Times that the connection became usable: the first, and each reconnect.'),
  trunkline_redis_waiting_records: gauge('Ended calls in the spool file, waiting for Redis.'),
  trunkline_stored_calls_bytes: gauge('Records and traces of calls in Redis, of all gateways on it; calls.max_stored_mb bounds them.'),
  trunkline_stored_calls_evicted_total: counter(
    'Traces and records that were dropped before the end of their retention, to stay below calls.max_stored_mb.',
    { kind: ['trace', 'record'] },
  ),

  trunkline_hep_packets_total: counted('Messages for the Homer collector.', { outcome: ['sent', 'dropped'] }),
  trunkline_trace_spans_total: counted('Spans for the OpenTelemetry collector.', { outcome: ['exported', 'dropped'] }),

  trunkline_sip_transactions: gauge('SIP transactions of both kinds.'),
  trunkline_sip_dialogs: gauge('SIP dialogs.'),
  trunkline_sip_dialogs_restored: gauge('SIP dialogs of an earlier process that this one took over at its start.'),
  trunkline_sip_journal_bytes: gauge('Size of the file that keeps the SIP dialogs for the next process.'),
  trunkline_sip_journal_failures_total: counter(
    'Failed attempts to read or write that file: until one succeeds, changes of dialogs die with the process.',
  ),
  trunkline_sip_connections: gauge('TLS and TCP connections with peers.'),
  trunkline_sip_applications: gauge('Gateways on the control port.'),
  trunkline_sip_timers: gauge('Running timers.'),
  trunkline_sip_messages_total: counter('SIP messages of peers.', { kind: 'taken, malformed' }),
  trunkline_sip_tls_handshakes_total: counter('TLS handshakes of peers.', { outcome: 'ok, failed' }),
  trunkline_sip_refused_total: counter('Requests refused with 503, and connections closed, at a limit.', {
    cause: 'rate, dialogs, memory, application_delay, connections_per_source, file_handles, stranger',
  }),
  trunkline_sip_dropped_total: counter('Messages dropped without an answer.', { cause: 'rate, scanner' }),
  trunkline_certificate_end_seconds: gauge('When a certificate of the SIP server expires, in seconds of the Unix epoch.', {
    certificate: 'sip.cert_file, and sip.certificates.0 and so on',
  }),

  trunkline_child_deaths_total: counted('Processes of an instance that ended by themselves, and that the supervisor started again.', {
    child: 'names of the processes of `trunkline up`, such as gateway, sip-server, rtpengine, redis-server',
  }),

  trunkline_process_cpu_seconds_total: counter('CPU time.', { mode: 'user, system' }),
  trunkline_process_resident_bytes: gauge('Resident memory.'),
  trunkline_process_heap_bytes: gauge('Used JavaScript heap of the main thread.'),
  trunkline_process_open_files: gauge('Open file handles, sockets too.'),
  trunkline_process_max_files: gauge('Limit of open file handles (ulimit -n).'),
  trunkline_log_lines_dropped_total: counter('Log lines dropped because the reader of the log was 1 MiB behind.'),
  trunkline_process_start_time_seconds: gauge('When the process started, in seconds of the Unix epoch.'),
  trunkline_event_loop_delay_seconds: gauge('Event loop delay in the last whole 5 s.', { percentile: '50, 99, 100' }),
} as const satisfies Readonly<Record<`trunkline_${string}`, MetricDefinition>>;

export type MetricName = keyof typeof METRICS;

type LabelsOf<Name extends MetricName> = (typeof METRICS)[Name] extends { readonly labels: infer Own }
  ? Readonly<Record<keyof Own, string>>
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
