import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { isNearEnd, movedTo, windowOf } from './virtual-window.js';

interface VirtualListProps<T> {
  readonly label: string;
  readonly rows: readonly T[];
  readonly rowHeight: number;
  readonly columns: readonly string[];
  readonly keyOf: (row: T) => string;
  readonly render: (row: T) => ComponentChildren;
  readonly onOpen: (row: T) => void;
  readonly onNearEnd: () => void;
  /** Behind the last row. */
  readonly foot: ComponentChildren;
}

/** A grid of any length, of which only the rows in sight are in the document. The arrow keys move, Enter opens. */
export function VirtualList<T>(props: VirtualListProps<T>): JSX.Element {
  const { rows, rowHeight, keyOf, columns, onNearEnd } = props;
  const host = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [active, setActive] = useState<string | null>(null);
  const anchor = useRef<string | null>(null);

  useLayoutEffect(() => {
    const element = host.current;
    if (element === null) return;
    const look = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const resized = new ResizeObserver(look);
    resized.observe(element);
    element.addEventListener('scroll', look, { passive: true });
    return () => {
      resized.disconnect();
      element.removeEventListener('scroll', look);
    };
  }, []);

  // New calls come in on top: who has scrolled down keeps what is before their eyes.
  useLayoutEffect(() => {
    const element = host.current;
    if (element === null) return;
    const firstVisible = Math.floor(element.scrollTop / rowHeight);
    if (anchor.current !== null && firstVisible > 0 && keyAt(firstVisible) !== anchor.current) {
      const now = rows.findIndex((row) => keyOf(row) === anchor.current);
      if (now >= 0) element.scrollTop += (now - firstVisible) * rowHeight;
    }
  }, [rows]);
  const keyAt = (index: number): string | null => {
    const row = rows[index];
    return row === undefined ? null : keyOf(row);
  };
  const { first, end } = windowOf(view.top, view.height, rowHeight, rows.length);
  anchor.current = keyAt(Math.floor(view.top / rowHeight));
  useEffect(() => {
    if (isNearEnd(view.top, view.height, rowHeight, rows.length)) onNearEnd();
  });

  const activeIndex = active === null ? -1 : rows.findIndex((row) => keyOf(row) === active);
  const onKeyDown = (event: KeyboardEvent): void => {
    const element = host.current;
    if (element === null || event.target !== element) return;
    const current = rows[activeIndex];
    if (event.key === 'Enter' && current !== undefined) return props.onOpen(current);
    const to = movedTo(event.key, activeIndex, rows.length, Math.max(1, Math.floor(element.clientHeight / rowHeight) - 2));
    if (to === null) return;
    event.preventDefault();
    setActive(keyAt(to));
    if (to * rowHeight < element.scrollTop) element.scrollTop = to * rowHeight;
    else if ((to + 2) * rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = (to + 2) * rowHeight - element.clientHeight;
  };

  return (
    <div
      ref={host}
      class="virtual"
      role="grid"
      aria-label={props.label}
      aria-rowcount={rows.length + 1}
      aria-activedescendant={activeIndex >= first && activeIndex < end ? `row-${String(active)}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onFocus={() => {
        if (activeIndex < 0) setActive(keyAt(Math.floor(view.top / rowHeight)));
      }}
    >
      <div class="row row-head" role="row" aria-rowindex={1}>
        {columns.map((name) => (
          <span key={name} role="columnheader">
            {name}
          </span>
        ))}
      </div>
      <div class="rows" role="rowgroup" style={{ height: `${String(rows.length * rowHeight)}px` }}>
        {rows.slice(first, end).map((row, index) => (
          <div
            key={keyOf(row)}
            id={`row-${keyOf(row)}`}
            class={keyOf(row) === active ? 'row active' : 'row'}
            role="row"
            aria-rowindex={first + index + 2}
            style={{ top: `${String((first + index) * rowHeight)}px`, height: `${String(rowHeight)}px` }}
            onClick={(event) => {
              // The link within it does what links do, in another tab too.
              if (!(event.target instanceof Element && event.target.closest('a') !== null)) props.onOpen(row);
            }}
          >
            {props.render(row)}
          </div>
        ))}
      </div>
      <div class="virtual-foot">{props.foot}</div>
    </div>
  );
}
