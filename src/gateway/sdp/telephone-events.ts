/** RFC 4733 §3.2: the digits, `*`, `#` and A to D. */
const LAST_EVENT = 15;

/**
 * The supported events of an `a=fmtp` value (`0-15`, `0-11,66`), in the same form; '' if none is.
 * Without the line, or with an unreadable one, the peer supports the digits (RFC 4733 §2.5.1.1).
 */
export function commonEvents(format: unknown): string {
  // sdp-transform converts a lone number.
  const text = typeof format === 'number' ? String(format) : typeof format === 'string' ? format : '';
  const listed = /(?:^|;)\s*(?:events=)?(\d[\d,\s-]*)\s*(?:;|$)/i.exec(text)?.[1];
  if (listed === undefined) return `0-${LAST_EVENT}`;
  const known = new Set<number>();
  for (const part of listed.split(',')) {
    const [first = NaN, last = first] = part.split('-').map((bound) => Number.parseInt(bound, 10));
    for (let event = first; event <= Math.min(last, LAST_EVENT); event += 1) known.add(event);
  }
  return ranges([...known].sort((a, b) => a - b));
}

function ranges(events: readonly number[]): string {
  const spans: [number, number][] = [];
  for (const event of events) {
    const span = spans.at(-1);
    if (span?.[1] === event - 1) span[1] = event;
    else spans.push([event, event]);
  }
  return spans.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)).join(',');
}
