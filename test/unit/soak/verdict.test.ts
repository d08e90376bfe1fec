import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { soakReport } from '../../soak/report.js';
import { BOUNDS, whatGrew, type Sample, type Series } from '../../soak/verdict.js';

const SAMPLES = 60;

interface Figures {
  readonly gatewayMb?: number;
  readonly redisServerMb?: number;
  readonly files?: number;
  readonly keys?: number;
  readonly redisMb?: number;
  readonly sessions?: number;
  readonly gatewayPid?: number;
}

function sample(
  at: number,
  { gatewayMb = 300, redisServerMb = 30, files = 130, keys = 12, redisMb = 8, sessions = 0, gatewayPid = 2 }: Figures,
): Sample {
  return {
    seconds: at,
    calls: at * 100,
    processes: [
      { name: 'redis-server', program: 'redis-server', pid: 1, memoryMb: redisServerMb, files: 12 },
      { name: 'gateway', program: 'gateway', pid: gatewayPid, memoryMb: gatewayMb, files },
    ],
    keys,
    redisMb,
    sessions,
  };
}

/** Figures by the part of the soak that is over, 0 to 1. */
function series(under: (part: number) => Figures, after: Figures = {}, before: Figures = {}): Series {
  return {
    before: sample(0, before),
    samples: Array.from({ length: SAMPLES }, (_one, at) => sample(at, { sessions: 785, ...under(at / (SAMPLES - 1)) })),
    after: sample(SAMPLES, after),
  };
}

describe('the verdict of a soak', () => {
  it('passes figures that go up and down and come back', () => {
    const noisy = series((part) => ({ gatewayMb: 320 + 40 * Math.sin(part * 50), sessions: 785 + 15 * Math.sin(part * 37), keys: 18 }), {
      gatewayMb: 340,
      files: 133,
    });
    expect(whatGrew(noisy)).toEqual([]);
  });

  it('fails the soak whose gateway went from 218 to 468 MB and stayed there', () => {
    const steps = [336.1, 440.2, 456.5, 453.5, 435.1, 448.6, 459.5, 463.7, 464.7, 463.1, 466.5];
    const grown = series(
      (part) => ({ gatewayMb: steps[Math.round(part * (steps.length - 1))] ?? 0 }),
      { gatewayMb: 467.7 },
      { gatewayMb: 218.5 },
    );
    expect(whatGrew(grown)).toEqual([
      'Resident memory of gateway grew from 218.5 to 467.7 MB between the moments before the first call and after the last; the bound is 48 MB more.',
    ]);
  });

  it('fails a steady growth under load, though all is freed at the end', () => {
    expect(whatGrew(series((part) => ({ gatewayMb: 218 + 250 * part })))).toEqual([
      expect.stringMatching(/^Resident memory of gateway grew from 311\.2 to 438\.3 MB under a steady load/),
    ]);
  });

  it('allows no more growth to a longer soak or to more calls', () => {
    const long = series((part) => ({ gatewayMb: 300 + 120 * part }), { gatewayMb: 420 });
    const later = (one: Sample): Sample => ({ ...one, seconds: one.seconds * 1_000, calls: one.calls * 1_000 });
    expect(whatGrew({ before: later(long.before), samples: long.samples.map(later), after: later(long.after) })).toEqual(whatGrew(long));
    expect(whatGrew(long)).toHaveLength(2);
  });

  it('ignores an outlier', () => {
    expect(whatGrew(series((part) => (part === 1 ? { gatewayMb: 900, keys: 500 } : {})))).toEqual([]);
  });

  it.each<[string, Figures, string]>([
    ['files', { files: 135 }, 'Open files of gateway grew from 130 to 135 '],
    ['keys', { keys: 13 }, 'Keys of Redis grew from 12 to 13 '],
    ['sessions', { sessions: 1 }, 'Sessions of rtpengine grew from 0 to 1 '],
    ['bytes of Redis', { redisMb: 12.5 }, 'Memory that Redis has allocated grew from 8 to 12.5 MB '],
    ['memory of redis-server', { redisServerMb: 47 }, 'Resident memory of redis-server grew from 30 to 47 MB '],
  ])('names %s that are left over at the end', (_name, after, sentence) => {
    expect(whatGrew(series(() => ({}), after))).toEqual([expect.stringContaining(sentence)]);
  });

  it.each<[string, (part: number) => Figures, string]>([
    ['keys', (part) => ({ keys: 12 + Math.round(100 * part) }), 'Keys of Redis'],
    ['files', (part) => ({ files: 130 + Math.round(1_000 * part) }), 'Open files of gateway'],
    ['sessions', (part) => ({ sessions: 785 + Math.round(300 * part) }), 'Sessions of rtpengine'],
    ['bytes of Redis', (part) => ({ redisMb: 8 + 20 * part }), 'Memory that Redis has allocated'],
  ])('names %s that grow under a steady load', (_name, under, what) => {
    expect(whatGrew(series(under))).toEqual([expect.stringMatching(new RegExp(`^${what} grew .* under a steady load`))]);
  });

  it('names a process that ended, since another with its name has its own memory', () => {
    expect(whatGrew(series(() => ({}), { gatewayPid: 3 }))).toEqual(['gateway (process 2) ended during the soak.']);
  });

  it('decides the report', () => {
    const report = (of: Series): ReturnType<typeof soakReport> =>
      soakReport({ ...of, tally: { 'answered: 200, BYE 200': 5 }, rate: 100, connections: 8, isExpected: () => true });
    expect(report(series(() => ({}))).isClean).toBe(true);
    const leaked = report(series(() => ({}), { gatewayMb: 468 }));
    expect(leaked.isClean).toBe(false);
    expect(leaked.text).toContain('Resident memory of gateway grew from 300 to 468 MB');
    expect(leaked.text).not.toContain('Nothing grew');
  });
});

describe('docs/soak.md', () => {
  it('has the bounds of the verdict', () => {
    const text = readFileSync('docs/soak.md', 'utf8');
    const { memoryMb, files, keys, redisMb, sessions } = BOUNDS;
    const rows: [string, { underLoad: number; atRest: number }, string][] = [
      ['resident memory of a gateway, or of the SIP server', memoryMb.gateway, ' MB'],
      ['resident memory of rtpengine, or of redis-server', memoryMb.rtpengine, ' MB'],
      ['open files of each process', files, ''],
      ['keys of Redis but for records and traces of calls that ended', keys, ''],
      ['what Redis has allocated', redisMb, ' MB'],
      ['sessions of rtpengine', sessions, ''],
    ];
    for (const [what, { underLoad, atRest }, unit] of rows)
      expect(text).toContain(`| ${what} | ${String(underLoad)}${unit} | ${String(atRest)}${unit} |`);
    expect([memoryMb['sip-server'], memoryMb['redis-server']]).toEqual([memoryMb.gateway, memoryMb.rtpengine]);
  });
});
