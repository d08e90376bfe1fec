/** One line of what a gateway serves at /metrics. */
interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A scrape, to be asked for sums. Lines that are no samples are left out. */
export class Samples {
  readonly #byName = new Map<string, Sample[]>();

  constructor(
    text: string,
    readonly atMs: number,
  ) {
    for (const line of text.split('\n')) {
      const [, name, labels = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      if (name === undefined) continue;
      const sample = { name, labels: readLabels(labels), value: Number(value?.replace('Inf', 'Infinity')) };
      const known = this.#byName.get(name);
      if (known === undefined) this.#byName.set(name, [sample]);
      else known.push(sample);
    }
  }

  /** 0 when there is none. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    return this.#of(name, labels).reduce((all, { value }) => all + value, 0);
  }

  /** Sums by the values of one label, in their order. */
  by(label: string, name: string, labels: Readonly<Record<string, string>> = {}): ReadonlyMap<string, number> {
    const sums = new Map<string, number>();
    for (const sample of this.#of(name, labels)) {
      const key = sample.labels[label] ?? '';
      sums.set(key, (sums.get(key) ?? 0) + sample.value);
    }
    return new Map([...sums].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #of(name: string, labels: Readonly<Record<string, string>>): readonly Sample[] {
    const wanted = Object.entries(labels);
    return (this.#byName.get(name) ?? []).filter((sample) => wanted.every(([label, value]) => sample.labels[label] === value));
  }
}

/** How a counter grew between two scrapes; what it stands at when there is no earlier one, or its process was started anew. */
export function growth(now: ReadonlyMap<string, number>, before: ReadonlyMap<string, number> | undefined): ReadonlyMap<string, number> {
  return new Map([...now].map(([key, value]) => [key, value >= (before?.get(key) ?? 0) ? value - (before?.get(key) ?? 0) : value]));
}

/** What so much of the observations does not exceed, by the buckets (`le` → so many at most), within its bucket by proportion; `null`: none. */
export function quantile(buckets: ReadonlyMap<string, number>, share: number): number | null {
  const sorted = [...buckets].map(([le, count]) => [le === '+Inf' ? Infinity : Number(le), count] as const).sort(([a], [b]) => a - b);
  const all = sorted.at(-1)?.[1] ?? 0;
  if (all === 0) return null;
  const rank = share * all;
  let [from, below] = [0, 0];
  for (const [le, count] of sorted) {
    if (count >= rank) return le === Infinity ? from : from + ((le - from) * (rank - below)) / Math.max(1, count - below);
    [from, below] = [le, count];
  }
  return from;
}

function readLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, name = '', value = ''] of text.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value;
  return labels;
}
