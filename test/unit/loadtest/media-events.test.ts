import { describe, expect, it } from 'vitest';
import {
  MediaTally,
  parseMediaEvent,
  secondOf,
  startCommand,
  stopCommand,
  type MediaCall,
  type MediaEvent,
} from '../../../src/loadtest/media-events.js';

const CALL = {
  event: 'call',
  slot: 2,
  seconds: 6,
  sent: 300,
  received: 290,
  expected: 300,
  lost: 10,
  out_of_order: 1,
  duplicates: 2,
  rejected: 0,
  jitter_ms: 1.5,
  delay_ms: { p50: 40, p99: 55, max: 60 },
  mos: 4.3,
  tone: 'heard',
  digits: '12',
  digits_answered: 1,
  rtcp_received: 1,
};
const call = (over: object = {}): MediaCall => parseMediaEvent(JSON.stringify({ ...CALL, ...over })) as MediaCall;

describe("the media generator's protocol", () => {
  it('writes commands as lines', () => {
    const media = { slot: 3, address: '127.0.0.1', port: 30_000, key: 'AAAA', payloadType: 0, eventsType: 101 };
    expect(startCommand(media, '12')).toBe('start 3 127.0.0.1 30000 AAAA 0 101 12\n');
    expect(startCommand(media, '')).toBe('start 3 127.0.0.1 30000 AAAA 0 101 -\n');
    expect(startCommand({ ...media, eventsType: null }, '12')).toBe('start 3 127.0.0.1 30000 AAAA 0 - -\n');
    expect(stopCommand(3)).toBe('stop 3\n');
  });

  it('ignores lines that are not events', () => {
    for (const line of ['', 'x', '{}', '{"event":"call"}', '{"event":"other"}', 'null']) expect(parseMediaEvent(line)).toBeNull();
    expect(parseMediaEvent('{"event":"ready","slots":[{"slot":0,"port":41000,"key":"AAAA"}]}')).toEqual({
      event: 'ready',
      slots: [{ slot: 0, port: 41_000, key: 'AAAA' }],
    });
    expect(
      parseMediaEvent('{"event":"second","calls":0,"sent":0,"received":0,"lost":0,"late_ms":0,"jitter_ms":null,"delay_ms":null}'),
    ).not.toBeNull();
  });

  it.each([
    [
      { late_ms: 2, jitter_ms: 1.5, delay_ms: { p50: 40, p99: 55, max: 60 } },
      { lateMs: 2, jitterMs: 1.5, delay50: 40, delay99: 55 },
    ],
    [{ delay_ms: { p50: null } }, { lateMs: 0, jitterMs: 0, delay50: null, delay99: null }],
    [
      { late_ms: null, jitter_ms: null, delay_ms: null },
      { lateMs: 0, jitterMs: 0, delay50: null, delay99: null },
    ],
  ])('reads a second with %j', (more, figures) => {
    const line = JSON.stringify({ event: 'second', calls: 3, sent: 150, received: 149, lost: 1, ...more });
    const second = parseMediaEvent(line) as Extract<MediaEvent, { event: 'second' }>;
    expect(secondOf(second)).toEqual({ calls: 3, received: 149, lost: 1, ...figures });
  });

  it('sums calls, and keeps the worst of what affects a caller', () => {
    const tally = new MediaTally();
    tally.call(call());
    tally.call(
      call({
        slot: 4,
        lost: 0,
        received: 300,
        jitter_ms: 0.5,
        delay_ms: { p50: 30, p99: 80, max: 81 },
        mos: 4.1,
        tone: 'wrong',
        digits: '',
        digits_answered: 0,
      }),
    );
    tally.call(call({ slot: 5, delay_ms: null, mos: null, tone: 'silent', rejected: 3 }));
    tally.call(call({ slot: 6, delay_ms: { p50: null, p99: 90, max: 90 }, mos: null, jitter_ms: null }));
    tally.call(call({ slot: 7, delay_ms: { p50: 20 }, mos: null, digits: '123', digits_answered: 3 }));
    tally.unchecked();
    tally.late(3);
    tally.late(1);
    const figures = tally.figures();
    expect(figures).toMatchObject({
      calls: 5,
      unchecked: 1,
      tone: { heard: 3, silent: 1, wrong: 1 },
      digits: { pressed: 9, answered: 6 },
      packets: { sent: 1_500, received: 1_460, expected: 1_500, lost: 40, outOfOrder: 5, duplicates: 10, rejected: 3 },
      delayMs: { p50: 40, p99: 80, max: 81 },
      jitterMs: 1.5,
      lateMs: 3,
    });
    expect(figures.mos?.least).toBe(4.1);
    expect(figures.mos?.mean).toBeCloseTo(4.2, 6);
  });

  it('reports nothing without a call', () => {
    expect(new MediaTally().figures()).toEqual({
      calls: 0,
      unchecked: 0,
      tone: { heard: 0, silent: 0, wrong: 0 },
      digits: { pressed: 0, answered: 0 },
      packets: { sent: 0, received: 0, expected: 0, lost: 0, outOfOrder: 0, duplicates: 0, rejected: 0 },
      delayMs: null,
      jitterMs: 0,
      mos: null,
      lateMs: 0,
    });
  });
});
