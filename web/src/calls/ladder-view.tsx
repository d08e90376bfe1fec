import type { JSX } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { fullTime, shorten, sinceBegin } from '../format.js';
import { ladderOf, type LadderRow, type TraceEntry } from './ladder.js';
import { movedTo } from './virtual-window.js';

const LETTER = 7;
const LEAST = 300;

/** SIP, rtpengine and agent of one call over time; a message that is chosen shows its text. */
export function LadderView({ trace }: { readonly trace: readonly TraceEntry[] }): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(720);
  const [chosen, setChosen] = useState(0);
  useLayoutEffect(() => {
    const element = host.current;
    if (element === null) return;
    const resized = new ResizeObserver(() => setWidth(Math.max(LEAST, element.clientWidth)));
    resized.observe(element);
    return () => resized.disconnect();
  }, []);
  const ladder = useMemo(() => ladderOf(trace, width), [trace, width]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const to = movedTo(event.key, chosen, ladder.rows.length, 8);
    if (to === null) return;
    event.preventDefault();
    setChosen(to);
    document.getElementById(`message-${String(to)}`)?.scrollIntoView({ block: 'nearest' });
  };
  return (
    <div class="ladder">
      <div class="ladder-picture" ref={host}>
        <svg
          width={ladder.width}
          height={ladder.height}
          role="listbox"
          // In lower case, as attributes of SVG are.
          tabindex={0}
          aria-label="Messages of the call. The arrow keys choose one."
          aria-activedescendant={`message-${String(chosen)}`}
          onKeyDown={onKeyDown}
        >
          {ladder.lifelines.map(({ name, x }) => (
            <g key={name} class="lifeline" aria-hidden="true">
              <line x1={x} x2={x} y1={30} y2={ladder.height} />
              <text x={x} y={20} text-anchor="middle">
                {name}
              </text>
            </g>
          ))}
          {ladder.rows.map((row) => (
            <Message key={row.index} row={row} width={ladder.width} isChosen={row.index === chosen} onChoose={() => setChosen(row.index)} />
          ))}
        </svg>
      </div>
      <MessageText entry={trace[chosen]} />
    </div>
  );
}

interface MessageProps {
  readonly row: LadderRow;
  readonly width: number;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}

function Message({ row, width, isChosen, onChoose }: MessageProps): JSX.Element {
  const { index, y, arrow, entry } = row;
  const way = entry.direction === null ? 'within the gateway' : entry.direction === 'in' ? `from ${entry.source}` : `to ${entry.source}`;
  return (
    <g
      id={`message-${String(index)}`}
      class={`message ${row.tone}${isChosen ? ' chosen' : ''}`}
      role="option"
      aria-selected={isChosen}
      aria-label={`${sinceBegin(row.atMs)} ${way}: ${entry.summary}`}
      onClick={onChoose}
    >
      <rect class="hit" x={0} y={y - 22} width={width} height={34} />
      <text class="at" x={4} y={y}>
        {sinceBegin(row.atMs)}
      </text>
      {arrow === null ? (
        <circle cx={row.labelX - 8} cy={y - 4} r={3.5} />
      ) : (
        <>
          <line x1={arrow.fromX} x2={arrow.toX} y1={y + 3} y2={y + 3} />
          <path d={headOf(arrow, y + 3)} />
        </>
      )}
      <text class="label" x={row.labelX} y={y - 1}>
        {shorten(row.label, Math.floor(row.labelWidth / LETTER))}
      </text>
    </g>
  );
}

function headOf({ fromX, toX }: { readonly fromX: number; readonly toX: number }, y: number): string {
  const back = toX > fromX ? toX - 8 : toX + 8;
  return `M${String(toX)} ${String(y)} L${String(back)} ${String(y - 4)} L${String(back)} ${String(y + 4)} Z`;
}

function MessageText({ entry }: { readonly entry: TraceEntry | undefined }): JSX.Element | null {
  if (entry === undefined) return null;
  return (
    <section class="message-text" aria-live="polite" aria-label="The chosen message">
      <h3>{entry.summary}</h3>
      <p class="muted">
        {fullTime(entry.at)}, {entry.source}
      </p>
      {entry.text === null ? <p class="muted">This event has no message.</p> : <pre tabIndex={0}>{entry.text}</pre>}
    </section>
  );
}
