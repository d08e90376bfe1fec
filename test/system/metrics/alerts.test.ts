import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { parse as parseYaml, stringify as toYaml } from 'yaml';
import { beginGateway } from '../../../src/gateway/wiring/gateway-metrics.js';
import { exposition, Metrics } from '../../../src/observability/metrics/registry.js';
import { parseExposition, type Sample } from '../../support/prometheus-text.js';

// Prometheus' own promtool on the rules that we ship.

const RULES = fileURLToPath(new URL('../../../config/prometheus/alerts.yaml', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'trunkline-alerts-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

interface Series {
  readonly series: string;
  readonly values: string;
}

const INSTANCE = 'gw:8080';
const NODE = '127.0.0.1:2223';

/** For half an hour this, then that. */
const gauge = (bad: number, good: number): string => `${String(bad)}x30 ${String(good)}x90`;
/** So many a minute for half an hour, then none. */
const counter = (perMinute: number): string => `0+${String(perMinute)}x30 ${String(30 * perMinute)}x90`;
/** So many at once in the 19th minute. */
const jump = (count: number): string => `0x18 ${String(count)}x102`;

interface Case {
  /** One sample a minute. */
  readonly series: Readonly<Record<string, string>>;
  /** Minutes: it stands; it does not any more. Default: 20, 90. */
  readonly at?: number;
  readonly clearAt?: number;
  /** What the same series raise besides. */
  readonly besides?: readonly string[];
}

const REFUSED_BY_US = 'trunkline_calls_refused_total{reason="OVERLOADED",fault="gateway"}';
const CANCELLED = 'trunkline_calls_refused_total{reason="CALLER_CANCELLED",fault="caller"}';
const ANSWERED = 'trunkline_call_answer_seconds_count';
const CONNECTED = 'trunkline_agent_connects_total{agent="stream",outcome="connected"}';
const NOT_CONNECTED = 'trunkline_agent_connects_total{agent="stream",outcome="failed"}';

/** Each alert with series that raise it, and end. */
const RAISED_BY: Readonly<Record<string, Case>> = {
  TrunklineDown: { series: { 'up{job="trunkline"}': gauge(0, 1) } },
  TrunklineProcessDown: { series: { trunkline_process_up: gauge(0, 1) } },
  TrunklineProcessDied: { series: { 'trunkline_child_deaths_total{child="gateway"}': jump(1) } },
  TrunklineProcessDiesAgain: {
    series: { 'trunkline_child_deaths_total{child="gateway"}': counter(2) },
    besides: ['TrunklineProcessDied'],
  },
  TrunklineSipServerGone: { series: { trunkline_sip_server_connected: gauge(0, 1) } },
  TrunklineTakesNoCalls: { series: { trunkline_taking_calls: gauge(0, 1) } },
  TrunklineNoCallAnswered: { series: { [CANCELLED]: counter(5), [REFUSED_BY_US]: '0x120', [ANSWERED]: '0x120' } },
  TrunklineRefusalsByOurFault: { series: { [REFUSED_BY_US]: counter(5), [ANSWERED]: counter(100) } },
  TrunklineCallsLost: { series: { 'trunkline_calls_ended_total{reason="MEDIA_LOST",fault="gateway"}': jump(300) } },
  TrunklineAnswerSlow: {
    series: {
      'trunkline_call_answer_seconds_bucket{le="2"}': '0x120',
      'trunkline_call_answer_seconds_bucket{le="5"}': counter(9),
      'trunkline_call_answer_seconds_bucket{le="+Inf"}': counter(9),
      [ANSWERED]: counter(9),
    },
  },
  TrunklineRelayDown: { series: { [`trunkline_relay_up{node="${NODE}"}`]: gauge(0, 1) } },
  TrunklineRelayFails: {
    series: { [`trunkline_relay_command_failures_total{node="${NODE}",command="offer",cause="timeout"}`]: counter(60) },
  },
  TrunklineRedisAway: { series: { trunkline_redis_up: gauge(0, 1) } },
  TrunklineRedisTakesNoWrites: { series: { trunkline_redis_up: '1x120', trunkline_redis_writable: gauge(0, 1) } },
  TrunklineRedisNearlyFull: { series: { trunkline_redis_memory_bytes: gauge(95, 50), trunkline_redis_memory_limit_bytes: '100x120' } },
  TrunklineRedisSlow: { series: { trunkline_redis_write_seconds: gauge(0.2, 0.01) } },
  TrunklineRecordsWait: { series: { trunkline_redis_waiting_records: gauge(600, 0) } },
  TrunklineStoredCallsFull: { series: { 'trunkline_stored_calls_evicted_total{kind="record"}': jump(7) } },
  TrunklineMediaLoss: {
    series: { trunkline_media_packets_lost_total: counter(1_000), trunkline_media_packets_received_total: counter(30_000) },
  },
  TrunklineQualityLow: {
    series: {
      'trunkline_call_mos_bucket{direction="to_carrier",le="2"}': counter(5),
      'trunkline_call_mos_bucket{direction="to_carrier",le="+Inf"}': counter(5),
      'trunkline_call_mos_count{direction="to_carrier"}': counter(5),
    },
  },
  TrunklineKernelDrops: { series: { trunkline_media_kernel_drops_total: jump(7) } },
  TrunklineSrtpFailures: { series: { trunkline_media_srtp_failures_total: counter(1_000) } },
  TrunklineAgentsFail: { series: { [NOT_CONNECTED]: counter(1), [CONNECTED]: counter(9) } },
  TrunklineAgentsDown: { series: { [NOT_CONNECTED]: counter(9), [CONNECTED]: counter(1) }, besides: ['TrunklineAgentsFail'] },
  TrunklineEventLoopLate: { series: { 'trunkline_event_loop_delay_seconds{percentile="99"}': gauge(0.3, 0) } },
  TrunklineMediaLate: { series: { trunkline_media_delay_seconds: gauge(0.06, 0) } },
  TrunklineMediaArrivesLate: { series: { trunkline_media_arrival_delay_seconds: gauge(0.06, 0) } },
  TrunklineCapacity: { series: { trunkline_calls_in_progress: gauge(90, 10), trunkline_call_room: gauge(10, 90) } },
  TrunklineFileHandles: { series: { trunkline_process_open_files: gauge(900, 100), trunkline_process_max_files: '1024x120' } },
  TrunklineLogLinesDropped: { series: { trunkline_log_lines_dropped_total: jump(12) } },
  TrunklineCertificateEnds: {
    series: { 'trunkline_certificate_end_seconds{certificate="sip.cert_file"}': '86400x85 9000000x35' },
    at: 80,
    clearAt: 100,
  },
  TrunklineCertificateEnded: {
    series: { 'trunkline_certificate_end_seconds{certificate="sip.cert_file"}': '600x30 9000000x90' },
  },
  TrunklineJournalFails: { series: { trunkline_sip_journal_failures_total: jump(1) } },
  TrunklineSipRefused: { series: { 'trunkline_sip_refused_total{cause="memory"}': jump(3) } },
  TrunklineMediaWorkerDied: { series: { trunkline_media_worker_restarts_total: jump(1) } },
  TrunklineSpansDropped: { series: { 'trunkline_trace_spans_total{outcome="dropped"}': counter(9) } },
  TrunklineDeadLetters: { series: { trunkline_webhook_dead_letters_total: jump(1) } },
  TrunklineWebhooksWait: { series: { trunkline_webhooks_waiting: gauge(20_000, 0) } },
};

/** Alerts that stand at `minute`, by promtool; an empty list where none does. */
function raised(series: readonly Series[], minute: number): readonly string[] {
  const names = Object.keys(RAISED_BY);
  const file = join(directory, 'test.yaml');
  // promtool says what it got where nothing was expected.
  const alerts = names.map((alertname) => ({ eval_time: `${String(minute)}m`, alertname, exp_alerts: [] }));
  writeFileSync(file, toYaml({ rule_files: [RULES], tests: [{ interval: '1m', input_series: series, alert_rule_test: alerts }] }));
  try {
    execFileSync('promtool', ['test', 'rules', file], { encoding: 'utf8', stdio: 'pipe' });
    return [];
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    const told = `${stdout}${stderr}`;
    const found = names.filter((name) => told.includes(`alertname: ${name},`) || told.includes(`alertname:${name},`));
    if (found.length === 0) throw new Error(told, { cause: error });
    return found;
  }
}

const seriesOf = (samples: Readonly<Record<string, string>>): readonly Series[] =>
  Object.entries(samples).map(([name, values]) => ({ series: withInstance(name), values }));

function withInstance(name: string): string {
  const labels = `instance="${INSTANCE}",process="gateway"`;
  return name.includes('{') ? name.replace('{', `{${labels},`) : `${name}{${labels}}`;
}

describe('the alert rules', () => {
  it('pass promtool check', () => {
    expect(execFileSync('promtool', ['check', 'rules', RULES], { encoding: 'utf8' })).toContain('SUCCESS');
  });

  it('each have a case in this file', () => {
    const { groups } = parseYaml(readFileSync(RULES, 'utf8')) as { groups: { rules: { alert: string }[] }[] };
    expect(Object.keys(RAISED_BY).sort()).toEqual(groups.flatMap(({ rules }) => rules.map(({ alert }) => alert)).sort());
  });

  it.each(Object.entries(RAISED_BY))(
    'include %s, which its cause raises and whose end clears it',
    (alert, { series, at, clearAt, besides }) => {
      const given = seriesOf(series);
      expect([...raised(given, at ?? 20)].sort()).toEqual([alert, ...(besides ?? [])].sort());
      expect(raised(given, clearAt ?? 90)).toEqual([]);
    },
  );
});

/** 50 INVITEs a second to numbers that nobody has, some beyond the limits. */
const SCANNER: Readonly<Record<string, string>> = {
  trunkline_calls_begun_total: '0+3000x120',
  'trunkline_calls_refused_total{reason="NUMBER_NOT_ATTACHED",fault="customer"}': '0+3000x120',
  'trunkline_sip_refused_total{cause="rate"}': '0+500x120',
  'trunkline_sip_refused_total{cause="connections_per_source"}': '0+20x120',
  'trunkline_sip_refused_total{cause="stranger"}': '0+100x120',
  'trunkline_sip_dropped_total{cause="scanner"}': '0+1000x120',
};

describe('the alerts beside a scanner', () => {
  it('stay clear when the scanner alone calls', () => {
    expect(raised(seriesOf({ ...SCANNER, [ANSWERED]: '0x120', [CANCELLED]: '0x120', [REFUSED_BY_US]: '0x120' }), 40)).toEqual([]);
  });

  it.each([
    ['by the gateway', { [REFUSED_BY_US]: jump(24) }, ['TrunklineRefusalsByOurFault']],
    ['by their agents', { [NOT_CONNECTED]: jump(24), [CONNECTED]: jump(4) }, ['TrunklineAgentsDown', 'TrunklineAgentsFail']],
  ])('rise when 24 of 28 other calls fail %s', (_by, failed, alerts) => {
    expect([...raised(seriesOf({ ...SCANNER, [ANSWERED]: jump(4), ...failed }), 24)].sort()).toEqual(alerts);
  });
});

describe('the alerts at two calls an hour', () => {
  const TWO = '0x14 1x30 2x75';

  it.each([16, 20, 26, 46, 50, 56])('stay clear when both fail, in minute %i', (minute) => {
    const series = {
      trunkline_calls_begun_total: TWO,
      [REFUSED_BY_US]: TWO,
      [CANCELLED]: TWO,
      [NOT_CONNECTED]: TWO,
      [CONNECTED]: '0x120',
      [ANSWERED]: '0x120',
      'trunkline_calls_ended_total{reason="AGENT_LOST",fault="agent"}': TWO,
      'trunkline_call_mos_bucket{direction="to_carrier",le="2"}': TWO,
      'trunkline_call_mos_bucket{direction="to_carrier",le="+Inf"}': TWO,
      'trunkline_call_mos_count{direction="to_carrier"}': TWO,
      trunkline_media_packets_lost_total: '0x14 400x30 800x75',
      trunkline_media_packets_received_total: '0x14 3000x30 6000x75',
    };
    expect(raised(seriesOf(series), minute)).toEqual([]);
  });
});

describe('the alerts of a gateway that just started', () => {
  /** What Prometheus sees that scrapes it once before and then after `happens`. */
  async function scraped(happens: (metrics: Metrics) => void): Promise<Series[]> {
    const metrics = new Metrics('gateway');
    beginGateway(metrics);
    let begun = 0;
    metrics.collect((figures) => figures.set('trunkline_calls_begun_total', {}, begun));
    const before = parseExposition(await exposition([await metrics.snapshot()])).samples;
    happens(metrics);
    begun = 300;
    const after = parseExposition(await exposition([await metrics.snapshot()])).samples;
    const earlier = new Map(before.map((sample) => [identity(sample), sample.value]));
    return after.map((sample) => {
      const was = earlier.get(identity(sample));
      return { series: identity(sample), values: `${was === undefined ? '_x15' : `${String(was)}x15`} ${String(sample.value)}x30` };
    });
  }

  const identity = ({ name, labels }: Sample): string =>
    `${name}{${Object.entries({ ...labels, instance: INSTANCE })
      .map(([label, value]) => `${label}="${value}"`)
      .join(',')}}`;

  it.each<[string, (metrics: Metrics) => void]>([
    ['TrunklineCallsLost', (metrics) => metrics.count('trunkline_calls_ended_total', { reason: 'MEDIA_LOST', fault: 'gateway' }, 300)],
    ['TrunklineDeadLetters', (metrics) => metrics.count('trunkline_webhook_dead_letters_total', {})],
    [
      'TrunklineNoCallAnswered',
      (metrics) => metrics.count('trunkline_calls_refused_total', { reason: 'CALLER_CANCELLED', fault: 'caller' }, 300),
    ],
  ])('include %s when its cause comes between the first two scrapes', async (alert, happens) => {
    expect(raised(await scraped(happens), 21)).toContain(alert);
  });
});
