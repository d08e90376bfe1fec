import { HandMadeCall } from '../support/hand-made-call.js';
import { offerSdp } from '../support/sdp.js';
import { SipPeer, type WireMessage } from '../support/sip-peer.js';
import { respond } from '../support/sip-message.js';

/** What one call does; the mix takes them in turn. */
export const KINDS = ['unknown number', 'no SRTP', 'cancelled', 'answered', 'held and resumed'] as const;
/** Those too that take their time: calls that last, and carriers that vanish. */
export const LONG_KINDS = [...KINDS, 'lasts', 'never acknowledged'] as const;
export type Kind = (typeof LONG_KINDS)[number];

export interface MixedCallsOptions {
  readonly port: number;
  readonly ca: string;
  readonly number: string;
  readonly calls: number;
  /** `KINDS` unless given. */
  readonly kinds?: readonly Kind[];
  /** Calls begun a second. */
  readonly rate: number;
  /** Calls under way at most; none begins above it, however late the rate is. No limit unless given. */
  readonly atOnce?: number;
  /** TLS connections that share the calls. */
  readonly connections: number;
  /** Calls after which a connection is replaced. */
  readonly callsAConnection?: number;
  readonly onProgress?: (done: number) => void;
}

/** How often each kind ended in what way, for example `answered: 200, BYE 200`. */
export type Tally = Readonly<Record<string, number>>;

const UNKNOWN_NUMBER = '+15550199999';
const ANSWER_WITHIN_MS = 10_000;
const LASTS_MS = 10_000;
const UNACKNOWLEDGED_MS = 45_000;

/** Calls of every kind at a steady rate; resolves with the tally when the last has ended. A call that fails is counted with its error. */
export async function placeMixedCalls(options: MixedCallsOptions): Promise<Tally> {
  const tally: Record<string, number> = {};
  const pool = new PeerPool(options);
  const { kinds = KINDS, atOnce = Infinity } = options;
  let begun = 0;
  let done = 0;
  const isDue = (elapsedMs: number): boolean =>
    begun < options.calls && begun - done < atOnce && begun <= (elapsedMs / 1_000) * options.rate;
  await new Promise<void>((resolve) => {
    const begin = (): void => {
      // A timer that comes late starts what it is behind with.
      while (isDue(performance.now() - startedMs)) {
        const kind = kinds[begun % kinds.length] ?? 'answered';
        begun += 1;
        void pool
          .use((peer) => placeCall(peer, kind, options.number))
          .catch((error: unknown) => `failed: ${(error as Error).message}`)
          .then((outcome) => {
            const line = `${kind}: ${outcome}`;
            tally[line] = (tally[line] ?? 0) + 1;
            done += 1;
            options.onProgress?.(done);
            if (done === options.calls) resolve();
          });
      }
      if (begun === options.calls) clearInterval(timer);
    };
    const startedMs = performance.now();
    const timer = setInterval(begin, 10);
    begin();
  });
  pool.close();
  return tally;
}

/** What the mix comes to when nothing goes wrong: a CANCEL may be too late, and the call is then answered and ended. */
export function isExpected(line: string): boolean {
  return [
    'unknown number: 404',
    'no SRTP: 488',
    'cancelled: 487',
    'cancelled: 200, BYE 200',
    'answered: 200, BYE 200',
    'held and resumed: 200, hold 200, resume 200, BYE 200',
    'lasts: 200, BYE 200',
    'never acknowledged: 200, then BYE of the gateway',
  ].includes(line);
}

async function placeCall(peer: SipPeer, kind: Kind, number: string): Promise<string> {
  const call = new HandMadeCall(peer, kind === 'unknown number' ? UNKNOWN_NUMBER : number);
  call.invite(kind === 'no SRTP' ? offerSdp({ profile: 'RTP/AVP', crypto: [] }) : offerSdp());
  if (kind === 'cancelled') call.cancel();
  const answer = await call.final(ANSWER_WITHIN_MS);
  if (answer.status !== 200) return String(answer.status);
  if (kind === 'never acknowledged') return unacknowledged(peer, call);
  call.ack(answer);
  if (kind === 'lasts') await new Promise((resolve) => setTimeout(resolve, LASTS_MS));
  const held = kind === 'held and resumed' ? await holdAndResume(call, answer) : '';
  return `200, ${held}BYE ${String((await call.request('BYE', answer)).status)}`;
}

/** RFC 3261 §13.3.1.4: the 200 is repeated for 64·T1, then the gateway gives the call up. */
async function unacknowledged(peer: SipPeer, call: HandMadeCall): Promise<string> {
  const bye = await peer.next(
    'the BYE after 64·T1',
    (message) => message.startLine.startsWith('BYE ') && message.header('Call-ID') === call.callId,
    UNACKNOWLEDGED_MS,
  );
  respond(peer, bye, '200 OK');
  return '200, then BYE of the gateway';
}

async function holdAndResume(call: HandMadeCall, answer: WireMessage): Promise<string> {
  const hold = await call.request('INVITE', answer, offerSdp({ direction: 'sendonly' }));
  if (hold.status === 200) call.ack(hold);
  const resume = await call.request('INVITE', answer, offerSdp({ extra: ['a=ptime:20'] }));
  if (resume.status === 200) call.ack(resume);
  return `hold ${String(hold.status)}, resume ${String(resume.status)}, `;
}

interface PooledPeer {
  readonly peer: Promise<SipPeer>;
  taken: number;
  inUse: number;
}

/** Connections in turn. One that has carried its calls is closed with its last call, and another takes its place. */
class PeerPool {
  readonly #peers: PooledPeer[] = [];
  #turn = 0;

  constructor(private readonly options: MixedCallsOptions) {}

  async use(place: (peer: SipPeer) => Promise<string>): Promise<string> {
    const pooled = this.#next();
    pooled.taken += 1;
    pooled.inUse += 1;
    try {
      return await place(await pooled.peer);
    } finally {
      pooled.inUse -= 1;
      if (!this.#peers.includes(pooled)) retire(pooled);
    }
  }

  close(): void {
    for (const { peer } of this.#peers.splice(0)) void peer.then((connected) => connected.close());
  }

  #next(): PooledPeer {
    this.#turn = (this.#turn + 1) % this.options.connections;
    const current = this.#peers[this.#turn];
    if (current !== undefined && current.taken < (this.options.callsAConnection ?? Number.POSITIVE_INFINITY)) return current;
    // Its last call may have ended already.
    if (current !== undefined) retire(current);
    const fresh: PooledPeer = { peer: SipPeer.connect(this.options.port, this.options.ca), taken: 0, inUse: 0 };
    this.#peers[this.#turn] = fresh;
    return fresh;
  }
}

/** Closes a connection that gets no more calls, once none is on it. */
function retire({ peer, inUse }: PooledPeer): void {
  if (inUse === 0) void peer.then((connected) => connected.close());
}
