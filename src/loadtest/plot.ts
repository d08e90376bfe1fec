// Line plots as SVG text, for a page that loads nothing. Colors are classes: the page has one set for light and one for dark.

export interface Series {
  readonly name: string;
  /** x and y; null: a gap. */
  readonly points: readonly (readonly [number, number | null])[];
}

export interface Plot {
  readonly title: string;
  readonly unit: string;
  readonly series: readonly Series[];
  /** Where stages begin. */
  readonly marks: readonly number[];
}

const WIDTH = 400;
const HEIGHT = 200;
const LEFT = 46;
const RIGHT = 8;
const TOP = 10;
const BOTTOM = 24;
const MAX_POINTS = 300;
const COLORS = 8;

/** A figure with its legend; '' when there is nothing to draw. */
export function plotFigure({ title, unit, series, marks }: Plot): string {
  const drawn = series.filter(({ points }) => points.some(([, y]) => y !== null));
  if (drawn.length === 0) return '';
  const all = drawn.flatMap(({ points }) => points);
  const highest = all.reduce((most, [, y]) => Math.max(most, y ?? 0), 0);
  const [first, last] = [Math.min(...all.map(([x]) => x)), Math.max(...all.map(([x]) => x))];
  const top = niceTop(highest);
  const x = (value: number): number => LEFT + ((value - first) / Math.max(1, last - first)) * (WIDTH - LEFT - RIGHT);
  const y = (value: number): number => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  const lines = drawn.map(({ points }, index) => `<path class="line ${colorOf(index)}" d="${pathOf(thinned(points, MAX_POINTS), x, y)}"/>`);
  const svg = [
    `<svg viewBox="0 0 ${String(WIDTH)} ${String(HEIGHT)}" role="img" aria-label="${escapeHtml(title)}">`,
    ...[0, top / 2, top].map(
      (value) =>
        `<line class="grid" x1="${String(LEFT)}" x2="${String(WIDTH - RIGHT)}" y1="${at(y(value))}" y2="${at(y(value))}"/>` +
        `<text x="${String(LEFT - 5)}" y="${at(y(value) + 4)}" text-anchor="end">${escapeHtml(shortNumber(value))}</text>`,
    ),
    ...marks
      .filter((mark) => mark > first)
      .map((mark) => `<line class="mark" x1="${at(x(mark))}" x2="${at(x(mark))}" y1="${String(TOP)}" y2="${String(HEIGHT - BOTTOM)}"/>`),
    `<text x="${String(LEFT)}" y="${String(HEIGHT - 6)}">${String(first)} s</text>`,
    `<text x="${String(WIDTH - RIGHT)}" y="${String(HEIGHT - 6)}" text-anchor="end">${String(last)} s</text>`,
    ...lines,
    '</svg>',
  ];
  const legend = drawn.map(({ name }, index) => `<span class="key"><i class="${colorOf(index)}"></i>${escapeHtml(name)}</span>`);
  const heading = `<figcaption><b>${escapeHtml(title)}</b> <small>${escapeHtml(unit)}</small></figcaption>`;
  return `<figure>${heading}${svg.join('')}<div class="legend">${legend.join('')}</div></figure>`;
}

/** At least as high as the value, and easy to read: one digit and zeros. */
export function niceTop(value: number): number {
  if (!(value > 1e-6)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 3, 4, 5, 6, 8].find((step) => step * power >= value) ?? 10);
}

/** No more points than can be seen; of those that fall together the highest stays, so that no peak is lost. */
export function thinned(points: Series['points'], most: number): Series['points'] {
  if (points.length <= most) return points;
  const size = Math.ceil(points.length / most);
  return Array.from({ length: Math.ceil(points.length / size) }, (_, index) => {
    const group = points.slice(index * size, (index + 1) * size);
    const values = group.map(([, y]) => y).filter((y) => y !== null);
    return [group[0]?.[0] ?? 0, values.length === 0 ? null : Math.max(...values)] as const;
  });
}

function pathOf(points: Series['points'], x: (value: number) => number, y: (value: number) => number): string {
  let isDrawing = false;
  return points
    .map(([atX, atY]) => {
      if (atY === null) {
        isDrawing = false;
        return '';
      }
      const step = `${isDrawing ? 'L' : 'M'}${at(x(atX))} ${at(y(atY))}`;
      // A point between two gaps is a dot.
      const dot = isDrawing ? '' : 'h.01';
      isDrawing = true;
      return step + dot;
    })
    .join('');
}

/** Beyond the colors lines are dashed. */
const colorOf = (index: number): string => `s${String(index % COLORS)}${index < COLORS ? '' : ' more'}`;

const at = (value: number): string => value.toFixed(1);

function shortNumber(value: number): string {
  if (value >= 10_000) return `${String(value / 1_000)}k`;
  return String(Math.round(value * 100) / 100);
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${String(character.charCodeAt(0))};`);
}
