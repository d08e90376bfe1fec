import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { startCall, stepCall } from '../../src/gateway/call/machine.js';
import type { CallEffect, CallEvent } from '../../src/gateway/call/state.js';
import { NO_USAGE } from '../../src/gateway/admission/admission.js';
import { ANSWER, CALL, FACTS, INSIDE, LATE_CALL, LATE_FACTS, OUTSIDE, RELAY_LOST, RELAY_LOST_FOR_GOOD } from '../support/call-machine.js';
import { RunnerBench, turns } from '../support/runner-bench.js';
import { offerSdp } from '../support/sdp.js';

const HELD = offerSdp({ direction: 'sendonly' });

const EVENTS: readonly CallEvent[] = [
  { type: 'routed', route: null, load: NO_USAGE, isStale: false, identity: null, credentials: null },
  { type: 'agent-connected' },
  { type: 'relay-offered', sdp: 'garbage', attempt: 0 },
  { type: 'relay-offered', sdp: INSIDE, attempt: 1 },
  { type: 'relay-answered', sdp: OUTSIDE, attempt: 1 },
  { type: 'relay-answered', sdp: INSIDE, attempt: 0 },
  { type: 'relay-offered-to-carrier', sdp: OUTSIDE, attempt: 1 },
  { type: 'relay-answered-from-carrier', sdp: INSIDE, attempt: 1 },
  { type: 'refresh-due' },
  { type: 'reinvite-answered', status: 200, sdp: ANSWER, retryAfterMs: 100, attempt: 1 },
  { type: 'reinvite-answered', status: 491, sdp: '', retryAfterMs: 100, attempt: 1 },
  { type: 'failed', reason: 'STORE_UNAVAILABLE', attempt: null },
  { type: 'failed', reason: 'MEDIA_UNAVAILABLE', attempt: 0 },
  { type: 'failed', reason: 'AGENT_UNAVAILABLE', attempt: null },
  { type: 'failed', reason: 'INTERNAL_ERROR', attempt: null },
  { type: 'answer-failed', reason: 'CALLER_CANCELLED' },
  { type: 'cancelled' },
  { type: 'acknowledged', sdp: '' },
  { type: 'acknowledged', sdp: 'garbage' },
  { type: 'bye', reason: 'CALLER_HANGUP' },
  { type: 'bye', reason: 'ACK_TIMEOUT' },
  { type: 'hangup', reason: 'AGENT_HANGUP' },
  { type: 'hangup', reason: 'API_STOPPED' },
  { type: 'hangup', reason: 'SHUTDOWN' },
  { type: 'reoffered', requestId: 1, method: 'INVITE', sdp: HELD },
  { type: 'reoffered', requestId: 2, method: 'INVITE', sdp: '' },
  { type: 'reoffered', requestId: 3, method: 'UPDATE', sdp: offerSdp() },
  { type: 'transfer-asked', requestId: 't', to: '+15550100300' },
  { type: 'transfer-asked', requestId: null, to: 'nobody' },
  { type: 'refer-answered', status: 202, referId: 1 },
  { type: 'refer-answered', status: 481, referId: 1 },
  { type: 'refer-answered', status: 202, referId: 2 },
  { type: 'notified', requestId: 4, status: 100, isLast: false },
  { type: 'notified', requestId: 5, status: 200, isLast: true },
  { type: 'notified', requestId: 6, status: 486, isLast: true },
  { type: 'timer', timer: 'transfer' },
  RELAY_LOST,
  RELAY_LOST_FOR_GOOD,
  { type: 'leg-lost' },
  { type: 'timer', timer: 'ringing' },
  { type: 'timer', timer: 'max-duration' },
  { type: 'timer', timer: 'reinvite' },
];

/** Mostly the usual way, so that schedules get beyond the look-up; the request ids of the carrier's changes are told apart. */
const schedule = (usual: readonly CallEvent[]) =>
  fc
    .array(fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...EVENTS) }, { weight: 3, arbitrary: fc.constantFrom(...usual.slice(1)) }), {
      maxLength: 30,
    })
    .map((events) =>
      events.map((event, index) => (event.type === 'reoffered' || event.type === 'notified' ? { ...event, requestId: index } : event)),
    );

