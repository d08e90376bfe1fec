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

const after = (args: readonly string[], name: string): string | undefined => args[args.indexOf(name) + 1];

describe('the command line of SIPp', () => {
  it('goes through a tunnel, and names the gateway in its messages', () => {
    const args = sippArguments(JOB);
    expect(args[0]).toBe('127.0.0.1:4000');
    expect(['-t', '-r', '-m', '-l', '-d', '-s'].map((name) => after(args, name))).toEqual([
      't1',
      '12.5',
      '100',
      '100',
      '2000',
      '+15550100100',
    ]);
    expect(args.join(' ')).toContain('-key target 127.0.0.1:5061');
    expect(args).not.toContain('-inf');
  });

  it('of a build with TLS goes straight to the gateway and checks its certificate', () => {
    const way = { kind: 'tls', certificate: '/c.pem', key: '/k.pem', caFile: '/ca.pem' } as const;
    const args = sippArguments({ ...JOB, way, target: { host: '::1', port: 5_061 }, localAddress: '::1' });
    expect(args[0]).toBe('[::1]:5061');
    expect(['-t', '-tls_cert', '-tls_key', '-tls_ca', '-i'].map((name) => after(args, name))).toEqual([
      'l1',
      '/c.pem',
      '/k.pem',
      '/ca.pem',
      '::1',
    ]);
  });

  it('knows builds by what they print', () => {
    expect(speaksTls('\n SIPp v3.6.1-SCTP-PCAP-RTPSTREAM.\n')).toBe(false);
    expect(speaksTls('\n SIPp v3.7.3-TLS-PCAP.\n')).toBe(true);
    expect([sippVersion(' SIPp v3.6.1-SCTP-PCAP-RTPSTREAM.\n\n'), sippVersion('bash: sipp')]).toEqual(['v3.6.1-SCTP-PCAP-RTPSTREAM', null]);
  });

  it('calls and rate are split without a rest', () => {
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

  it('a connection for each 500 calls a second', () => {
    expect([0.5, 500, 501, 1_500].map(connectionsFor)).toEqual([1, 1, 2, 3]);
  });
});

describe('slots of the media generator', () => {
  it('come again only after a call has taken as long as it may', () => {
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

  it('are lines that SIPp takes in turn', () => {
    expect(slotsText([{ slot: 0, port: 41_000, key: 'a+/=' }])).toBe('SEQUENTIAL\n0;41000;a+/=\n');
  });
});
