import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LEASED_AHEAD_MS, SlotsAhead, type Claim } from '../../src/gateway/store/redis/leases/slots-ahead.js';

const KEY = 'num:{1}';

interface Answer {
  readonly isTaken: boolean;
  readonly left: number;
}

/** What take-slots.lua does under `max_concurrent_calls`. */
class Redis {
  readonly calls = new Set<string>();
  readonly ahead = new Map<string, number>();

  constructor(private readonly most: number) {}

  take(callId: string, isAdmitted: boolean, { leased, want }: Claim, nowMs: number): Answer {
    for (const [slot, endsMs] of this.ahead) if (endsMs <= nowMs) this.ahead.delete(slot);
    this.ahead.delete(leased);
    const used = this.calls.size + this.ahead.size;
    if (!isAdmitted && used >= this.most) return { isTaken: false, left: 0 };
    this.calls.add(callId);
    const left = Math.max(0, Math.floor(this.most / 2) - used - 1);
    for (let slot = 1; slot <= Math.min(left, want); slot += 1) this.ahead.set(`${callId}:${String(slot)}`, nowMs + LEASED_AHEAD_MS);
    return { isTaken: true, left };
  }
}

/** What a gateway sent and Redis has not seen, or Redis answered and the gateway has not. */
interface Message {
  readonly arrivesMs: number;
  deliver(): void;
}

/** Gateways that take calls; each message takes its time, and none overtakes another of its gateway and direction. */
class World {
  readonly redis: Redis;
  readonly gateways: readonly SlotsAhead[];
  readonly #messages: Message[] = [];
  readonly #lastMs = new Map<string, number>();
  readonly running: string[] = [];
  nowMs = 0;
  mostAtOnce = 0;
  #calls = 0;

  constructor(most: number, gateways: number) {
    this.redis = new Redis(most);
    this.gateways = Array.from({ length: gateways }, () => new SlotsAhead(10));
  }

  arrive(at: number, delayMs: number): void {
    const gateway = this.gateways[at]!;
    this.#calls += 1;
    const callId = `c${String(this.#calls)}`;
    const askedMs = this.nowMs;
    const isAdmitted = gateway.has(KEY, askedMs);
    const claim = isAdmitted ? gateway.claim(KEY, askedMs) : gateway.ask();
    if (isAdmitted) this.#begin(callId);
    this.#send(`to redis ${String(at)}`, delayMs, () => {
      const answer = this.redis.take(callId, isAdmitted, claim, this.nowMs);
      // A slot of Redis' own is the call's from that moment on, though its gateway does not know it yet.
      if (!isAdmitted && answer.isTaken) this.#begin(callId);
      this.#send(`to gateway ${String(at)}`, delayMs, () => {
        if (answer.isTaken) gateway.answered(KEY, callId, claim, answer.left, askedMs);
      });
    });
  }

  end(): void {
    const callId = this.running.shift();
    if (callId !== undefined) this.redis.calls.delete(callId);
  }

  advance(byMs: number): void {
    const untilMs = this.nowMs + byMs;
    for (;;) {
      this.#messages.sort((a, b) => a.arrivesMs - b.arrivesMs);
      const [next] = this.#messages;
      if (next === undefined || next.arrivesMs > untilMs) break;
      this.#messages.shift();
      this.nowMs = next.arrivesMs;
      next.deliver();
    }
    this.nowMs = untilMs;
  }

  #begin(callId: string): void {
    this.running.push(callId);
    this.mostAtOnce = Math.max(this.mostAtOnce, this.running.length);
  }

  #send(way: string, delayMs: number, deliver: () => void): void {
    const arrivesMs = Math.max(this.nowMs + delayMs, this.#lastMs.get(way) ?? 0);
    this.#lastMs.set(way, arrivesMs);
    this.#messages.push({ arrivesMs, deliver });
  }
}

const step = (gateways: number) =>
  fc.oneof(
    fc.record({
      do: fc.constant('arrive' as const),
      gateway: fc.nat(gateways - 1),
      delayMs: fc.nat(100),
      calls: fc.integer({ min: 1, max: 12 }),
    }),
    fc.record({ do: fc.constant('end' as const), calls: fc.integer({ min: 1, max: 12 }) }),
    fc.record({ do: fc.constant('advance' as const), byMs: fc.nat(400) }),
    fc.record({ do: fc.constant('forget' as const), gateway: fc.nat(gateways - 1) }),
  );

describe('the slots that a gateway takes ahead', () => {
  it('let a limit be exceeded by at most one call of each gateway, however late Redis is told', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 4 }).chain((gateways) => fc.tuple(fc.constant(gateways), fc.array(step(gateways), { maxLength: 80 }))),
        (most, [gateways, steps]) => {
          const world = new World(most, gateways);
          for (const one of steps) {
            if (one.do === 'advance') world.advance(one.byMs);
            else if (one.do === 'forget') world.gateways[one.gateway]!.forget(KEY);
            else if (one.do === 'end') for (let call = 0; call < one.calls; call += 1) world.end();
            else for (let call = 0; call < one.calls; call += 1) world.arrive(one.gateway, one.delayMs);
          }
          expect(world.mostAtOnce).toBeLessThanOrEqual(most + gateways);
        },
      ),
      { numRuns: 3_000 },
    );
  });

  it('are used again and again without a wait while less than half of the limit is in use', () => {
    const world = new World(100, 1);
    world.arrive(0, 1);
    world.advance(2);
    const [gateway] = world.gateways;
    for (let call = 0; call < 200; call += 1) {
      expect(gateway?.has(KEY, world.nowMs)).toBe(true);
      world.arrive(0, 1);
      world.advance(5);
      if (call > 20) world.end();
    }
  });

  it('are none when half of the limit is in use', () => {
    const world = new World(4, 1);
    const [gateway] = world.gateways;
    const has = () => gateway?.has(KEY, world.nowMs);
    expect(has()).toBe(false);
    for (const is of [true, false]) {
      world.arrive(0, 1);
      world.advance(2);
      expect(has()).toBe(is);
    }
  });

  it('are leased for 0.25 s; after that the gateway has one until Redis answers', () => {
    const world = new World(100, 1);
    const [gateway] = world.gateways;
    const admitted = (): number => {
      let calls = 0;
      for (; gateway?.has(KEY, world.nowMs) === true; calls += 1) world.arrive(0, 10);
      return calls;
    };
    for (let call = 0; call < 2; call += 1) {
      world.arrive(0, 1);
      world.advance(2);
    }
    world.advance(260);
    expect(admitted()).toBe(1);
    world.advance(20);
    expect(admitted()).toBeGreaterThan(5);
  });
});
