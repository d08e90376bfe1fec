/** One line of the exposition format. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Exposition {
  readonly types: ReadonlyMap<string, string>;
  readonly samples: readonly Sample[];
  /** The sum over the samples that have these labels; `undefined`: there is none. */
  readonly sum: (name: string, labels?: Readonly<Record<string, string>>) => number | undefined;
}

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (NaN|[+-]Inf|-?[0-9.]+(?:e[+-]?\d+)?)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(,|$)/y;

/** Reads the text format of Prometheus, version 0.0.4, strictly: every line must be of it, and every sample behind its TYPE. */
export function parseExposition(text: string): Exposition {
  const types = new Map<string, string>();
  const samples: Sample[] = [];
  const seen = new Set<string>();
  for (const line of text.split('\n')) {
    const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line);
    if (type !== null) {
      if (types.has(type[1] ?? '')) throw new Error(`${String(type[1])} has two TYPE lines`);
      types.set(type[1] ?? '', type[2] ?? '');
    } else if (line !== '' && !line.startsWith('# HELP ')) {
      if (seen.has(line.slice(0, line.lastIndexOf(' ')))) throw new Error(`twice: ${line}`);
      seen.add(line.slice(0, line.lastIndexOf(' ')));
      samples.push(sampleOf(line, types));
    }
  }
  const sum: Exposition['sum'] = (name, labels = {}) => {
    const found = samples.filter(
      (one) => one.name === name && Object.entries(labels).every(([label, value]) => one.labels[label] === value),
    );
    return found.length === 0 ? undefined : found.reduce((all, { value }) => all + value, 0);
  };
  return { types, samples, sum };
}

function sampleOf(line: string, types: ReadonlyMap<string, string>): Sample {
  const match = LINE.exec(line);
  if (match === null) throw new Error(`no sample: ${line}`);
  const [, name = '', text = '', value = ''] = match;
  const family = name.replace(/_(?:bucket|sum|count)$/, '');
  if (!types.has(name) && types.get(family) !== 'histogram') throw new Error(`${name} comes before its TYPE`);
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const label = LABEL.exec(text);
    if (label === null) throw new Error(`bad labels: ${line}`);
    labels[label[1] ?? ''] = label[2] ?? '';
  }
  return { name, labels, value: Number(value.replace('Inf', 'Infinity')) };
}
