import { expect, it } from 'vitest';
import { CallTrace } from '../../../../src/gateway/call/call-trace.js';
import type { SrfResponse } from '../../../../src/gateway/ports/signalling.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

function responding(): { response: SrfResponse; settle: (raw?: string) => void } {
  const callbacks: ((error: unknown, sent?: { raw: string }) => void)[] = [];
  return {
    response: { send: (_status, _reason, _options, callback) => void callbacks.push(callback ?? (() => undefined)) },
    settle: (raw) => callbacks.shift()?.(null, raw === undefined ? undefined : { raw }),
  };
}

it('the trace has a request, and its answer with the text that the SIP server sent', async () => {
  const trace = new CallTrace(new VirtualClock(), true);
  const { response, settle } = responding();
  trace.received({ method: 'INVITE', uri: 'sip:1@gw', msg: { raw: 'INVITE sip:1@gw SIP/2.0\r\nTo: x\r\n\r\n', headers: {} } }, response);
  response.send(486, 'Busy Here', {});
  let isSettled = false;
  void trace.settled()?.then(() => (isSettled = true));
  await Promise.resolve();
  expect(isSettled).toBe(false);
  settle('SIP/2.0 486 Busy Here\r\nTo: x;tag=1\r\n\r\n');
  await trace.settled();
  expect(trace.settled()).toBeNull();
  expect(trace.read()).toMatchObject([
    { source: 'sip', direction: 'in', summary: 'INVITE sip:1@gw SIP/2.0', text: expect.stringContaining('To: x') as unknown },
    { source: 'sip', direction: 'out', summary: 'SIP/2.0 486 Busy Here', text: expect.stringContaining('tag=1') as unknown },
  ]);
});

it('the trace has a command to rtpengine with both descriptions and its duration, also one that failed', async () => {
  const clock = new VirtualClock();
  const trace = new CallTrace(clock, true);
  let answer: (value: { sdp: string }) => void = () => undefined;
  const work = trace.relay('offer', 'v=0 asked', new Promise<{ sdp: string }>((resolve) => (answer = resolve)));
  clock.advance(3);
  answer({ sdp: 'v=0 answered' });
  await work;
  await expect(trace.relay('answer', '', Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(trace.read().map(({ summary, text }) => [summary, text])).toEqual([
    ['offer', 'v=0 asked'],
    ['offer answered, 3.0 ms', 'v=0 answered'],
    ['answer', ''],
    ['answer failed, 0.0 ms', null],
  ]);
});

it('the trace keeps the first and the last of too many entries, and the number left out', () => {
  const trace = new CallTrace(new VirtualClock(), true);
  for (let index = 0; index < 1_000; index += 1) trace.add('gateway', null, String(index));
  const summaries = trace.read().map(({ summary }) => summary);
  expect(summaries).toHaveLength(201);
  expect([summaries[0], summaries[99], summaries[100], summaries[101], summaries[200]]).toEqual([
    '0',
    '99',
    '800 entries omitted',
    '900',
    '999',
  ]);
});

it('the trace keeps at most 64 KiB of texts, including the last', () => {
  const trace = new CallTrace(new VirtualClock(), true);
  for (let index = 0; index < 100; index += 1) trace.add('sip', 'in', String(index), 'x'.repeat(index === 50 ? 100_000 : 2_000));
  const entries = trace.read();
  const characters = entries.reduce((sum, { text }) => sum + (text?.length ?? 0), 0);
  expect(characters).toBeLessThanOrEqual(65_536);
  expect(characters).toBeGreaterThan(55_000);
  expect([entries[0]?.summary, entries.at(-1)?.summary]).toEqual(['0', '99']);
  expect(entries.filter(({ summary }) => summary.includes('omitted'))).toHaveLength(1);
});

it('the trace keeps nothing when it is off', () => {
  const trace = new CallTrace(new VirtualClock(), false);
  const { response } = responding();
  trace.received({ msg: { raw: 'x', headers: {} } }, response);
  response.send(200, 'OK', {});
  trace.add('gateway', null, 'x');
  expect(trace.read()).toEqual([]);
});
