import { beforeEach, describe, expect, it } from 'vitest';
import type { Flow } from '../../../../src/sip/transport/flow.js';
import { retire, type Retired, type RetiringFlow } from '../../../../src/sip/transport/retirement.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const LIMIT_MS = 2_000;

/** A connection by which requests come; each is open for a while, and an INVITE's 2xx waits for its ACK afterwards. */
class TestFlow {
  isMidMessage = false;
  open = 0;
  awaited = 0;
  pausedMs: number | null = null;
  retiredMs: number | null = null;
  /** Requests that came when they could not be served any more. */
  lost = 0;

  constructor(readonly clock: VirtualClock) {}

  /** A request each so many milliseconds, open for so long. */
  steadily(eachMs: number, openMs: number): void {
    this.clock.setTimer(eachMs, () => {
      if (this.retiredMs === null) this.steadily(eachMs, openMs);
      if (this.pausedMs !== null || this.retiredMs !== null) {
        this.lost += 1;
        return;
      }
      this.open += 1;
      this.clock.setTimer(openMs, () => (this.open -= 1));
    });
  }

  pause(): void {
    this.pausedMs ??= this.clock.nowMs();
  }

  retire(): Promise<void> {
    this.retiredMs = this.clock.nowMs();
    return Promise.resolve();
  }
}

let clock: VirtualClock;
let flow: TestFlow;
beforeEach(() => {
  clock = new VirtualClock();
  flow = new TestFlow(clock);
});

async function retired(client = 0): Promise<Retired> {
  let result: Retired | undefined;
  const all = {
    flows: () => (flow.retiredMs === null ? [flow as unknown as RetiringFlow] : []),
    handshakes: () => 0,
    transactions: () => ({ client, server: flow.open }),
    unacknowledged: () => new Map([[flow as unknown as Flow, flow.awaited]]),
  };
  void retire(all, LIMIT_MS, clock).then((ended) => (result = ended));
  while (result === undefined) await clock.advanceAsync(5);
  return result;
}

describe('a connection of a server that is stopping', () => {
  it('is closed after 50 ms when nothing is open on it', async () => {
    expect(await retired()).toEqual({ connections: 1, transactions: 0, cut: 0 });
    expect(flow.retiredMs).toBeLessThanOrEqual(70);
  });

  it('that carries a steady load is closed in a gap, and every earlier request is answered', async () => {
    flow.steadily(35, 12);
    expect(await retired()).toMatchObject({ connections: 1, cut: 0 });
    expect([flow.pausedMs, flow.lost]).toEqual([null, 0]);
    expect(flow.retiredMs).toBeGreaterThanOrEqual(300);
    expect(flow.retiredMs).toBeLessThan(1_000);
  });

  it('that has no gap is read no more after a second, and closed once its transactions are over', async () => {
    flow.steadily(4, 30);
    expect(await retired()).toMatchObject({ connections: 1, cut: 0 });
    expect(flow.pausedMs).toBeGreaterThanOrEqual(1_000);
    expect(flow.retiredMs).toBeLessThan(1_100);
  });

  it('is read until the ACK to a 2xx came', async () => {
    flow.awaited = 1;
    clock.setTimer(1_500, () => (flow.awaited = 0));
    expect(await retired()).toMatchObject({ connections: 1 });
    expect(flow.pausedMs).toBeNull();
    expect(flow.retiredMs).toBeGreaterThanOrEqual(1_500);
  });

  it('stays open until the limit, and counts as cut, while a transaction is open', async () => {
    expect(await retired(1)).toEqual({ connections: 0, transactions: 1, cut: 1 });
    expect([clock.nowMs() >= LIMIT_MS, flow.pausedMs]).toEqual([true, null]);
  });
});
