import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { Plot } from '../parts/plot.js';
import { linesOf, type QualityFigures, type QualitySample } from './quality.js';

const PLOTS: readonly {
  readonly field: keyof QualityFigures;
  readonly title: string;
  readonly unit: string;
  readonly top: number;
  readonly bottom: number;
}[] = [
  { field: 'lost_percent', title: 'Loss, % of packets', unit: ' %', top: 1, bottom: 0 },
  { field: 'jitter_ms', title: 'Jitter, ms', unit: ' ms', top: 5, bottom: 0 },
  { field: 'mos', title: 'MOS, 1 to 4.5', unit: '', top: 4.5, bottom: 1 },
];

export function QualityPlots({ samples }: { readonly samples: readonly QualitySample[] }): JSX.Element {
  const { x, fromCaller, toCaller } = useMemo(() => linesOf(samples), [samples]);
  if (samples.length === 0) return <p class="muted">No quality samples for this call.</p>;
  return (
    <div class="plots">
      {PLOTS.map(({ field, ...plot }) => (
        <Plot
          key={field}
          {...plot}
          x={x}
          isClock={false}
          lines={[
            { label: 'From the caller', color: '--line-1', values: fromCaller[field] },
            { label: 'To the caller', color: '--line-2', values: toCaller[field] },
          ]}
        />
      ))}
    </div>
  );
}
