import { METRICS, type MetricDefinition } from '../../src/observability/metrics/catalog.js';
import { table } from './table.js';

/** Every metric of src/observability/metrics/catalog.ts. */
export function metricsTable(): string {
  const rows = Object.entries<MetricDefinition>(METRICS).map(([name, { type, labels = {}, help, buckets }]) => [
    `\`${name}\``,
    type,
    Object.entries(labels)
      .map(([label, bound]) => `\`${label}\`: ${typeof bound === 'string' ? bound : bound.map((value) => `\`${value}\``).join(', ')}`)
      .join('; ') || '—',
    buckets === undefined ? help : `${help} Buckets to ${String(buckets.at(-1))}.`,
  ]);
  return table(['metric', 'type', 'labels and their values', 'meaning'], rows);
}
