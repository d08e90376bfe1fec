import { HandMadeCall } from '../support/hand-made-call.js';
import { offerSdp } from '../support/sdp.js';
import { SipPeer, type WireMessage } from '../support/sip-peer.js';
import { respond } from '../support/sip-message.js';

/** One call without audio: how it went, from the carrier's side. */
export interface ShortCall {
  readonly sipCallId: string;
  readonly begunMs: number;
  readonly endedMs: number;
  /** From the INVITE to its final answer; `null`: there was none. */
  readonly answerMs: number | null;
  /** `answered`, `503 STORE_UNAVAILABLE`, `503`, `not connected`, `connection lost`, `no answer`. */
  readonly outcome: string;
}

export interface Trunk {
  readonly sipPort: number;
  readonly ca: string;
  readonly number: string;
  /** Left out: 127.0.0.1. */
  readonly sipHost?: string;
}

const CONNECTIONS = 4;
const CALLS_A_CONNECTION = 10;
/** What the product promises: an answer, whatever it is. */
const ANSWER_WITHIN_MS = 10_000;

/** Calls at a steady rate, answered ones hung up at once, for as long as it is told to. */
export class ShortCalls {
  readonly all: ShortCall[] = [];
  readonly #peers: (Peer | undefined)[] = [];
  /** Whose last calls may still be under way. */
  readonly #retired: Peer[] = [];
  #begun = 0;
  readonly #open = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;

  constructor(
    private readonly trunk: Trunk,
    rate: number,
  ) {
    const startedMs = performance.now();
    this.#timer = setInterval(() => {
      while (this.#begun <= ((performance.now() - startedMs) / 1_000) * rate) this.#begin();
    }, 10);
  }

  /** No more are begun; resolves when those that were have ended. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#open);
    for (const peer of [...this.#peers, ...this.#retired]) peer?.close();
  }

  /** When the last one was begun that was not answered with 200; `null`: none since then. */
  lastFailureMs(sinceMs: number): number | null {
    const failed = this.all.filter(({ begunMs, outcome }) => begunMs >= sinceMs && outcome !== 'answered');
    return failed.length === 0 ? null : Math.max(...failed.map(({ begunMs }) => begunMs));
  }

  hasAnsweredSince(momentMs: number): boolean {
    return this.all.some(({ endedMs, outcome }) => endedMs >= momentMs && outcome === 'answered');
  }

  #begin(): void {
    this.#begun += 1;
    const begunMs = performance.now();
    const placed: Promise<void> = placeShortCall(() => this.#peer(), this.trunk.number).then((call) => {
      this.all.push({ ...call, begunMs, endedMs: performance.now() });
      this.#open.delete(placed);
    });
    this.#open.add(placed);
  }

  /** Connections in turn; one that is closed, or has had its calls, is replaced. */
  #peer(): Promise<Connected> {
    const turn = this.#begun % CONNECTIONS;
    const current = this.#peers[turn];
    if (current !== undefined && !current.isSpent()) return current.use();
    if (current !== undefined) this.#retired.push(current);
    const fresh = new Peer(this.trunk);
    this.#peers[turn] = fresh;
    return fresh.use();
  }
}

interface Connected {
  readonly peer: SipPeer;
  readonly closed: Promise<void>;
}

class Peer {
  readonly connected: Promise<Connected>;
  #taken = 0;
  #isClosed = false;

  constructor({ sipPort, ca, sipHost: host = '127.0.0.1' }: Trunk) {
    this.connected = within(SipPeer.connect(sipPort, ca, { host }), ANSWER_WITHIN_MS, 'not connected').then((peer) => ({
      peer,
      closed: peer.whenClosed(),
    }));
    this.connected.then(
      ({ peer, closed }) => {
        peer.onMessage = (message) => {
          if (/^(?:BYE|OPTIONS) /.test(message.startLine)) respond(peer, message, '200 OK');
        };
        void closed.then(() => (this.#isClosed = true));
      },
      () => (this.#isClosed = true),
    );
  }

  isSpent(): boolean {
    return this.#isClosed || this.#taken >= CALLS_A_CONNECTION;
  }

  use(): Promise<Connected> {
    this.#taken += 1;
    return this.connected;
  }

  close(): void {
    this.connected.then(
      ({ peer }) => peer.close(),
      () => undefined,
    );
  }
}

type Placed = Pick<ShortCall, 'sipCallId' | 'outcome' | 'answerMs'>;

async function placeShortCall(connect: () => Promise<Connected>, number: string): Promise<Placed> {
  const connected = await connect().catch(() => null);
  if (connected === null) return { sipCallId: '', outcome: 'not connected', answerMs: null };
  const call = new HandMadeCall(connected.peer, number);
  const sentMs = performance.now();
  call.invite(offerSdp());
  const lost = connected.closed.then(() => 'connection lost');
  const answer = await Promise.race([call.final(ANSWER_WITHIN_MS).catch(() => 'no answer'), lost]);
  const placed = (outcome: string, answerMs: number | null): Placed => ({ sipCallId: call.callId, outcome, answerMs });
  if (typeof answer === 'string') return placed(answer, null);
  const answerMs = Math.round(performance.now() - sentMs);
  if (answer.status !== 200) return placed(`${String(answer.status)} ${reasonOf(answer)}`.trim(), answerMs);
  call.ack(answer);
  await hangUp(call, answer, connected, connect);
  return placed('answered', answerMs);
}

/** A carrier whose connection is gone hangs up over another one. */
async function hangUp(call: HandMadeCall, answer: WireMessage, first: Connected, connect: () => Promise<Connected>): Promise<void> {
  const isAnswered = call.request('BYE', answer).then(
    () => true,
    () => false,
  );
  if (await Promise.race([isAnswered, first.closed.then(() => false)])) return;
  const other = await connect().catch(() => null);
  if (other === null) return;
  await call
    .over(other.peer)
    .request('BYE', answer)
    .catch(() => undefined);
}

/** The code of the reason table in a refusal or a BYE; nothing when there is none. */
export function reasonOf(message: WireMessage): string {
  const warning = /"([A-Z_]+):/.exec(message.header('Warning') ?? '')?.[1];
  return warning ?? /text="([^"]*)"/.exec(message.header('Reason') ?? '')?.[1] ?? '';
}

function within<T>(work: Promise<T>, limitMs: number, otherwise: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(otherwise)), limitMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
