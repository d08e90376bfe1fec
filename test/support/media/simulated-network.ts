/** One packet as its sender's own clock saw it leave. */
export interface SentPacket {
  readonly atMs: number;
  readonly seq: number;
  readonly ts: number;
}

/** One packet at the receiver, by the receiver's clock; `index` is its place among those that were sent. */
export interface Arrival {
  readonly arrivalMs: number;
  readonly index: number;
}

/** What is added to the delay of each packet, never less than 0. */
export type Jitter =
  | { readonly kind: 'none' }
  /** Anything from 0 to `ms`, all alike. */
  | { readonly kind: 'uniform'; readonly ms: number }
  /** Mostly little, seldom much: a queue. */
  | { readonly kind: 'exponential'; readonly meanMs: number }
  /** Half of a bell curve. */
  | { readonly kind: 'normal'; readonly sigmaMs: number }
  /** Nothing, and now and then all of `ms`: a radio link that sends again. */
  | { readonly kind: 'spikes'; readonly rate: number; readonly ms: number };

export interface NetworkOptions {
  /** Delay of every packet. */
  readonly delayMs: number;
  readonly jitter: Jitter;
  /** A queue: no packet overtakes another by jitter alone. */
  readonly keepsOrder: boolean;
  /** Part of the packets that are lost, 0 to 1. */
  readonly lossRate: number;
  /** Packets that are lost in a row, on average (Gilbert's model); 1: each by itself. */
  readonly meanLossBurst: number;
  /** Part of the packets that arrive just behind the one that was sent after them. */
  readonly reorderRate: number;
  /** Part of the packets that arrive a second time, within 5 ms. */
  readonly duplicateRate: number;
  /** How much faster the sender's clock is than the receiver's, in millionths. */
  readonly driftPpm: number;
}

const PERFECT: NetworkOptions = {
  delayMs: 20,
  jitter: { kind: 'none' },
  keepsOrder: true,
  lossRate: 0,
  meanLossBurst: 1,
  reorderRate: 0,
  duplicateRate: 0,
  driftPpm: 0,
};

/** A stream of packets of 20 ms from time 0 on, with numbers that wrap. */
export function packetStream(
  count: number,
  first: { readonly seq: number; readonly ts: number } = { seq: 65_000, ts: 0xffff_0000 },
): SentPacket[] {
  return Array.from({ length: count }, (_, i) => ({ atMs: i * 20, seq: (first.seq + i) & 0xffff, ts: (first.ts + i * 160) >>> 0 }));
}

/** What a network makes of a stream: the arrivals in order of time. The same seed gives the same ones. */
export function simulate(packets: readonly SentPacket[], options: Partial<NetworkOptions>, seed: number): Arrival[] {
  const network = { ...PERFECT, ...options };
  const random = randomOf(seed);
  const isLost = lossOf(network, random);
  const arrivals: Arrival[] = [];
  let latestMs = -Infinity;
  packets.forEach(({ atMs }, index) => {
    const leavesMs = atMs / (1 + network.driftPpm / 1e6);
    let arrivalMs = leavesMs + network.delayMs + jitterMs(network.jitter, random);
    if (network.keepsOrder) arrivalMs = Math.max(arrivalMs, latestMs);
    latestMs = Math.max(latestMs, arrivalMs);
    // As many numbers are drawn whatever becomes of the packet, so that one setting does not change what another does.
    const [isReordered, isDoubled, againMs] = [random() < network.reorderRate, random() < network.duplicateRate, 5 * random()];
    if (isLost()) return;
    const next = packets[index + 1];
    // Behind its neighbour, whose own delay is not known yet: as far as that one is sent later, and a little more.
    if (isReordered && next !== undefined) arrivalMs += next.atMs - atMs + 1;
    arrivals.push({ arrivalMs, index });
    if (isDoubled) arrivals.push({ arrivalMs: arrivalMs + againMs, index });
  });
  return arrivals.sort((a, b) => a.arrivalMs - b.arrivalMs);
}

function jitterMs(jitter: Jitter, random: () => number): number {
  switch (jitter.kind) {
    case 'none':
      return 0;
    case 'uniform':
      return jitter.ms * random();
    case 'exponential':
      return -jitter.meanMs * Math.log(1 - random());
    case 'normal':
      // Box and Muller.
      return jitter.sigmaMs * Math.abs(Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));
    case 'spikes':
      return random() < jitter.rate ? jitter.ms : 0;
  }
}

/** Gilbert's model: nothing is lost in the good state and everything in the bad one. */
function lossOf({ lossRate, meanLossBurst }: NetworkOptions, random: () => number): () => boolean {
  const toGood = 1 / meanLossBurst;
  const toBad = lossRate >= 1 ? 1 : (lossRate * toGood) / (1 - lossRate);
  let isBad = random() < lossRate;
  return () => {
    const wasBad = isBad;
    isBad = isBad ? random() >= toGood || lossRate >= 1 : random() < toBad;
    return wasBad;
  };
}

/** Mulberry32: numbers from 0 to 1. */
export function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
