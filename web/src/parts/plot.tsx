import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { theme } from '../theme.js';

export interface PlotLine {
  readonly label: string;
  /** A custom property of the style sheet, such as `--line-1`. */
  readonly color: string;
  readonly values: readonly (number | null)[];
}

interface PlotProps {
  readonly title: string;
  /** Seconds: since the epoch, or since the beginning. */
  readonly x: readonly number[];
  readonly isClock: boolean;
  readonly lines: readonly PlotLine[];
  readonly unit: string;
  /** The axis goes to this at least. */
  readonly top?: number;
  readonly bottom?: number;
}

const HEIGHT = 190;

/** Lines over time. The figures are in a table for those who do not see them. */
export function Plot(props: PlotProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const { x, lines, title } = props;
  const shape = `${theme.value} ${title} ${lines.map(({ label }) => label).join()}`;
  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const drawn = new uPlot(optionsOf(props, element), dataOf(props), element);
    plot.current = drawn;
    const resized = new ResizeObserver(() => drawn.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      drawn.destroy();
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(dataOf(props)), [x, lines]);
  return (
    <figure class="plot">
      <figcaption>{title}</figcaption>
      <div ref={host} role="img" aria-label={`${title}: ${lines.map(summary).join('; ')}`} />
    </figure>
  );
}

/** 24-hour time, as on the other pages. */
function timeOf(seconds: number): string {
  const at = new Date(seconds * 1_000);
  const [hours, minutes, rest] = [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, '0'));
  return rest === '00' ? `${String(hours)}:${String(minutes)}` : `${String(hours)}:${String(minutes)}:${String(rest)}`;
}

function summary({ label, values }: PlotLine): string {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return `${label}: nothing`;
  return `${label}: least ${round(Math.min(...known))}, most ${round(Math.max(...known))}, last ${round(known.at(-1) ?? 0)}`;
}

function round(value: number): string {
  return value.toFixed(Number.isInteger(value) ? 0 : 2);
}

function dataOf({ x, lines }: PlotProps): uPlot.AlignedData {
  return [[...x], ...lines.map(({ values }) => [...values])];
}

function optionsOf({ lines, isClock, unit, top = 1, bottom = 0 }: PlotProps, element: HTMLElement): uPlot.Options {
  const style = getComputedStyle(element);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const axis = { stroke: color('--muted'), grid: { stroke: color('--rule'), width: 1 }, ticks: { stroke: color('--rule'), width: 1 } };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    scales: {
      x: { time: isClock },
      y: { range: (_plot, _least, most) => [bottom, Math.max(top, Number.isFinite(most) ? most * 1.08 : top)] },
    },
    axes: [isClock ? { ...axis, values: (_plot, splits) => splits.map(timeOf) } : axis, { ...axis, size: 52 }],
    padding: [8, 22, 0, 0],
    cursor: { points: { size: 6 }, drag: { x: false, y: false } },
    series: [
      isClock
        ? { value: '{HH}:{mm}:{ss}' }
        : { label: 'at', value: (_plot, value: number | null) => (value === null ? '–' : `${value.toFixed(0)} s`) },
      ...lines.map((line) => ({
        label: line.label,
        stroke: color(line.color),
        width: 1.75,
        spanGaps: true,
        points: { show: line.values.length < 3 },
        value: (_plot: uPlot, value: number | null) => (value === null ? '–' : `${round(value)}${unit}`),
      })),
    ],
  };
}