describe('the call machine under any order of events', () => {
  it.each([
    ['with an offer', CALL, FACTS],
    ['without one', LATE_CALL, LATE_FACTS],
    ['that may get the test line', CALL, { ...FACTS, standIn: 'test-line' as const }],
    ['that may get a second provider', CALL, { ...FACTS, standIn: 'second-provider' as const }],
  ])('of an INVITE %s ends once, answers every request once, and sends BYE only after the ACK', (_what, usual, facts) => {
    fc.assert(
      fc.property(schedule(usual), (events) => {
        let state = startCall(facts);
        const effects: CallEffect[] = [...stepCall(state, { type: 'invited' }).effects];
        let isAcknowledged = false;
        let isConnected = false;
        let transfers = 0;
        const requested: number[] = [];
        for (const event of [...events, { type: 'hangup', reason: 'SHUTDOWN' } as const, { type: 'bye', reason: 'ACK_TIMEOUT' } as const]) {
          const wasAnswered = effects.some((effect) => effect.do === 'answer');
          const step = stepCall(state, event);
          state = step.state;
          if (event.type === 'transfer-asked' && !effects.some((effect) => effect.do === 'finish')) transfers += 1;
          const wasRouted = effects.some((effect) => effect.do === 'connect-agent');
          if (event.type === 'agent-connected' && wasRouted) isConnected = true;
          if (step.effects.some((effect) => effect.do === 'connect-agent')) isConnected = false;
          // Nobody is answered without somebody to talk to.
          if (step.effects.some((effect) => effect.do === 'answer')) expect(isConnected).toBe(true);
          if (event.type === 'acknowledged' && wasAnswered) isAcknowledged = true;
          if (event.type === 'reoffered' || event.type === 'notified') requested.push(event.requestId);
          if (step.effects.some(({ do: what }) => what === 'bye' || what === 'reinvite' || what === 'refer'))
            expect(isAcknowledged).toBe(true);
          effects.push(...step.effects);
        }
        const count = (kind: CallEffect['do']): number => effects.filter((effect) => effect.do === kind).length;
        expect(state.name).toBe('Ended');
        expect(count('finish')).toBe(1);
        // After the end only requests that crossed it are answered.
        const last = effects.slice(effects.findIndex((effect) => effect.do === 'finish') + 1);
        expect(last.every((effect) => effect.do === 'reject' && effect.reason === 'NO_DIALOG')).toBe(true);
        expect(count('answer') + count('refuse')).toBeLessThanOrEqual(1);
        expect(count('bye')).toBeLessThanOrEqual(1);
        // Each transfer is refused, or asked for; and of those the agent hears no more than that it was accepted, and that it failed.
        const told = effects.flatMap((effect) => (effect.do === 'notify-agent' ? [effect.answer] : []));
        expect(told.filter(({ type }) => type === 'refused').length + count('refer')).toBe(transfers);
        expect(told.filter((answer) => answer.type === 'transfer-progress' && answer.state === 'accepted').length).toBeLessThanOrEqual(
          count('refer'),
        );
        expect(told.filter((answer) => answer.type === 'transfer-progress' && answer.state === 'failed').length).toBeLessThanOrEqual(
          count('refer'),
        );
        const deaths = events.filter(({ type }) => type === 'leg-lost').length;
        expect(count('connect-agent')).toBeLessThanOrEqual((facts.standIn === null ? 1 : 2) + deaths);
        const said = effects.flatMap((effect) => (effect.do === 'accept' || effect.do === 'reject' ? [effect.requestId] : []));
        expect(said.toSorted((a, b) => a - b)).toEqual(requested.toSorted((a, b) => a - b));
        if (count('ring') > 0)
          expect(effects.findIndex((e) => e.do === 'ring')).toBeGreaterThan(effects.findIndex((e) => e.do === 'offer-relay'));
      }),
      { numRuns: 5_000 },
    );
  });
});

const THREAD_DIES = 'the media thread dies';

/** What a schedule may do at any moment. */
type Action = (bench: RunnerBench) => Promise<void> | void;

