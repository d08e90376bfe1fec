import { isIP } from 'node:net';
import { z } from 'zod';
import { STREAM_FORMATS } from '../agent-protocol/stream-format.js';
import { agentUrl, providerUrl } from '../agent-protocol/agent-url.js';
import { bareHost, isSourceAddress } from '../lib/address.js';
import { isPublicAddress } from '../lib/address-scope.js';

/** The verdicts on an Identity header that can refuse a call (RFC 8224 §6.2.2). */
export const REFUSABLE_VERDICTS = ['missing', 'stale', 'bad-info', 'credential', 'invalid'] as const;

const port = z.int().min(1).max(65_535);
const milliseconds = z.int().min(1).max(86_400_000);
const count = z.int().min(1).max(100_000_000);
const address = z.string().refine((text) => isIP(text) !== 0, 'must be an IPv4 or IPv6 address');
const host = z
  .string()
  .regex(/^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$/, 'must be a host name or an address')
  .max(253);
const tlsName = z
  .string()
  .min(1)
  .max(320)
  .refine((text) => !text.includes('=') || (isSourceAddress(text.split('=')[0] ?? '') && /^[^=]+=[^=]+$/.test(text)), {
    error: 'must be a name, or ADDRESS=NAME with an IP address or a CIDR block',
  });
/** YAML reads +49 without quotes as the number 49. */
const numberPrefix = z.preprocess(
  (value) => (typeof value === 'number' ? `+${String(value)}` : value),
  z.string().regex(/^\+[1-9]\d{0,14}$/, 'must be the beginning of a number in E.164 form, such as +49'),
);
const hostPort = z.string().regex(/^([a-z]+:\/\/)?(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):\d{1,5}$/, 'must be host:port');
/** Providers' names in URLs and headers. */
const plainText = z.string().regex(/^[\x21-\x7e]{1,200}$/, 'must be printable characters without a space');
const speechUrl = z
  .url({ protocol: /^https?$/, message: 'must be an http:// or https:// URL' })
  .refine((text) => !text.includes('?'), 'must have no query');
const MAX_NODES = 16;
const hostPorts = z
  .string()
  .refine(
    (text) => text.split(',').every((part) => hostPort.safeParse(part.trim()).success),
    'must be host:port, or several, separated by commas',
  )
  .refine((text) => text.split(',').length <= MAX_NODES, `must have at most ${String(MAX_NODES)} addresses`)
  .refine((text) => new Set(text.split(',').map((part) => part.trim())).size === text.split(',').length, 'must not repeat an address');

/** False for a host name: its address is unknown until resolved. */
function isPrivateLiteral(url: string | null): boolean {
  if (url === null || !URL.canParse(url)) return false;
  const address = bareHost(new URL(url).hostname);
  return isIP(address) !== 0 && !isPublicAddress(address);
}

function isRedisUrl(text: string): boolean {
  return /^rediss?:\/\/[^\s,/]+/.test(text) && URL.canParse(text);
}

/** Every setting; config/default.yaml holds its meaning and default. */
/** Ports for RTP with RTCP on the next one. */
export function portPairs({ port_min: min, port_max: max }: { readonly port_min: number; readonly port_max: number }): number {
  return Math.floor((max - min + 1) / 2);
}

