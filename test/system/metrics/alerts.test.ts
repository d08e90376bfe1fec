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

/** Each alert with series, one sample a minute, that must raise it at the 20th minute. */
const RAISED_BY: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  TrunklineDown: { 'up{job="trunkline"}': '0x30' },
  TrunklineProcessDown: { trunkline_process_up: '0x30' },
  TrunklineSipServerGone: { trunkline_sip_server_connected: '0x30' },
  TrunklineTakesNoCalls: { trunkline_taking_calls: '0x30' },
  TrunklineNoCallAnswered: { trunkline_calls_begun_total: '0+5x30', trunkline_call_answer_seconds_count: '0x30' },
  TrunklineRefusalsByOurFault: {
    'trunkline_calls_refused_total{reason="OVERLOADED",fault="gateway"}': '0+5x30',
    trunkline_calls_begun_total: '0+100x30',
  },
  TrunklineCallsLost: { 'trunkline_calls_ended_total{reason="MEDIA_LOST",fault="gateway"}': '0x15 300x15' },
  TrunklineAnswerSlow: {
    'trunkline_call_answer_seconds_bucket{le="2"}': '0x30',
    'trunkline_call_answer_seconds_bucket{le="5"}': '0+9x30',
    'trunkline_call_answer_seconds_bucket{le="+Inf"}': '0+9x30',
  },
  TrunklineRelayDown: { [`trunkline_relay_up{node="${NODE}"}`]: '0x30' },
  TrunklineRelayFails: { [`trunkline_relay_command_failures_total{node="${NODE}",command="offer",cause="timeout"}`]: '0+60x30' },
  TrunklineRedisAway: { trunkline_redis_up: '0x30' },
  TrunklineRedisTakesNoWrites: { trunkline_redis_up: '1x30', trunkline_redis_writable: '0x30' },
  TrunklineRedisNearlyFull: { trunkline_redis_memory_bytes: '95x30', trunkline_redis_memory_limit_bytes: '100x30' },
  TrunklineRedisSlow: { trunkline_redis_write_seconds: '0.2x30' },
  TrunklineRecordsWait: { trunkline_redis_waiting_records: '600x30' },
  TrunklineStoredCallsFull: { 'trunkline_stored_calls_evicted_total{kind="record"}': '0x18 7x15' },
  TrunklineMediaLoss: { trunkline_media_packets_lost_total: '0+200x30', trunkline_media_packets_received_total: '0+3000x30' },
  TrunklineQualityLow: {
    'trunkline_call_mos_bucket{direction="to_carrier",le="2"}': '0+5x30',
    'trunkline_call_mos_bucket{direction="to_carrier",le="+Inf"}': '0+5x30',
  },
  TrunklineKernelDrops: { trunkline_media_kernel_drops_total: '0x18 7x15' },
  TrunklineSrtpFailures: { trunkline_media_srtp_failures_total: '0+1000x30' },
  TrunklineAgentsFail: {
    'trunkline_agent_connects_total{agent="stream",outcome="failed"}': '0+1x30',
    'trunkline_agent_connects_total{agent="stream",outcome="connected"}': '0+9x30',
  },
  TrunklineEventLoopLate: { 'trunkline_event_loop_delay_seconds{percentile="99"}': '0.3x30' },
  TrunklineMediaLate: { trunkline_media_delay_seconds: '0.06x30' },
  TrunklineMediaArrivesLate: { trunkline_media_arrival_delay_seconds: '0.06x30' },
  TrunklineCapacity: { trunkline_calls_in_progress: '90x30', trunkline_call_room: '10x30' },
  TrunklineFileHandles: { trunkline_process_open_files: '900x30', trunkline_process_max_files: '1024x30' },
  TrunklineLogLinesDropped: { trunkline_log_lines_dropped_total: '0x18 12x15' },
  TrunklineCertificateEnds: { 'trunkline_certificate_end_seconds{certificate="sip.cert_file"}': '86400x90' },
  TrunklineDeadLetters: { trunkline_webhook_dead_letters_total: '0x18 1x15' },
  TrunklineWebhooksWait: { trunkline_webhooks_waiting: '20000x30' },
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

function withInstance(name: string): string {
  const labels = `instance="${INSTANCE}",process="gateway"`;
  return name.includes('{') ? name.replace('{', `{${labels},`) : `${name}{${labels}}`;
}

describe('the alert rules', () => {
  it('are rules by promtool', () => {
    expect(execFileSync('promtool', ['check', 'rules', RULES], { encoding: 'utf8' })).toContain('SUCCESS');
  });

  it('have each a case here', () => {
    const { groups } = parseYaml(readFileSync(RULES, 'utf8')) as { groups: { rules: { alert: string }[] }[] };
    expect(Object.keys(RAISED_BY).sort()).toEqual(groups.flatMap(({ rules }) => rules.map(({ alert }) => alert)).sort());
  });

  it.each(Object.entries(RAISED_BY))('%s is raised by what it is for', (alert, samples) => {
    const series = Object.entries(samples).map(([name, values]) => ({ series: withInstance(name), values }));
    expect(raised(series, alert === 'TrunklineCertificateEnds' ? 80 : 20)).toEqual([alert]);
  });
});

describe('a gateway that just started', () => {
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
    ['TrunklineNoCallAnswered', () => undefined],
  ])('%s is raised by what happens between its first two scrapes', async (alert, happens) => {
    expect(raised(await scraped(happens), 21)).toContain(alert);
  });
});
