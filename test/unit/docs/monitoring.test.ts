import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { METRICS, type MetricDefinition } from '../../../src/observability/metrics/catalog.js';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string; readonly action: string; readonly runbook_url: string };
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly targets?: readonly { readonly expr: string }[];
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
}

const read = (file: string): string => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');
const { groups } = parseYaml(read('config/prometheus/alerts.yaml')) as { readonly groups: readonly { readonly rules: readonly Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const { panels } = JSON.parse(read('config/grafana/trunkline.json')) as { readonly panels: readonly Panel[] };
const expressions = [
  ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
];
const known: Readonly<Record<string, MetricDefinition>> = METRICS;

function definitionOf(name: string): MetricDefinition | undefined {
  const family = known[name.replace(/_(?:bucket|sum|count)$/, '')];
  return known[name] ?? (family?.type === 'histogram' ? family : undefined);
}

describe('the expressions of the alert rules and the dashboard', () => {
  it.each(expressions)('use existing metrics and labels, and balanced brackets: %s', (_name, expr) => {
    const metrics = expr.match(/\btrunkline_\w+/g) ?? [];
    expect(metrics.length + (expr.startsWith('up{') ? 1 : 0)).toBeGreaterThan(0);
    expect(metrics.filter((name) => definitionOf(name) === undefined)).toEqual([]);
    for (const [, name = '', matchers = ''] of expr.matchAll(/\b(trunkline_\w+)\{([^}]*)\}/g)) {
      const labels = [...matchers.matchAll(/(\w+)(?:=~|!=|!~|=)"/g)].map(([, label]) => label ?? '');
      const allowed = ['instance', 'process', ...Object.keys(definitionOf(name)?.labels ?? {})];
      expect([name, labels.filter((label) => !allowed.includes(label))]).toEqual([name, []]);
    }
    const open = expr.replace(/"[^"]*"/g, '').replace(/[^(){}[\]]/g, '');
    let rest = open;
    for (let before = ''; before !== rest;) [before, rest] = [rest, rest.replace(/\(\)|\{\}|\[\]/g, '')];
    expect(rest).toBe('');
  });

  it.each(expressions)('use the growth of counters, and never that of gauges: %s', (_name, expr) => {
    for (const [, name = ''] of expr.matchAll(/(?:rate|increase)\((trunkline_\w+)/g)) expect(definitionOf(name)?.type).not.toBe('gauge');
    const bare = expr.replace(/(?:rate|increase)\(trunkline_\w+/g, '');
    for (const name of bare.match(/\btrunkline_\w+/g) ?? []) expect([name, definitionOf(name)?.type]).toEqual([name, 'gauge']);
  });
});

describe('the alert rules', () => {
  it.each(rules.map((rule) => [rule.alert, rule] as const))('explain for %s what it is, what it means, and what to do', (name, rule) => {
    expect(name).toMatch(/^Trunkline[A-Za-z]+$/);
    expect(rule.for).toMatch(/^\d+[smh]$/);
    expect(['critical', 'warning']).toContain(rule.labels.severity);
    for (const text of Object.values(rule.annotations)) expect(text.length).toBeGreaterThan(10);
  });

  it('have names of their own', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });
});

describe('the runbook', () => {
  const entries = read('docs/runbook.md')
    .split(/^#{2,3} /m)
    .slice(1)
    .map((entry) => ({ title: entry.slice(0, entry.indexOf('\n')), entry }));
  const ofAlerts = entries.filter(({ title }) => title.startsWith('Trunkline'));

  it('has one entry for each alert and no other, and each alert leads to its entry', () => {
    expect(ofAlerts.map(({ title }) => title).toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
    expect(rules.map(({ annotations }) => annotations.runbook_url)).toEqual(
      rules.map(({ alert }) => `docs/runbook.md#${alert.toLowerCase()}`),
    );
  });

  it('states in each entry what you see, what it means, how to decide and what to do', () => {
    const symptoms = entries
      .slice(entries.findIndex(({ title }) => title === 'Symptoms') + 1)
      .filter(({ title }) => !title.startsWith('Alerts: '));
    expect(symptoms.length).toBeGreaterThanOrEqual(rules.length + 11);
    for (const { title, entry } of symptoms)
      expect([title, ...[...entry.matchAll(/^- \*\*([\w ]+)\*\*/gm)].map(([, part]) => part)]).toEqual([
        title,
        ...['You see', 'It means', 'Decide', 'Do'],
      ]);
  });
});

describe('the dashboard', () => {
  it('describes each panel', () => {
    const described = panels.filter(({ type }) => type !== 'row').map(({ title, description }) => [title, description]);
    expect(described.filter(([, description]) => !/^[A-Z0-9].{20,}\.$/.test(description ?? ''))).toEqual([]);
  });

  it('has its rows, panels with ids of their own, and none over another', () => {
    const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title);
    expect(rows).toEqual(['Traffic', 'Failures', 'Media quality', 'Relays', 'Agents', 'API, webhooks, Redis', 'Processes']);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${String(x + (at % w))},${String(y + Math.floor(at / w))}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBeLessThanOrEqual(24);
  });
});
