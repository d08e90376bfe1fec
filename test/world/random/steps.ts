import fc from 'fast-check';

/** A part of the product that can die. */
export type Part = 'gateway' | 'sip-server' | 'redis' | 'rtpengine-1' | 'rtpengine-2';

/** What happens in a world, as data: a script of them can be kept and played again. Calls go by their place among those that were begun. */
export type Step =
  /** A carrier's INVITE. `late`: without an offer. */
  | { readonly do: 'call'; readonly number: 'own' | 'unknown' | 'limited'; readonly late: boolean }
  | { readonly do: 'cancel'; readonly call: number }
  | { readonly do: 'hang-up'; readonly call: number }
  | { readonly do: 'hold' | 'resume'; readonly call: number }
  /** A call that the customer places; the callee does this with it. */
  | { readonly do: 'place'; readonly callee: 'answers' | 'rings' | 'is-busy' | 'is-mute' }
  | { readonly do: 'callee-hangs-up'; readonly call: number }
  | { readonly do: 'stop-by-api'; readonly call: number }
  /** The bot of a call, by its place among the bots' connections. */
  | { readonly do: 'bot-says' | 'bot-hangs-up' | 'bot-breaks'; readonly bot: number }
  | { readonly do: 'kill'; readonly part: Part }
  | { readonly do: 'start'; readonly part: Part }
  | { readonly do: 'stall' | 'go-on'; readonly part: 'redis' | 'rtpengine-1' | 'rtpengine-2' }
  /** Some datagrams to and from rtpengine are lost. */
  | { readonly do: 'lose'; readonly datagrams: number }
  /** The carrier's connection breaks, and it opens another one. */
  | { readonly do: 'reconnect' }
  | { readonly do: 'pass'; readonly ms: number }
  /** Turns of the event loop, so that the next step comes in the middle of things. */
  | { readonly do: 'turns'; readonly turns: number };

const PARTS: readonly Part[] = ['gateway', 'sip-server', 'redis', 'rtpengine-1', 'rtpengine-2'];
/** Places among what was begun: beyond the last they begin again at the first. */
const place = fc.nat(7);

/** The gateway holds the calls: its deaths are the ones to survive. */
const kill = fc.record({ do: fc.constant('kill' as const), part: fc.constantFrom('gateway', 'gateway', 'gateway', ...PARTS) });
const start = fc.record({ do: fc.constant('start' as const), part: fc.constantFrom(...PARTS) });
const pass = fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 20, 100, 500, 1_000, 3_000) });
const turns = fc.record({ do: fc.constant('turns' as const), turns: fc.integer({ min: 1, max: 40 }) });

/** What a caller, a callee, a customer or a bot does. */
const deed: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant('call' as const),
      number: fc.constantFrom('own', 'own', 'limited', 'limited', 'unknown'),
      late: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), call: place }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('hang-up' as const), call: place }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('hold' as const, 'resume' as const), call: place }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('place' as const),
      callee: fc.constantFrom('answers', 'answers', 'rings', 'is-busy', 'is-mute'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('callee-hangs-up' as const), call: place }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stop-by-api' as const), call: place }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('bot-says' as const, 'bot-hangs-up' as const, 'bot-breaks' as const), bot: place }),
  },
);

/** What becomes of the parts and of the network. */
const fate: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: kill },
  { weight: 5, arbitrary: start },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('stall' as const, 'go-on' as const),
      part: fc.constantFrom('redis', 'rtpengine-1', 'rtpengine-2'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('lose' as const), datagrams: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'reconnect' as const }) },
);

/** A part that dies in the middle of what somebody does is where faults are, so that comes often. */
const move: fc.Arbitrary<readonly Step[]> = fc.oneof(
  { weight: 8, arbitrary: deed.map((one) => [one]) },
  { weight: 2, arbitrary: fate.map((one) => [one]) },
  { weight: 5, arbitrary: pass.map((one) => [one]) },
  { weight: 2, arbitrary: fc.tuple(deed, turns, deed) },
  { weight: 3, arbitrary: fc.tuple(deed, turns, kill, pass, start) },
);

export const script: fc.Arbitrary<readonly Step[]> = fc
  .array(move, { minLength: 4, maxLength: 20, size: 'max' })
  .map((moves) => moves.flat());
