import { beforeEach, describe, expect, it } from 'vitest';
import { Admission, type AdmissionLimits } from '../../../src/sip/admission.js';
import { parseMessage } from '../../../src/sip/message/parse.js';
import { SourceRates } from '../../../src/lib/source-rates.js';
import { EventLog } from '../../support/event-log.js';
import { VirtualClock } from '../../support/virtual-clock.js';

let clock: VirtualClock;
let log: EventLog;
let dialogs: number;
/** MiB; null: it cannot be read. */
let resident: number | null;
const URI = 'sip:+15550100100@example.com';
let isBehind: boolean;
let full: string[];

beforeEach(() => {
  clock = new VirtualClock();
  log = new EventLog();
  dialogs = 0;
  resident = 100;
  isBehind = false;
  full = [];
});

function admission(limits: Partial<AdmissionLimits> = {}): Admission {
  return new Admission({
    limits: {
      maxRequestsPerSecondPerSource: 10,
      dropAboveFactor: 3,
      scannerUserAgents: ['friendly-scanner', 'VaxSIPUserAgent', 'sipvicious'],
      scannerAction: 'drop',
      maxDialogs: 5,
      maxMemoryMb: 1_000,
      ...limits,
    },
    clock,
    log,
    dialogCount: () => dialogs,
    behind: () => (isBehind ? 'the gateway is late' : null),
    onFull: (uri, why) => full.push(`${uri}: ${why}`),
    memory: {
      rss: () => {
        if (resident === null) throw new Error('EMFILE: too many open files, uv_resident_set_memory');
        return resident << 20;
      },
    },
  });
}

describe('the rate of a source', () => {
  const taken = (rates: SourceRates, source: string, tries: number): number =>
    Array.from({ length: tries }, () => rates.take(source)).filter(Boolean).length;

  it.each([1, 3, 10, 2_000, 7_777])('of %d a second admits one second’s worth at once, then as many a second', (rate) => {
    const rates = new SourceRates(rate, clock);
    expect(taken(rates, 'a', 3 * rate)).toBe(rate);
    clock.advance(1_000);
    expect(taken(rates, 'a', 3 * rate)).toBe(rate);
    clock.advance(60_000);
    expect(taken(rates, 'a', 3 * rate)).toBe(rate);
  });

  it('is that of each source alone', () => {
    const rates = new SourceRates(5, clock);
    expect(taken(rates, 'a', 10)).toBe(5);
    expect(taken(rates, 'b', 10)).toBe(5);
  });

  it('is kept for no more than 10,000 sources, the busy ones among them', () => {
    const rates = new SourceRates(2, clock);
    rates.take('busy');
    for (let number = 0; number < 9_999; number += 1) rates.take(`source ${String(number)}`);
    rates.take('busy');
    for (let number = 0; number < 5_000; number += 1) rates.take(`other ${String(number)}`);
    expect(rates.size).toBe(10_000);
    expect(rates.take('busy')).toBe(false);
  });
});