const action: fc.Arbitrary<{ readonly name: string; readonly run: Action }> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.nat(7).map((index) => ({ name: `settle ${String(index)}`, run: (bench: RunnerBench) => bench.settle(index, true) })),
  },
  {
    weight: 1,
    arbitrary: fc.nat(7).map((index) => ({ name: `fail ${String(index)}`, run: (bench: RunnerBench) => bench.settle(index, false) })),
  },
  {
    weight: 6,
    arbitrary: fc.constantFrom<{ readonly name: string; readonly run: Action }>(
      { name: 'CANCEL', run: (bench) => bench.cancel() },
      { name: 'ACK', run: (bench) => bench.say('ack') },
      { name: 'ACK with an answer', run: (bench) => bench.say('ack', ANSWER) },
      { name: 'ACK with garbage', run: (bench) => bench.say('ack', 'garbage') },
      { name: 'BYE', run: (bench) => bench.say('destroy') },
      { name: 'no ACK', run: (bench) => bench.say('destroy', '', 'ACK timeout') },
      { name: 're-INVITE: hold', run: (bench) => bench.say('modify', HELD) },
      { name: 're-INVITE: the same', run: (bench) => bench.say('modify', FACTS.sdp) },
      { name: 're-INVITE without an offer', run: (bench) => bench.say('modify') },
      { name: 'UPDATE', run: (bench) => bench.say('update', HELD) },
      { name: '200 to our re-INVITE', run: (bench) => bench.answerReinvite(200, ANSWER) },
      { name: '491 to our re-INVITE', run: (bench) => bench.answerReinvite(491, '') },
      { name: 'the agent hangs up', run: (bench) => bench.runner.dispatch({ type: 'hangup', reason: 'AGENT_HANGUP' }) },
      { name: 'the agent is lost', run: (bench) => bench.runner.dispatch({ type: 'hangup', reason: 'AGENT_LOST' }) },
      { name: 'transfer', run: (bench) => bench.agentSays({ type: 'transfer', requestId: 't', to: '+15550100300' }) },
      { name: 'a tool', run: (bench) => bench.agentSays({ type: 'tool', requestId: 'u', name: 'inline', input: {} }) },
      {
        name: 'something was said',
        run: (bench) => bench.agentSays({ type: 'transcript', entries: [{ speaker: 'caller', text: 'Hello?', at_ms: 1 }] }),
      },
      { name: 'NOTIFY 100', run: (bench) => bench.notify('100 Trying', 'active') },
      { name: 'NOTIFY 200', run: (bench) => bench.notify('200 OK', 'terminated;reason=noresource') },
      { name: 'NOTIFY 486', run: (bench) => bench.notify('486 Busy Here', 'terminated;reason=noresource') },
      { name: 'a minute passes', run: (bench) => bench.clock.advance(60_000) },
      { name: THREAD_DIES, run: (bench) => bench.runner.dispatch({ type: 'leg-lost' }) },
      { name: 'rtpengine dies', run: (bench) => bench.runner.dispatch(RELAY_LOST) },
      { name: 'no media comes', run: (bench) => bench.runner.dispatch({ type: 'hangup', reason: 'MEDIA_TIMEOUT' }) },
      { name: 'stopped by API', run: (bench) => bench.runner.dispatch({ type: 'hangup', reason: 'API_STOPPED' }) },
      { name: 'drain', run: (bench) => bench.runner.dispatch({ type: 'hangup', reason: 'SHUTDOWN' }) },
      { name: 'the SIP server is lost', run: (bench) => bench.runner.serverLost() },
      { name: 'the SIP server is back', run: (bench) => bench.runner.serverBack(0) },
      { name: 'half a second passes', run: (bench) => bench.clock.advance(500) },
    ),
  },
);

