import { describe, expect, it } from 'vitest';
import { EXAMPLE_TRACE as EXAMPLE } from '../../../src/gateway/api/schemas/call-example.js';
import { ladderOf, type TraceEntry } from '../../../web/src/calls/ladder.js';

const EXAMPLE_TRACE = EXAMPLE as readonly TraceEntry[];

const entry = (fields: Partial<TraceEntry>): TraceEntry => ({
  at: '2026-01-01T00:00:00.000Z',
  source: 'sip',
  direction: 'in',
  summary: 'INVITE sip:+15550100100@gw SIP/2.0',
  text: null,
  ...fields,
});

describe('the ladder of a call', () => {
  it('has four lifelines within its width, and a row for each entry below the one before', () => {
    for (const width of [320, 720]) {
      const { lifelines, rows, height } = ladderOf(EXAMPLE_TRACE, width);
      expect(lifelines.map(({ name }) => name)).toEqual(['Carrier', 'Gateway', 'rtpengine', 'Agent']);
      for (const { x } of lifelines) expect(x > 0 && x < width).toBe(true);
      expect(rows.map(({ entry: { summary } }) => summary)).toEqual(EXAMPLE_TRACE.map(({ summary }) => summary));
      for (const [index, { y }] of rows.entries()) expect(y > (rows[index - 1]?.y ?? 0) && y < height).toBe(true);
    }
  });

  it('draws each arrow from sender to receiver', () => {
    const { lifelines, rows } = ladderOf(
      [
        entry({}),
        entry({ direction: 'out', summary: 'SIP/2.0 200 OK' }),
        entry({ source: 'rtpengine', direction: 'out', summary: 'offer' }),
        entry({ source: 'agent', summary: 'transcript, 1 entries' }),
        entry({ source: 'gateway', direction: null, summary: 'looked up' }),
      ],
      720,
    );
    const nameAt = (x: number | undefined): string | undefined => lifelines.find((one) => one.x === x)?.name;
    expect(rows.map(({ arrow }) => arrow && [nameAt(arrow.fromX), nameAt(arrow.toX)])).toEqual([
      ['Carrier', 'Gateway'],
      ['Gateway', 'Carrier'],
      ['Gateway', 'rtpengine'],
      ['Agent', 'Gateway'],
      null,
    ]);
  });

  it('labels messages briefly, answers with their method, and distinguishes classes', () => {
    const { rows } = ladderOf(
      [
        entry({}),
        entry({ summary: 'SIP/2.0 180 Ringing', text: 'SIP/2.0 180 Ringing\r\nCSeq: 1 INVITE\r\n\r\n' }),
        entry({ summary: 'SIP/2.0 200 OK' }),
        entry({ summary: 'SIP/2.0 403 Forbidden' }),
        entry({ source: 'rtpengine', summary: 'offer failed, 2.0 ms' }),
        entry({ source: 'rtpengine', summary: 'offer answered, 2.0 ms' }),
      ],
      720,
    );
    expect(rows.map(({ label, tone }) => `${label} | ${tone}`)).toEqual([
      'INVITE | request',
      '180 Ringing (INVITE) | provisional',
      '200 OK | success',
      '403 Forbidden | failure',
      'offer failed, 2.0 ms | failure',
      'offer answered, 2.0 ms | rtpengine',
    ]);
  });

  it('counts time from the first entry', () => {
    const { rows } = ladderOf([entry({}), entry({ at: '2026-01-01T00:00:01.250Z' })], 720);
    expect(rows.map(({ atMs }) => atMs)).toEqual([0, 1_250]);
    expect(ladderOf([], 720).rows).toEqual([]);
  });
});