describe('admission', () => {
  it('refuses new requests above the rate, and drops messages only above a multiple of it', () => {
    const gate = admission();
    const refused = Array.from({ length: 15 }, () => gate.isOverRate('a')).filter(Boolean).length;
    const dropped = Array.from({ length: 35 }, () => gate.isFlood('a')).filter(Boolean).length;
    expect([refused, dropped]).toEqual([5, 5]);
    expect(gate.isOverRate('b')).toBe(false);
    expect(gate.totals).toMatchObject({ refusedByRate: 5, droppedByRate: 5 });
  });

  it('refuses a call at the limit of dialogs', () => {
    const gate = admission();
    dialogs = 4;
    expect(gate.lackOf('a', URI)).toBeNull();
    dialogs = 5;
    expect(gate.lackOf('a', URI)).toBe('calls in progress: 5, limit 5');
    expect([gate.totals.refusedByDialogs, full]).toEqual([1, [`${URI}: calls in progress: 5, limit 5`]]);
  });

  it('refuses a call while memory is short, and logs that once for each crossing', () => {
    const gate = admission();
    const answers: boolean[] = [];
    for (const megabytes of [900, 1_001, 1_500, 1_500, 999, 1_001]) {
      resident = megabytes;
      clock.advance(1_000);
      answers.push(gate.lackOf('a', URI) !== null, gate.lackOf('a', URI) !== null);
    }
    expect(answers).toEqual([false, false, true, true, true, true, true, true, false, false, true, true]);
    expect(log.events.map(({ event, fields }) => [event, fields['resident_mb']])).toEqual([
      ['sip.memory.high', 1_001],
      ['sip.memory.normal', 999],
      ['sip.memory.high', 1_001],
    ]);
    expect(gate.totals.refusedByMemory).toBe(8);
  });

  it('keeps its state while no file handle is left to read memory with', () => {
    const gate = admission();
    const refusedAt = (megabytes: number | null): boolean => {
      resident = megabytes;
      clock.advance(1_000);
      return gate.lackOf('a', URI) !== null;
    };
    expect([900, null, 2_000, null, null, 900].map(refusedAt)).toEqual([false, false, true, true, true, false]);
  });

  it('reads memory once a second at most', () => {
    const gate = admission();
    expect(gate.lackOf('a', URI)).toBeNull();
    resident = 2_000;
    clock.advance(999);
    expect(gate.lackOf('a', URI)).toBeNull();
    clock.advance(1);
    expect(gate.lackOf('a', URI)).toBe('2000 MB of memory in use, limit 1000 MB');
  });

  describe('admission while the applications are behind', () => {
    const isRefused = (gate: Admission, source: string): boolean => {
      gate.isOverRate(source);
      return gate.lackOf(source, URI) !== null;
    };
    const refused = (gate: Admission, source: string, calls: number): number =>
      Array.from({ length: calls }, () => isRefused(gate, source)).filter(Boolean).length;

    it('refuses every call of a lone source, and of equal ones', () => {
      isBehind = true;
      expect(refused(admission(), 'a', 50)).toBe(50);
      const gate = admission();
      for (let count = 0; count < 50; count += 1) expect([isRefused(gate, 'a'), isRefused(gate, 'b')]).toEqual([true, true]);
      expect(gate.totals.refusedByDelay).toBe(100);
    });

    it('serves a source that sends less than half of an equal share of new requests, from the first second of the other’s flood on', () => {
      const gate = admission();
      expect(refused(gate, 'carrier', 10)).toBe(0);
      clock.advance(1_000);
      isBehind = true;
      for (let second = 0; second < 3; second += 1) {
        // In its first second it is the modest one until it has sent half of what the carrier sent in the second before.
        expect(refused(gate, 'flood', 300)).toBe(second === 0 ? 296 : 300);
        expect(refused(gate, 'carrier', 10)).toBe(0);
        clock.advance(1_000);
      }
      // Once the other has stopped, it is a lone source again.
      clock.advance(1_000);
      expect(refused(gate, 'carrier', 10)).toBe(10);
    });
  });

  it.each([
    ['User-Agent: friendly-scanner', '<sip:a@b>', true],
    ['User-Agent: Friendly-Scanner/1.2', '<sip:a@b>', true],
    ['user-agent: x vaxsipuseragent y', '<sip:a@b>', true],
    ['User-Agent: Changed', '"sipvicious"<sip:100@1.1.1.1>', true],
    ['User-Agent: sipsak 0.9', '<sip:a@b>', false],
    ['User-Agent: A Carrier', '"Mr Sipvicious"<sip:100@1.1.1.1>', false],
    ['Server: friendly-scanner', '<sip:a@b>', false],
  ])('with %s from %s counts as a scanner: %s', (line, from, expected) => {
    const limits = { maxHeaders: 10, maxHeaderBytes: 1_000, maxBodyBytes: 1_000 };
    const parsed = parseMessage(`OPTIONS sip:x SIP/2.0\r\nFrom: ${from}\r\n${line}\r\n\r\n`, limits);
    const gate = admission();
    expect(parsed.ok && gate.isScanner(parsed.value)).toBe(expected);
    expect(gate.totals.scanners).toBe(expected ? 1 : 0);
  });
});
