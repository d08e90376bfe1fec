import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CALLER, JoinedWorld } from '../support/joined-world.js';

const LEG = 'leg';

/** What may come at any moment of a transfer by a second leg. */
const RACES: readonly { readonly name: string; readonly run: (world: JoinedWorld) => void }[] = [
  { name: 'the caller hangs up', run: (world) => world.bye(CALLER) },
  { name: 'the other party hangs up', run: (world) => world.bye(LEG) },
  { name: 'the caller is stopped by the API', run: (world) => world.dispatch(CALLER, { type: 'hangup', reason: 'API_STOPPED' }) },
  {
    name: 'the leg is stopped by the API, as its answer comes',
    run: (world) => world.dispatch(LEG, { type: 'hangup', reason: 'API_STOPPED' }),
  },
  { name: 'nobody answers', run: (world) => world.fire(LEG, 'unanswered') },
  { name: 'nobody answers the CANCEL', run: (world) => world.fire(LEG, 'cancelling') },
  { name: 'the caller’s time is over', run: (world) => world.fire(CALLER, 'max-duration') },
  { name: 'the leg’s time is over', run: (world) => world.fire(LEG, 'max-duration') },
  { name: 'the agent hangs up', run: (world) => world.dispatch(CALLER, { type: 'hangup', reason: 'AGENT_HANGUP' }) },
  { name: 'the agent is lost', run: (world) => world.dispatch(CALLER, { type: 'hangup', reason: 'AGENT_LOST' }) },
  { name: 'the media thread dies', run: (world) => world.loseMedia() },
  { name: 'rtpengine is lost, another takes the calls', run: (world) => world.loseRelay(true) },
  { name: 'rtpengine is lost, and no other is there', run: (world) => world.loseRelay(false) },
  { name: 'the caller’s carrier sends a re-INVITE', run: (world) => world.reoffer(CALLER, 'sendrecv') },
  { name: 'the caller holds', run: (world) => world.reoffer(CALLER, 'sendonly') },
  { name: 'the other carrier sends a re-INVITE', run: (world) => world.reoffer(LEG, 'sendonly') },
  { name: 'a second transfer is asked for', run: (world) => world.transfer() },
  { name: 'the agent lets all three talk', run: (world) => world.step('conference') },
  { name: 'the agent leaves the other two', run: (world) => world.step('complete') },
  { name: 'the agent lets the other party go', run: (world) => world.step('cancel') },
  { name: 'a new document takes the caller back', run: (world) => world.dispatch(CALLER, { type: 'leg-left' }) },
  { name: 'the SIP server loses the caller', run: (world) => world.loseDialog(CALLER) },
  { name: 'the SIP server loses the leg', run: (world) => world.loseDialog(LEG) },
  { name: 'the gateway is shut down', run: (world) => world.shutDown() },
  { name: 'the re-INVITE is due again', run: (world) => world.fire(CALLER, 'reinvite') },
  { name: 'a carrier is asked whether it is there', run: (world) => world.fire(CALLER, 'held') },
  { name: 'the other carrier is asked whether it is there', run: (world) => world.fire(LEG, 'held') },
];

const moment = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ index: fc.nat(5), choice: fc.nat(15) }).map(({ index, choice }) => ({
      name: `settle ${String(index)} with ${String(choice)}`,
      run: (world: JoinedWorld) => world.settle(index, choice),
    })),
  },
  {
    weight: 5,
    arbitrary: fc.constant({ name: 'settle the first as usual', run: (world: JoinedWorld) => world.settle(0, 0) }),
  },
  { weight: 2, arbitrary: fc.constantFrom(...RACES) },
);

const schedules = fc.record({
  moments: fc.array(moment, { maxLength: 40 }),
  isRekeyed: fc.boolean(),
  isBriefed: fc.constantFrom(false, true, 'by-agent' as const),
});

describe('a call that is transferred by a second leg', () => {
  it.each(['end', 'go-on'] as const)(
    'is joined or over after any order of events, and leaves nothing open (after the transfer: %s)',
    (afterwards) => {
      fc.assert(
        fc.property(schedules, ({ moments, isRekeyed, isBriefed }) => {
          const world = new JoinedWorld(afterwards, isRekeyed, isBriefed);
          world.transfer();
          for (const { run } of moments) run(world);
          world.drain();
          world.expectSettled();
          world.bye(CALLER);
          world.drain();
          world.expectNothingLeft();
        }),
        { numRuns: 1_000 },
      );
    },
  );

  it.each(RACES)('is settled and leaves nothing open when, once joined, $name', ({ run }) => {
    for (const [afterwards, isBriefed] of [
      ['end', false],
      ['go-on', false],
      ['end', true],
      ['end', 'by-agent'],
    ] as const) {
      const world = new JoinedWorld(afterwards, false, isBriefed);
      world.transfer();
      world.drain();
      expect(world.calls.get(CALLER)?.state.second?.phase).toBe('joined');
      run(world);
      world.drain();
      world.expectSettled();
      world.bye(CALLER);
      world.drain();
      world.expectNothingLeft();
    }
  });
});
