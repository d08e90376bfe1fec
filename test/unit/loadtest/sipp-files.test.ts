import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ErrorLog, parseCallLine, parseRttLine, StatLines } from '../../../src/loadtest/sipp-files.js';

// The texts are those of Debian's SIPp 3.6.1.

const at = (seconds: string): string => `2026-01-02\t03:04:05.${seconds.split('.')[1] ?? ''}\t${seconds}: `;
const REFUSED = [
  `${at('1795317116.792304')}Aborting call on unexpected message for Call-Id '1-29071@127.0.0.1': while expecting '180' (index 2), received 'SIP/2.0 404 Not Found\r`,
  'CSeq: 1 INVITE\r',
  'Warning: 399 127.0.0.1 "NUMBER_NOT_ATTACHED: The called number is not attached for inbound calls."\r',
  'Reason: Q.850;cause=1;text="NUMBER_NOT_ATTACHED"\r',
  "Content-Length: 0\r\n\r\n'",
].join('\n');
const OVERLOADED = `${at('1795317117.000001')}Aborting call on unexpected message for Call-Id '2-1@127.0.0.1': while expecting '200' (index 4), received 'SIP/2.0 503 Service Unavailable\r\nRetry-After: 3\r\n\r\n'`;
const HUNG_UP = `${at('1795317118.000000')}Aborting call on unexpected message for Call-Id '3-1@127.0.0.1': while expecting '200' (index 8), received 'BYE sip:load@127.0.0.1 SIP/2.0\r\nReason: Q.850;cause=41;text="MEDIA_TIMEOUT"\r\n\r\n'`;
const TIMEOUT = `${at('1795317119.000000')}Call-Id: 4-1@127.0.0.1, receive timeout on message answered:2 without label to jump to (ontimeout attribute): aborting call`;
const DEAD = `${at('1795317120.000000')}Dead call 4-1@127.0.0.1 (aborted at index 2), received 'SIP/2.0 200 OK\r\n\r\n'`;
const ABORTED = `${at('1795317121.000000')}Aborted call with Call-ID '5-1@127.0.0.1'`;
const LOG = `The following events occurred:\n${REFUSED}${OVERLOADED}${HUNG_UP}${TIMEOUT}${DEAD}${ABORTED}`;

const FOUND = [
  { code: '404', reason: 'NUMBER_NOT_ATTACHED' },
  { code: '503', reason: null },
  { code: 'BYE', reason: 'MEDIA_TIMEOUT' },
  { code: 'timeout', reason: null },
  { code: 'interrupted', reason: null },
];

describe("SIPp's error log", () => {
  it('has for each failed call the code and the gateway’s reason', () => {
    const log = new ErrorLog();
    const errors = [...log.read(LOG), ...log.end()];
    expect(errors.map(({ code, reason }) => ({ code, reason }))).toEqual(FOUND);
    expect(errors[0]?.atMs).toBeCloseTo(1_795_317_116_792.304, 2);
  });

  it('is read alike in whatever pieces it comes', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: LOG.length }), { maxLength: 8 }), (cuts) => {
        const log = new ErrorLog();
        const ends = [...cuts].sort((one, other) => one - other).concat(LOG.length);
        const errors = ends.flatMap((end, index) => log.read(LOG.slice(ends[index - 1] ?? 0, end)));
        expect([...errors, ...log.end()].map(({ code, reason }) => ({ code, reason }))).toEqual(FOUND);
      }),
    );
  });
});

describe('the call log of SIPp', () => {
  it('has for an answered call its time, and where its media goes', () => {
    const line =
      'answered 1795317630.000000 147656.000000 1795317630.000000 154425.000000 slot=3 to=127.0.0.1|50728 key=rFSEO/H/oEsRcSPxHa2Y6IJ0alj0kRX1bK4y11va payload=0 events=101';
    const parsed = parseCallLine(line);
    expect(parsed).toMatchObject({
      kind: 'answered',
      media: {
        slot: 3,
        address: '127.0.0.1',
        port: 50_728,
        key: 'rFSEO/H/oEsRcSPxHa2Y6IJ0alj0kRX1bK4y11va',
        payloadType: 0,
        eventsType: 101,
      },
    });
    expect(parsed?.kind === 'answered' && parsed.latencyMs).toBeCloseTo(6.769, 3);
  });

  it('is read correctly when a second ends between INVITE and 200', () => {
    expect(parseCallLine('answered 10.000000 999000.000000 11.000000 4000.000000')).toEqual({
      kind: 'answered',
      atMs: 11_004,
      latencyMs: 5,
      media: null,
    });
  });

  it('has no events type for an answer without telephone-event, and ignores other lines', () => {
    expect(parseCallLine('answered 1 0 1 0 slot=0 to=::1|9 key=AA== payload=8 events=')).toMatchObject({
      media: { eventsType: null, address: '::1' },
    });
    expect(parseCallLine('ending slot=12')).toEqual({ kind: 'ending', slot: 12 });
    expect([parseCallLine('answered'), parseCallLine('something else'), parseCallLine('')]).toEqual([null, null, null]);
  });

  it('has the response times of other scenarios', () => {
    expect(['Date_ms;response_time_ms;rtd_no', '120.001;68;invite', '144.001;40.5;1'].map(parseRttLine)).toEqual([null, 68, 40.5]);
  });
});

describe('the counters of SIPp', () => {
  it('are found by the names of their columns', () => {
    const lines = new StatLines();
    expect(
      lines.read('StartTime;CurrentTime;TargetRate;TotalCallCreated;CurrentCall;SuccessfulCall(P);SuccessfulCall(C);FailedCall(C);'),
    ).toBeNull();
    const time = '2026-01-02\t03:04:05.698373\t1795317112.698373';
    expect(lines.read(`x;${time};20;40;21;19;19;2;`)).toEqual({
      atMs: 1_795_317_112_698.373,
      created: 40,
      current: 21,
      successful: 19,
      failed: 2,
    });
    expect(lines.read(`x;${time};20;40`)).toBeNull();
  });
});
