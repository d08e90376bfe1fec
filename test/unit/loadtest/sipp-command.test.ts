import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  connectionsFor,
  shares,
  sippArguments,
  sippVersion,
  slotsFor,
  slotsText,
  speaksTls,
  type SippJob,
} from '../../../src/loadtest/sipp-command.js';

const JOB: SippJob = {
  way: { kind: 'tunnel', port: 4_000 },
  target: { host: '127.0.0.1', port: 5_061 },
  localAddress: '127.0.0.1',
  scenario: '/a/answered.xml',
  tellsAnswers: true,
  called: '+15550100100',
  caller: '+15550100999',
  cps: 12.5,
  calls: 100,
  holdMs: 2_000,
  setupTimeoutMs: 10_000,
  direction: 'sendrecv',
  slotsFile: null,
};

/** The same of every job. */
const COMMON = [
  ...['-sf', '/a/answered.xml', '-s', '+15550100100', '-d', '2000', '-recv_timeout', '10000'],
  ...['-r', '12.5', '-m', '100', '-l', '100'],
];
const LOGS = [
  '-trace_stat',
  '-fd',
  '1',
  '-stf',
  'stat.csv',
  '-trace_err',
  '-error_file',
  'errors.log',
  '-trace_logs',
  '-log_file',
  'calls.log',
];
const RECONNECTS = ['-max_reconnect', '1000000', '-reconnect_close', 'false', '-reconnect_sleep', '0'];
const UNWATCHED = ['-watchdog_minor_maxtriggers', '1000000', '-watchdog_major_maxtriggers', '1000000'];
const keys = (target: string, ip: string, direction: string): readonly string[] => [
  ...['-key', 'target', target, '-key', 'caller', '+15550100999', '-key', 'audio_ip', ip],
  ...['-key', 'direction', direction, '-key', 'audio_port', '9'],
];

