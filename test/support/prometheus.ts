import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse as parseYaml, stringify as toYaml } from 'yaml';
import { ownedChild, whenGone } from '../../src/loadtest/run/owned-child.js';
import { until } from './carrier-call.js';
import { freePorts } from './ports.js';

const CONFIG = 'config/prometheus';

interface Alerts {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly for: string; readonly labels: Labels }[] }[];
}

type Labels = Readonly<Record<string, string>>;

export interface EvaluatedRule {
  readonly name: string;
  readonly health: string;
  readonly lastError?: string;
}

/**
 * A real Prometheus with the files that operators get, but for its speed: it scrapes each second, and an alert fires as soon as its expression
 * holds. Tests of promtool hold the times.
 */
export class RunningPrometheus {
  private constructor(
    private readonly url: string,
    private readonly directory: string,
    private readonly child: ChildProcess,
    /** Names of the alerts that wake somebody up. */
    readonly critical: readonly string[],
  ) {}

  /** @param target host:port of the control API */
  static async start(target: string): Promise<RunningPrometheus> {
    const directory = mkdtempSync(join(tmpdir(), 'trunkline-prometheus-'));
    const config = parseYaml(readFileSync(join(CONFIG, 'prometheus.yml'), 'utf8')) as {
      readonly scrape_configs: readonly [{ readonly job_name: string }];
    };
    const { groups } = parseYaml(readFileSync(join(CONFIG, 'alerts.yaml'), 'utf8')) as Alerts;
    const [job] = config.scrape_configs;
    const files = {
      'prometheus.yml': {
        ...config,
        global: { scrape_interval: '1s', evaluation_interval: '1s' },
        scrape_configs: [{ ...job, static_configs: [{ targets: [target] }] }],
      },
      'alerts.yaml': { groups: groups.map((group) => ({ ...group, rules: group.rules.map((rule) => ({ ...rule, for: '0s' })) })) },
    };
    for (const [name, content] of Object.entries(files)) writeFileSync(join(directory, name), toYaml(content));
    const [port = 0] = await freePorts(1);
    const address = `127.0.0.1:${String(port)}`;
    const child = ownedChild(
      'prometheus',
      [
        `--config.file=${join(directory, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(directory, 'data')}`,
        `--web.listen-address=${address}`,
      ],
      { stdio: 'ignore' },
    );
    const rules = groups.flatMap((group) => group.rules);
    const critical = rules.filter(({ labels }) => labels['severity'] === 'critical').map(({ alert }) => alert);
    const prometheus = new RunningPrometheus(`http://${address}`, directory, child, critical);
    await until(async () => (await prometheus.query('up == 1').catch(() => [])).length > 0, 'Prometheus does not scrape');
    return prometheus;
  }

  /** The series that the expression has now. */
  async query(expression: string): Promise<readonly { readonly metric: Labels }[]> {
    const { result } = await this.#ask<{ readonly result: readonly { readonly metric: Labels }[] }>(
      `/api/v1/query?query=${encodeURIComponent(expression)}`,
    );
    return result;
  }

  async rules(): Promise<readonly EvaluatedRule[]> {
    const { groups } = await this.#ask<{ readonly groups: readonly { readonly rules: readonly EvaluatedRule[] }[] }>('/api/v1/rules');
    return groups.flatMap(({ rules }) => rules);
  }

  /** Those that have fired since it was started. */
  async fired(): Promise<readonly string[]> {
    const series = await this.query('max_over_time(ALERTS{alertstate="firing"}[1h])');
    return [...new Set(series.map(({ metric }) => metric['alertname'] ?? ''))];
  }

  async stop(): Promise<void> {
    this.child.kill('SIGTERM');
    await whenGone(this.child);
    rmSync(this.directory, { recursive: true, force: true });
  }

  async #ask<T>(path: string): Promise<T> {
    const { data } = (await (await fetch(`${this.url}${path}`)).json()) as { readonly data: T };
    return data;
  }
}
