import { within, type Clock } from '../../lib/clock.js';
import type { Flow } from './flow.js';

/** A connection of a process that is about to end. */
export interface RetiringFlow extends Flow {
  /** Bytes of a message came, and not all. */
  readonly isMidMessage: boolean;
  /** Reads nothing more for now. */
  pause(): void;
  /** Ends our side after what is queued (TLS: with close_notify), and drops what still comes. Resolves when it is out. */
  retire(): Promise<void>;
}

export interface OpenTransactions {
  /** Of ours: their answers have to be read. */
  readonly client: number;
  readonly server: number;
}

export interface Retired {
  /** Connections ended with nothing open. */
  readonly connections: number;
  /** Open at the start. */
  readonly transactions: number;
  /** Open at the limit. */
  readonly cut: number;
}

export interface Retiring {
  /** Connections that are not closed. */
  readonly flows: () => readonly RetiringFlow[];
  /** Connections without a handshake so far. */
  readonly handshakes: () => number;
  /** On this connection, or on all. */
  readonly transactions: (flow?: Flow) => OpenTransactions;
  /** 2xx of ours that wait for their ACK, by the connection that it comes by. */
  readonly unacknowledged: () => ReadonlyMap<Flow, number>;
}

const POLL_MS = 10;
/** Without anything open: the next request may be on its way. */
const IDLE_MS = 50;
/**
 * A connection with a steady load is seldom idle for that time. Later, one look that finds nothing open suffices. Until then requests are
 * served, so the peer loses only the one that was on the wire when we closed.
 */
const GAP_MS = 10;
const GAPS_FROM_MS = 300;
const HANDSHAKE_MS = 500;
/** After that a connection with requests of the peer's alone reads no more of them: one without a gap would never end. What it leaves is lost. */
const READ_ON_MS = 1_000;

/** Ends each connection once no transaction is open on it, within the limit. No new ones are accepted meanwhile. */
export async function retire(
  { flows, handshakes, transactions, unacknowledged }: Retiring,
  limitMs: number,
  clock: Clock,
): Promise<Retired> {
  const startMs = clock.nowMs();
  const total = (): number => transactions().client + transactions().server;
  const open = total();
  const busyMs = new Map<Flow, number>();
  const ended: Promise<void>[] = [];
  for (;;) {
    const nowMs = clock.nowMs();
    const elapsedMs = nowMs - startMs;
    const awaited = unacknowledged();
    for (const flow of flows()) {
      const { client, server } = transactions(flow);
      const acks = awaited.get(flow) ?? 0;
      if (client + server + acks > 0 || flow.isMidMessage || !busyMs.has(flow)) busyMs.set(flow, nowMs);
      else if (nowMs - (busyMs.get(flow) ?? 0) >= (elapsedMs < GAPS_FROM_MS ? IDLE_MS : GAP_MS)) {
        ended.push(flow.retire());
        continue;
      }
      if (client + acks === 0 && elapsedMs >= READ_ON_MS && !flow.isMidMessage) flow.pause();
    }
    const isDone = flows().length === 0 && total() === 0 && (handshakes() === 0 || elapsedMs >= HANDSHAKE_MS);
    if (isDone || elapsedMs >= limitMs) break;
    await new Promise<void>((resolve) => void clock.setTimer(POLL_MS, resolve));
  }
  await within(clock, IDLE_MS, Promise.all(ended));
  return { connections: ended.length, transactions: open, cut: total() };
}