describe('the command line of SIPp', () => {
  it('uses a tunnel, and names the gateway in its messages', () => {
    const target = { host: '192.0.2.1', port: 5_061 };
    expect(sippArguments({ ...JOB, target, localAddress: '192.0.2.9' })).toEqual([
      ...['127.0.0.1:4000', '-t', 't1', '-i', '127.0.0.1', '-ci', '127.0.0.1', '-nostdin', '-timer_resol', '1'],
      ...[...COMMON, ...keys('192.0.2.1:5061', '192.0.2.9', 'sendrecv'), ...LOGS, ...RECONNECTS, ...UNWATCHED],
    ]);
  });

  it('connects a build with TLS directly to the gateway and verifies its certificate', () => {
    const way = { kind: 'tls', certificate: '/c.pem', key: '/k.pem', caFile: '/ca.pem' } as const;
    const target = { host: '2001:db8::1', port: 5_061 };
    expect(sippArguments({ ...JOB, way, target, localAddress: '2001:db8::9', direction: 'inactive' })).toEqual([
      ...['[2001:db8::1]:5061', '-t', 'l1', '-tls_cert', '/c.pem', '-tls_key', '/k.pem', '-tls_ca', '/ca.pem'],
      ...['-i', '2001:db8::9', '-ci', '127.0.0.1', '-nostdin', '-timer_resol', '1'],
      ...[...COMMON, ...keys('[2001:db8::1]:5061', '[2001:db8::9]', 'inactive'), ...LOGS, ...RECONNECTS, ...UNWATCHED],
    ]);
  });

  it('has a file of slots for calls with media, and traces the times of a scenario that does not log them', () => {
    expect(sippArguments({ ...JOB, slotsFile: '/s.csv', tellsAnswers: false }).slice(-26)).toEqual([
      ...['-inf', '/s.csv', ...LOGS, '-trace_rtt', '-rtt_freq', '1', ...RECONNECTS, ...UNWATCHED],
    ]);
    expect(sippArguments({ ...JOB, slotsFile: '/s.csv' }).join(' ')).toContain(' -inf /s.csv -trace_stat ');
  });

  it('depends on the build, which it reads from the version text', () => {
    expect(speaksTls('\n SIPp v3.6.1-SCTP-PCAP-RTPSTREAM.\n')).toBe(false);
    expect(speaksTls('\n SIPp v3.7.3-TLS-PCAP.\n')).toBe(true);
    expect(speaksTls('\n SIPp v3.7.3 without-TLS.\n')).toBe(false);
  });

  it.each([
    [' SIPp v3.6.1-SCTP-PCAP-RTPSTREAM.\n\n', 'v3.6.1-SCTP-PCAP-RTPSTREAM'],
    ['SIPp v3.7.3-TLS built in 2024', 'v3.7.3-TLS'],
    ['SIPp v10 \n', 'v10'],
    ['bash: sipp', null],
    ['SIPp version 3 ', null],
  ])('reads from %j the version %s', (text, version) => {
    expect(sippVersion(text)).toBe(version);
  });

  it.each([
    [
      10,
      7,
      3,
      [
        { calls: 3, cps: 4.286 },
        { calls: 2, cps: 2.857 },
        { calls: 2, cps: 2.857 },
      ],
    ],
    [10, 6, 1, [{ calls: 6, cps: 10 }]],
    [10, 1, 4, [{ calls: 1, cps: 10 }]],
    [
      0.001,
      2,
      2,
      [
        { calls: 1, cps: 0.001 },
        { calls: 1, cps: 0.001 },
      ],
    ],
  ])('splits %d calls a second and %i calls over %i processes into %j', (cps, calls, processes, split) => {
    expect(shares(cps, calls, processes)).toEqual(split);
  });

  it('splits calls and rate without a remainder', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 1, max: 5_000, noNaN: true }),
        fc.integer({ min: 1, max: 100_000 }),
        fc.integer({ min: 1, max: 64 }),
        (cps, calls, processes) => {
          const split = shares(cps, calls, processes);
          expect(split.length).toBe(Math.min(processes, calls));
          expect(split.reduce((sum, share) => sum + share.calls, 0)).toBe(calls);
          expect(split.reduce((sum, share) => sum + share.cps, 0)).toBeCloseTo(cps, 0);
          expect(Math.max(...split.map((share) => share.calls)) - Math.min(...split.map((share) => share.calls))).toBeLessThanOrEqual(1);
        },
      ),
    );
  });

  it('has a connection for each 500 calls a second', () => {
    expect([0, 0.5, 500, 501, 1_500].map(connectionsFor)).toEqual([1, 1, 1, 2, 3]);
  });
});

describe('slots of the media generator', () => {
  it('are reused only after the longest possible call', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.5, max: 1_000, noNaN: true }),
        fc.integer({ min: 1, max: 50_000 }),
        fc.integer({ min: 0, max: 60_000 }),
        (cps, calls, holdMs) => {
          const slots = slotsFor({ cps, calls }, holdMs, 10_000);
          expect(slots).toBeLessThanOrEqual(calls);
          if (slots < calls) expect((slots / cps) * 1_000).toBeGreaterThan(holdMs + 20_000);
        },
      ),
    );
  });

  it.each([
    [{ cps: 10, calls: 1_000 }, 2_000, 10_000, 228],
    [{ cps: 10, calls: 228 }, 2_000, 10_000, 228],
    [{ cps: 10, calls: 227 }, 2_000, 10_000, 227],
    [{ cps: 0.01, calls: 1_000 }, 0, 1_000, 9],
  ])('number, for %j, held %i ms, with %i ms to be set up: %i', (share, holdMs, setupMs, count) => {
    expect(slotsFor(share, holdMs, setupMs)).toBe(count);
  });

  it('are lines that SIPp uses in turn', () => {
    const slots = [
      { slot: 0, port: 41_000, key: 'a+/=' },
      { slot: 1, port: 41_002, key: 'b' },
    ];
    expect(slotsText(slots)).toBe('SEQUENTIAL\n0;41000;a+/=\n1;41002;b\n');
  });
});