describe('the call runner under any schedule of CANCEL, BYE, failures, timeouts and stops', () => {
  // A busy machine has the time limit of a test for each quarter.
  it.each(['first', 'second', 'third', 'last'])(
    'ends each call once, with one reason and one record, and leaves nothing open (%s quarter of the schedules)',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.boolean(),
          fc.boolean(),
          fc.boolean(),
          fc.array(action, { maxLength: 60 }),
          async (isLate, isConnected, mayFallBack, actions) => {
            const bench = new RunnerBench(isLate, mayFallBack ? 'test-line' : null);
            // Half of the schedules begin within the call: most end before they would get there.
            if (isConnected) {
              await bench.connect(isLate ? ANSWER : '');
              expect(bench.runner.stateName).toBe('Talking');
            }
            for (const { run } of actions) await run(bench);
            // Whatever state it is in now, it is ended in an orderly way.
            bench.runner.dispatch({ type: 'hangup', reason: 'SHUTDOWN' });
            await bench.drain();
            bench.say('destroy', '', 'ACK timeout');
            await bench.drain();
            expect(bench.ended).toBe(1);
            expect(bench.runner.stateName).toBe('Ended');
            // The store may be away when the one record is written.
            expect(bench.writes).toBe(1);
            expect(bench.records.length).toBeLessThanOrEqual(1);
            expect(bench.open.agents.size).toBe(0);
            // Once more for each media thread that died under the agent.
            const deaths = actions.filter(({ name }) => name === THREAD_DIES).length;
            expect(bench.connects).toBeLessThanOrEqual((mayFallBack ? 2 : 1) + deaths);
            expect([bench.open.legs.size, bench.open.sessions.size, bench.open.leases.size, bench.open.snapshots.size]).toEqual([
              0, 0, 0, 0,
            ]);
            // One final answer to the INVITE at most: none when it was cancelled, or when the SIP server was lost.
            expect(bench.statuses.filter((status) => status >= 200).length).toBeLessThanOrEqual(1);
            for (const { answers } of bench.asked) expect(answers).toHaveLength(1);
            expect(bench.byes).toBeLessThanOrEqual(2);
          },
        ),
        { numRuns: 1_250 },
      );
    },
  );

  it('writes one record of a call whose gateway is killed at any moment of its end, in this process or in the next', async () => {
    // What is under way when it is killed never comes to its end.
    for (let steps = 0; ; steps += 1) {
      const bench = new RunnerBench(false);
      await bench.connect('');
      bench.say('destroy');
      await turns();
      for (let step = 0; step < steps; step += 1) await bench.settle(0, true);
      if (bench.ended > 0) {
        expect([steps, bench.records.map(({ reason }) => reason)]).toEqual([2, ['CALLER_HANGUP']]);
        return;
      }
      expect([bench.pending.map(({ name }) => name), bench.records]).toEqual([[['delete', 'record'][steps]], []]);
      bench.pending.length = 0;
      bench.restart().dispatch({ type: 'hangup', reason: 'GATEWAY_RESTARTED' });
      await bench.drain();
      expect(bench.records.map(({ reason, resumed }) => [reason, resumed])).toEqual([['GATEWAY_RESTARTED', 1]]);
      expect(bench.open.snapshots.size).toBe(0);
    }
  });

  it.each([
    ['goes on when its agent is reached again', true],
    ['ends with AGENT_LOST when it is not', false],
  ])('takes up a call of a killed gateway, which %s', async (_what, isReached) => {
    const bench = new RunnerBench(false);
    await bench.connect('');
    const runner = bench.restart();
    for (const name of ['open', 'tools']) {
      expect(bench.pending.map((one) => one.name)).toEqual([name]);
      await bench.settle(0, true);
    }
    expect(bench.pending.map(({ name }) => name)).toEqual(['agent']);
    await bench.settle(0, isReached);
    if (isReached) {
      expect([runner.stateName, bench.connects]).toEqual(['Talking', 2]);
      return;
    }
    await bench.drain();
    expect(bench.records.map(({ reason, resumed }) => [reason, resumed])).toEqual([['AGENT_LOST', 1]]);
    expect([bench.byes, bench.open.agents.size, bench.open.legs.size]).toEqual([1, 0, 0]);
  });

  it('stores a call before its 200 leaves, and takes it up in the next process', async () => {
    const bench = new RunnerBench(false);
    while (!bench.pending.some(({ name }) => name === '200')) await bench.settle(0, true);
    expect(bench.open.snapshots.size).toBe(1);
    // Killed with the 200 on its way: this process gets to know nothing more.
    bench.pending.length = 0;
    const runner = bench.restart();
    while (bench.pending.length > 0) await bench.settle(0, true);
    expect([runner.stateName, bench.connects]).toEqual(['Talking', 2]);
    bench.hasDialog = true;
    bench.say('destroy');
    await bench.drain();
    expect(bench.records).toMatchObject([{ reason: 'CALLER_HANGUP', sip_status: 200, resumed: 1 }]);
    expect(bench.open.snapshots.size).toBe(0);
  });

  it('keeps nothing of a call that ended while its 200 was on its way', async () => {
    const bench = new RunnerBench(false);
    const named = (isThis: boolean): number => bench.pending.findIndex(({ name }) => (name === '200') === isThis);
    while (named(true) < 0) await bench.settle(0, true);
    bench.runner.serverLost();
    while (bench.ended === 0) {
      await Promise.resolve();
      if (named(false) >= 0) await bench.settle(named(false), true);
    }
    await bench.settle(named(true), true);
    await bench.drain();
    expect([bench.ended, bench.open.snapshots.size]).toEqual([1, 0]);
  });
});
