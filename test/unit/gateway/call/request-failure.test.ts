import { beforeEach, describe, expect, it } from 'vitest';
import { requestFailure } from '../../../../src/gateway/call/request-failure.js';
import { RunnerBench } from '../../../support/runner-bench.js';

describe('a request of the gateway within the dialog', () => {
  it.each([
    ['BYE', 481, 'BYE: answered with 481'],
    ['BYE', 200, null],
    ['REFER', 603, 'REFER: answered with 603'],
    ['INVITE', 488, 'INVITE: answered with 488'],
    // It is sent again.
    ['INVITE', 491, null],
    ['UPDATE', 422, 'UPDATE: answered with 422'],
    ['OPTIONS', 408, 'OPTIONS: answered with 408'],
    // Says nothing of the call.
    ['OPTIONS', 405, null],
    ['OPTIONS', 501, null],
  ])('has the right failure in the record when it is %s, answered with %d', (method, status, told) => {
    expect(requestFailure(method, null, { status, unanswered: null })).toBe(told);
  });

  it('says why nobody answered it', () => {
    const unanswered = '192.0.2.1:5061 refused the connection (ECONNREFUSED)';
    expect(requestFailure('BYE', null, { status: 503, unanswered })).toBe(`BYE: ${unanswered}`);
  });

  it('did not fail if it is a BYE in a dialog that the SIP server has ended already', () => {
    const ended = new Error('Server error: unable to find dialog for dialog id provided');
    expect(requestFailure('BYE', ended, undefined)).toBeNull();
    expect(requestFailure('REFER', ended, undefined)).toMatch(/^REFER: Server error/);
  });

  it('has its error in the record when it was not sent', () => {
    expect(requestFailure('BYE', new Error('no route'), undefined)).toBe('BYE: no route');
  });
});

describe('the record of a call that is refused before its number is looked up', () => {
  it('has the figure and its limit', async () => {
    const bench = new RunnerBench(false);
    bench.runner.dispatch({ type: 'inadmissible', reason: 'OVERLOADED', detail: 'calls in progress: 2, limit 2' });
    await bench.drain();
    expect(bench.records).toMatchObject([{ reason: 'OVERLOADED', reason_detail: 'calls in progress: 2, limit 2' }]);
  });
});

describe('the record of a call', () => {
  let bench: RunnerBench;
  const settle = (method: string, succeeds: boolean): Promise<void> =>
    bench.settle(
      bench.pending.findIndex(({ name }) => name === method),
      succeeds,
    );

  beforeEach(async () => {
    bench = new RunnerBench(false);
    await bench.connect('');
    bench.runner.serverBack(0);
  });

  it('has the last request that failed, also after a restart', async () => {
    await settle('OPTIONS', false);
    const successor = bench.restart();
    await bench.settle(0, true);
    successor.dispatch({ type: 'bye', reason: 'CALLER_HANGUP' });
    await bench.drain();
    expect(bench.records.map(({ signalling_error: text }) => text)).toEqual(['OPTIONS: not sent']);
  });

  it('has the BYE that could not be sent', async () => {
    bench.runner.dispatch({ type: 'hangup', reason: 'AGENT_HANGUP' });
    await settle('BYE', false);
    await bench.drain();
    expect(bench.records.map(({ signalling_error: text }) => text)).toEqual(['BYE: not sent']);
  });

  it('has no failure when nothing failed', async () => {
    await settle('OPTIONS', true);
    bench.say('destroy');
    await bench.drain();
    expect(bench.records.map(({ signalling_error: text }) => text)).toEqual([null]);
  });
});
