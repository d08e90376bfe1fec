import { AggregatorRegistry, Counter, Gauge, Histogram, Registry, type MetricObjectWithValues, type MetricValue } from 'prom-client';
import { METRICS, type MetricCounts, type MetricDefinition, type MetricFigures, type MetricName } from './catalog.js';

// The only file that imports prom-client.

/** The metrics of one process, in the form that processes exchange. What stands in it twice is the sum. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

/** Adds figures that other objects hold, at each scrape. */
export type Collector = (figures: MetricFigures) => void | Promise<void>;

export const METRICS_CONTENT_TYPE: string = Registry.PROMETHEUS_CONTENT_TYPE;

type Labels = Readonly<Record<string, string>>;

/** All metrics of this process. */
export class Metrics implements MetricCounts {
  readonly #counted: MetricObjects;
  readonly #collectors: Collector[] = [];
  #earlier: MetricsSnapshot = [];

  constructor(readonly process: string) {
    this.#counted = new MetricObjects(process);
  }

  /**
   * Creates at 0 every series of a counter or histogram whose labels are `known` or have a closed list of values: Prometheus sees an
   * increase only after a first sample.
   */
  begin(known: Labels = {}): void {
    for (const [name, definition] of Object.entries<MetricDefinition>(METRICS) as [MetricName, MetricDefinition][]) {
      const { type, isCounted } = definition;
      if (type !== 'histogram' && isCounted !== true) continue;
      // Each series is created once: by the call that has all its labels and no others.
      if (!Object.keys(known).every((label) => definition.labels?.[label] !== undefined)) continue;
      for (const labels of seriesOf(definition, known))
        if (type === 'histogram') this.#counted.histogram(name).zero(labels);
        else this.#counted.counter(name).inc(labels, 0);
    }
  }

  /** Goes on from what an earlier process of this name counted (`left-counts.ts`). */
  goOnFrom(counts: MetricsSnapshot): void {
    this.#earlier = counts;
  }

  collect(collector: Collector): void {
    this.#collectors.push(collector);
  }

  count(name: MetricName, labels: Labels, by = 1): void {
    this.#counted.counter(name).inc(labels, by);
  }

  observe(name: MetricName, labels: Labels, value: number): void {
    this.#counted.histogram(name).observe(labels, value);
  }

  /** All figures as they are now. A collector that fails leaves its figures out. */
  async snapshot(): Promise<MetricsSnapshot> {
    // Collected anew each time, so that concurrent scrapes do not see half of each other's figures.
    const collected = new MetricObjects(this.process);
    await Promise.allSettled(this.#collectors.map(async (collector) => collector(collected)));
    return [...this.#earlier, ...(await this.#counted.snapshot()), ...(await collected.snapshot())];
  }
}

/** Every set of labels of a metric; none if a label's values are neither known nor a closed list. */
function seriesOf({ labels = {} }: MetricDefinition, known: Labels): readonly Labels[] {
  return Object.entries(labels).reduce<readonly Labels[]>(
    (sets, [label, bound]) => {
      const given = known[label];
      const values = given === undefined ? bound : [given];
      return typeof values === 'string' ? [] : sets.flatMap((set) => values.map((value) => ({ ...set, [label]: value })));
    },
    [{}],
  );
}

/** prom-client's objects, created at first use. */
class MetricObjects implements MetricFigures {
  readonly #registry = new Registry();
  readonly #counters = new Map<MetricName, Counter>();
  readonly #gauges = new Map<MetricName, Gauge>();
  readonly #histograms = new Map<MetricName, Histogram>();

  constructor(process: string) {
    this.#registry.setDefaultLabels({ process });
  }

  counter(name: MetricName): Counter {
    return kept(this.#counters, name, () => new Counter(this.#options(name)));
  }

  histogram(name: MetricName): Histogram {
    return kept(this.#histograms, name, () => new Histogram(this.#options(name)));
  }

  set(name: MetricName, labels: Labels, value: number): void {
    if (METRICS[name].type === 'counter') this.counter(name).inc(labels, value);
    else kept(this.#gauges, name, () => new Gauge(this.#options(name))).set(labels, value);
  }

  snapshot(): Promise<MetricsSnapshot> {
    return this.#registry.getMetricsAsJSON();
  }

  #options(name: MetricName): { name: string; help: string; labelNames: string[]; registers: Registry[]; buckets?: number[] } {
    const { help, labels = {}, buckets }: MetricDefinition = METRICS[name];
    const shared = { name, help, labelNames: Object.keys(labels), registers: [this.#registry] };
    return buckets === undefined ? shared : { ...shared, buckets: [...buckets] };
  }
}

function kept<T>(map: Map<MetricName, T>, name: MetricName, make: () => T): T {
  const known = map.get(name);
  if (known !== undefined) return known;
  const made = make();
  map.set(name, made);
  return made;
}

/** Prometheus text of several processes; each sample has its process's name. */
export function exposition(snapshots: readonly MetricsSnapshot[]): Promise<string> {
  return AggregatorRegistry.aggregate(snapshots.map((snapshot) => [...snapshot])).metrics();
}

/** The processes that answered. */
export function upSnapshot(processes: ReadonlyMap<string, boolean>): MetricsSnapshot {
  const name = 'trunkline_process_up';
  const values = [...processes].map(([process, isUp]) => ({ labels: { process }, value: isUp ? 1 : 0 }));
  return [{ name, help: METRICS[name].help, type: 'gauge', aggregator: 'sum', values }] as unknown as MetricsSnapshot;
}