export const configSchema = z
  .strictObject({
    data_dir: z.string().min(1),
    // As in useradd; no name begins with a dash, which would be an option.
    run_as: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/, 'must be the name of a user')
      .nullable(),
    // rtpengine and Contact need a reachable address, not the wildcard.
    bind_address: z
      .union([address, z.literal('auto')], 'must be an IPv4 or IPv6 address, or auto')
      .refine((text) => text !== '0.0.0.0' && text !== '::', 'must be one address of this machine'),
    public_address: address.nullable(),
    start_timeout_ms: milliseconds,
    ca_file: z.string().min(1).nullable(),
    log: z.strictObject({ level: z.enum(['debug', 'info', 'warn', 'error']) }),
    sip: z
      .strictObject({
        host: host.nullable(),
        contact_port: z.boolean(),
        take_over: z.boolean(),
        tls_port: port.nullable(),
        tcp_port: port.nullable(),
        udp_port: port.nullable(),
        tls_min_version: z.enum(['TLSv1.2', 'TLSv1.3']),
        cert_file: z.string().nullable(),
        key_file: z.string().nullable(),
        certificates: z.array(z.strictObject({ cert_file: z.string().min(1), key_file: z.string().min(1) })).max(1_000),
        tls_ciphers: z
          .string()
          .regex(/^[A-Za-z0-9_:+!@=,-]{1,2000}$/, 'must be OpenSSL cipher names, separated by `:`')
          .nullable(),
        client_certificates: z.enum(['off', 'request', 'require']),
        client_ca_file: z.string().nullable(),
        pass_client_identity: z.boolean(),
        pass_tls: z.boolean(),
        proxy_protocol_from: z.array(z.string().max(64).refine(isSourceAddress, 'must be an IP address or a CIDR block')).max(100),
        verify_peers: z.boolean(),
        tls_names: z.array(tlsName).max(100),
        called_number_from: z.enum(['request-uri', 'to', 'p-called-party-id', 'diversion']),
        refer_status: z.union([z.literal(603), z.literal(405)], 'must be 603 or 405'),
        ringing_after_ms: milliseconds,
        silence_timeout_ms: milliseconds,
        t1_ms: milliseconds,
        t2_ms: milliseconds,
        t4_ms: milliseconds,
        max_head_bytes: count,
        max_header_bytes: count,
        max_headers: count,
        max_body_bytes: count,
        max_transactions: count,
        max_dialogs: count,
        max_memory_mb: count,
        max_application_delay_ms: milliseconds,
        max_requests_per_second_per_source: count,
        drop_above_factor: z.int().min(1).max(1_000),
        // A shorter part would match many legitimate User-Agents.
        scanner_user_agents: z.array(z.string().min(4).max(100)).max(100),
        scanner_action: z.enum(['drop', 'decline']),
        options_user_agents: z.array(z.string().min(1).max(200)).max(100),
        max_connections: count,
        max_connections_per_source: count,
        handshake_timeout_ms: milliseconds,
        message_timeout_ms: milliseconds,
        idle_timeout_ms: milliseconds,
        max_unsent_bytes: count,
        connect_timeout_ms: milliseconds,
        dns_max_ttl_ms: milliseconds,
      })
      .refine((sip) => sip.client_certificates === 'off' || sip.client_ca_file !== null, {
        path: ['client_ca_file'],
        message: 'must be set: sip.client_certificates needs the CA that verifies them',
      }),
    gateway: z.strictObject({
      instance: z
        .string()
        .regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 letters, digits, dots, dashes or underscores')
        .nullable(),
      workers: z.int().min(1).max(64).nullable(),
    }),
    admission: z.strictObject({
      allowed_sources: z.array(z.string().max(64).refine(isSourceAddress, 'must be an IP address or a CIDR block')).max(1_000),
      allowed_identities: z.array(z.string().min(1).max(256)).max(1_000),
      max_calls: count.nullable(),
      max_calls_per_second: z.int().min(1).max(100_000).nullable(),
      max_event_loop_delay_ms: milliseconds,
      max_media_delay_ms: milliseconds,
      max_relay_delay_ms: milliseconds,
      max_cpu_percent: z.int().min(1).max(1_000),
    }),
    drachtio: z.strictObject({
      url: hostPort.nullable(),
      port,
      grace_ms: z.int().min(0).max(600_000),
      max_applications: count,
      // A frame's length has seven digits at most.
      max_frame_bytes: z.int().min(1_024).max(9_999_999),
      max_unsent_bytes: count,
      authenticate_timeout_ms: milliseconds,
      secret: z
        .string()
        .min(1)
        .max(200)
        .regex(/^[^|\s]+$/, 'must not contain spaces or |')
        .nullable(),
    }),
    http: z.strictObject({
      bind_address: address.nullable(),
      port,
      max_requests_per_minute: count,
      max_requests_per_minute_per_address: count,
      max_requests_per_minute_per_key: count,
    }),
    redis: z
      .strictObject({
        url: z
          .string()
          .refine((text) => text.split(',').every(isRedisUrl), 'must be a redis:// or rediss:// URL, or several, separated by commas')
          .nullable(),
        cluster: z.boolean(),
        sentinel_name: z
          .string()
          .regex(/^[\w.-]{1,100}$/, 'must be the name of the primary at the Sentinels: letters, digits, dots, dashes, underscores')
          .nullable(),
        sentinel_password: z.string().min(1).nullable(),
        port,
      })
      .refine(({ url, cluster, sentinel_name: sentinel }) => cluster || sentinel !== null || url?.includes(',') !== true, {
        path: ['url'],
        message: 'has several addresses, which needs redis.cluster or redis.sentinel_name',
      })
      .refine(({ cluster, sentinel_name: sentinel }) => !cluster || sentinel === null, {
        path: ['sentinel_name'],
        message: 'cannot be set with redis.cluster, which has its own failover',
      })
      .refine(({ url, sentinel_name: sentinel }) => sentinel === null || url !== null, {
        path: ['url'],
        message: 'must be set: redis.sentinel_name needs the addresses of the Sentinels',
      })
      .refine(({ url, cluster }) => !cluster || url !== null, {
        path: ['url'],
        message: 'must be set: redis.cluster needs the addresses of your cluster',
      }),
    rtpengine: z
      .strictObject({
        address: hostPorts.nullable(),
        interfaces: z
          .string()
          .regex(/^[\w-]{1,64}, *[\w-]{1,64}$/, "must be two interface names, separated by a comma: the carriers' side, the gateways' side")
          .nullable(),
        on_node_loss: z.enum(['end', 'move']),
        ng_port: port,
        port_min: port,
        port_max: port,
        threads: z.int().min(1).max(64),
        timeout_ms: milliseconds,
      })
      .refine((value) => value.port_max - value.port_min >= 4, {
        path: ['port_max'],
        message: 'must have at least 4 ports (one call)',
      }),
    media: z
      .strictObject({
        agent_leg: z.enum(['rtp', 'srtp']),
        allow_plain: z.boolean(),
        port_min: port,
        port_max: port,
        workers: z.int().min(1).max(32),
        timeout_ms: milliseconds,
      })
      .refine((value) => value.port_max - value.port_min >= 3, {
        path: ['port_max'],
        message: 'must be at least 3 above port_min: two ports, and two for the successor of `trunkline reload`',
      }),
    agents: z
      .strictObject({
        url: agentUrl.nullable(),
        format: z.enum(STREAM_FORMATS),
        bearer_token: z
          .string()
          .regex(/^[\x21-\x7e]{1,4096}$/, 'must be printable characters without a space')
          .nullable(),
        voices: z.array(z.string().regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 printable characters without a space')).max(500),
        on_failure: z.enum(['refuse', 'test-line', 'second-provider', 'sentence', 'transfer']),
        second_provider: z.enum(['openai-realtime', 'deepgram', 'gemini-live', 'elevenlabs']).nullable(),
        failure_sentence: z.string().max(500),
        failure_language: z.string().regex(/^[A-Za-z-]{2,10}$/, 'must be a language code, such as ENG'),
        failure_transfer: z.string().min(1).max(256).nullable(),
        allow_private: z.boolean(),
        connect_timeout_ms: milliseconds,
        reconnect_grace_ms: z.int().min(0).max(600_000),
        ping_interval_ms: milliseconds,
        max_queued_speech_ms: milliseconds,
        max_unsent_audio_ms: milliseconds,
        max_silence_ms: milliseconds,
        end_of_speech_ms: z
          .string()
          .regex(
            /^\d{1,4}=\d{1,5}(?:,\d{1,4}=\d{1,5}){0,9}$/,
            'must be up to 10 pairs of threshold and milliseconds, such as 50=250,200=1000',
          ),
      })
      .refine(({ url, allow_private }) => allow_private || !url?.toLowerCase().startsWith('ws://'), {
        path: ['url'],
        message: 'is without TLS (ws://), which needs agents.allow_private and an address of a private network',
      })
      .refine(({ url, allow_private }) => allow_private || !isPrivateLiteral(url), {
        path: ['url'],
        message: 'is at a private, loopback or reserved address, which needs agents.allow_private',
      })
      .refine(({ on_failure, second_provider }) => on_failure !== 'second-provider' || second_provider !== null, {
        path: ['second_provider'],
        message: 'must be set: agents.on_failure needs it',
      })
      .refine(({ on_failure, failure_transfer }) => on_failure !== 'transfer' || failure_transfer !== null, {
        path: ['failure_transfer'],
        message: 'must be set: agents.on_failure needs it',
      }),
    openai: z.strictObject({
      api_key: plainText.nullable(),
      url: providerUrl(),
      model: plainText,
      turbo_model: plainText,
      transcription_model: plainText,
      speech_url: speechUrl,
      speech_model: plainText,
      speech_voice: plainText,
    }),
    deepgram: z.strictObject({
      api_key: plainText.nullable(),
      url: providerUrl(),
      model: plainText,
      turbo_model: plainText,
      transcription_model: plainText,
      voice: plainText,
      listen_url: providerUrl(),
      speech_url: speechUrl,
    }),
    gemini: z.strictObject({ api_key: plainText.nullable(), url: providerUrl(), model: plainText, turbo_model: plainText }),
    elevenlabs: z.strictObject({
      api_key: plainText.nullable(),
      url: providerUrl(),
      agent_id: plainText.nullable(),
      speech_url: speechUrl,
      speech_model: plainText,
      speech_voice: plainText,
    }),
    analysis: z.strictObject({ api_key: plainText.nullable(), url: z.url({ protocol: /^https?$/ }), model: plainText }),
    tools: z.strictObject({ allow_private: z.boolean() }),
    trunks: z.strictObject({
      allow_private: z.boolean(),
      trusted_hosts: z.array(z.string().min(1).max(253)),
    }),
    webhooks: z.strictObject({
      allow_private: z.boolean(),
      timeout_ms: z.int().min(1).max(60_000),
      retry_first_ms: milliseconds,
      retry_max_ms: milliseconds,
      give_up_ms: z.int().min(0).max(604_800_000),
    }),
    stir: z
      .strictObject({
        roots_file: z.string().min(1).nullable(),
        refuse: z.array(z.enum(REFUSABLE_VERDICTS)).max(REFUSABLE_VERDICTS.length),
        max_age_ms: z.int().min(1_000).max(3_600_000),
        certificate_timeout_ms: z.int().min(100).max(10_000),
        allow_private: z.boolean(),
      })
      .refine((stir) => stir.refuse.length === 0 || stir.roots_file !== null, {
        path: ['roots_file'],
        message: 'must be set: stir.refuse needs the roots that verify Identity headers',
      }),
    batches: z.strictObject({
      retention_days: z.int().min(1).max(3_650),
      max_entries: z.int().min(1).max(1_000_000),
      confirmed_by_replicas: z.int().min(0).max(5).nullable(),
    }),
    metrics: z
      .strictObject({
        allowed_sources: z.array(z.string().max(64).refine(isSourceAddress, 'must be an IP address or a CIDR block')).max(100),
        bearer_token: z
          .string()
          .regex(/^[\x21-\x7e]{16,256}$/, 'must be 16 to 256 printable characters without a space')
          .nullable(),
        sip_server_port: port.nullable(),
      })
      .refine(({ allowed_sources: sources, bearer_token: token }) => sources.length > 0 || token !== null, {
        path: ['allowed_sources'],
        message: 'is empty, so every address could read the metrics: list addresses, or set metrics.bearer_token',
      }),
    telemetry: z.strictObject({
      otlp_url: z
        .string()
        .refine((text) => /^https?:\/\//i.test(text) && URL.canParse(text), 'must be an http:// or https:// URL')
        .nullable(),
      sample_ratio: z.number().min(0).max(1),
    }),
    hep: z.strictObject({
      address: hostPort.nullable(),
      capture_id: z.int().min(0).max(4_294_967_295),
      password: z.string().min(1).max(200).nullable(),
    }),
    calls: z.strictObject({
      max_duration_minutes: z.int().min(1).max(1_440),
      transfer_hosts: z.array(z.string().min(1).max(253)).max(100),
      transfer_prefixes: z.array(numberPrefix).max(1_000),
      drain_ms: z.int().min(0).max(3_600_000),
      handover_ms: z.int().min(0).max(86_400_000),
      park_ms: z.int().min(0).max(86_400_000),
      retention_days: z.int().min(1).max(3_650),
      trace: z.boolean(),
      trace_retention_days: z.int().min(1).max(3_650),
      max_stored_mb: z.int().min(1).max(1_000_000),
      archive_days: z.int().min(0).max(3_650),
      stale_route_ms: z.int().min(0).max(86_400_000),
    }),
  })
  .refine(({ sip, redis }) => !sip.take_over || redis.url !== null, {
    path: ['sip', 'take_over'],
    message: 'needs redis.url: a Redis that several hosts share',
  })
  .refine(({ gateway, media }) => 2 * (gateway.workers ?? 1) <= portPairs(media), {
    path: ['gateway', 'workers'],
    message: 'needs 4 ports for each process between media.port_min and media.port_max',
  })
  .refine(
    ({ media, rtpengine }) => rtpengine.address !== null || rtpengine.port_max < media.port_min || media.port_max < rtpengine.port_min,
    {
      path: ['media', 'port_min'],
      message: 'media.port_min to port_max must not overlap rtpengine.port_min to port_max',
    },
  );

export type Config = z.infer<typeof configSchema>;

/** Settings whose values are never printed. */
export const SECRET_SETTINGS: readonly string[] = [
  'drachtio.secret',
  'redis.url',
  'redis.sentinel_password',
  'agents.url',
  'agents.bearer_token',
  'openai.api_key',
  'deepgram.api_key',
  'gemini.api_key',
  'elevenlabs.api_key',
  'analysis.api_key',
  'metrics.bearer_token',
  'telemetry.otlp_url',
  'hep.password',
];

/** How many replicas of Redis confirm an attempt of a batch: unless set, one where there are replicas for sure. */
export function confirmingReplicas({ batches, redis }: Pick<Config, 'batches' | 'redis'>): number {
  return batches.confirmed_by_replicas ?? (redis.sentinel_name === null ? 0 : 1);
}

/** The Sentinels' part of the Redis settings; `null`: the URL is Redis's own. */
export function sentinelOf({
  sentinel_name: name,
  sentinel_password: password,
}: Config['redis']): { name: string; password: string | null } | null {
  return name === null ? null : { name, password };
}

/** Address of the control API, the console and the metrics. */
export function httpAddress({ bind_address: bind, http }: Pick<Config, 'bind_address' | 'http'>): string {
  return http.bind_address ?? bind;
}
