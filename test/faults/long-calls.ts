import pLimit from 'p-limit';
import { CarrierCall } from '../support/carrier-call.js';
import type { CarrierListener } from '../support/carrier-listener.js';
import { SipPeer } from '../support/sip-peer.js';
import { reasonOf, type Trunk } from './short-calls.js';

/** What became of one call with audio. */
export interface LongCallFate {
  readonly sipCallId: string;
  readonly answeredMs: number;
  /** `goes on`, `BYE MEDIA_LOST`, `silent` (neither audio nor a BYE). */
  readonly fate: string;
  /** The longest time without audio since the fault, of a call that goes on. */
  readonly silenceMs: number;
}

const HEARD_LATELY_MS = 1_000;
/** More at once is overload: the bots, the proxies and the carriers are one process. */
const BEGUN_AT_ONCE = 25;

/**
 * What carriers do when a connection is lost. `mixed`: a third each connects again at once, connects again when it has something to say, and
 * never does but accepts our connection. `accepting`: all do that.
 */
export type Carriers = { readonly kind: 'mixed' | 'accepting'; readonly listener: CarrierListener };

/** Calls that last, each with a connection of its own and SRTP both ways, which is listened to. */
export class LongCalls {
  #isOver = false;

  private constructor(
    private readonly trunk: Trunk,
    private readonly calls: CarrierCall[],
    private readonly isEcho: boolean,
  ) {}

  /**
   * @param isEcho the agent says what it hears, and only that is audio: what the gateway sends while its agent is away is not
   */
  static async begin(trunk: Trunk, count: number, isEcho: boolean, { kind, listener }: Carriers): Promise<LongCalls> {
    const limit = pLimit(BEGUN_AT_ONCE);
    const begun = await Promise.allSettled(
      Array.from({ length: count }, (_none, index) =>
        limit(() => (kind === 'accepting' || index % 3 === 2 ? accepting(trunk, listener) : CarrierCall.talking(trunk, trunk.number))),
      ),
    );
    const calls = begun.flatMap((call) => (call.status === 'fulfilled' ? [call.value] : []));
    const refused = begun.find((call) => call.status === 'rejected');
    if (refused !== undefined) {
      for (const call of calls) call.close();
      throw refused.reason;
    }
    const all = new LongCalls(trunk, calls, isEcho);
    if (kind === 'mixed') for (const [index, call] of calls.entries()) if (index % 3 === 0) void all.#connectAgain(call);
    return all;
  }

  /** More calls, so many a second, until the function that it returns is called. */
  arrive(rate: number, listener: CarrierListener): () => void {
    const timer = setInterval(() => void this.#arrive(listener).catch(() => undefined), 1_000 / rate);
    return () => clearInterval(timer);
  }

  async #arrive(listener: CarrierListener): Promise<void> {
    const call = await CarrierCall.open(this.trunk, this.trunk.number);
    this.calls.push(call);
    listener.add(call);
    await call.connect(listener.port);
  }

  /** Resolves when each carrier hears its own words from the test line; from now on it sends sender reports. */
  async areEchoed(): Promise<void> {
    for (const { audio } of this.calls) audio.reportAlways();
    await Promise.all(this.calls.map((call) => call.echoedAfter(performance.now())));
  }

  /** Where rtpengine takes the carriers' RTP. */
  get relayPorts(): readonly { readonly address: string; readonly port: number }[] {
    return this.calls.map(({ audio }) => audio.relayPort);
  }

  fates(sinceMs: number): LongCallFate[] {
    const nowMs = performance.now();
    return this.#answered().map((call) => {
      const bye = call.peer.received.find(
        (message) => message.startLine.startsWith('BYE ') && message.header('Call-ID') === call.signalling.callId,
      );
      const heardMs = call.audio.heard.filter((packet) => !this.isEcho || packet.isEcho).map(({ atMs }) => atMs);
      const isHeard = (heardMs.at(-1) ?? 0) > nowMs - HEARD_LATELY_MS;
      const fate = bye !== undefined ? `BYE ${reasonOf(bye)}`.trim() : isHeard ? 'goes on' : 'silent';
      return { sipCallId: call.signalling.callId, answeredMs: call.answeredMs, fate, silenceMs: longestGap(heardMs, sinceMs) };
    });
  }

  #answered(): CarrierCall[] {
    return this.calls.filter(({ answeredMs }) => answeredMs > 0);
  }

  /**
   * The carrier hangs up what goes on, over another connection where its own is gone. How many were not ended by it, of those answered before
   * this moment.
   */
  async hangUp(beforeMs: number): Promise<number> {
    const ended = await Promise.all(this.#answered().map(async (call) => (await this.#hangUp(call)) || call.answeredMs > beforeMs));
    this.#isOver = true;
    for (const call of this.calls) call.close();
    return ended.filter((isEnded) => !isEnded).length;
  }

  /** At once, whenever its connection is lost. */
  async #connectAgain(call: CarrierCall): Promise<void> {
    for (;;) {
      await call.peer.whenClosed();
      if (this.#isOver) return;
      const peer = await SipPeer.connect(this.trunk.sipPort, this.trunk.ca).catch(() => null);
      if (peer === null) await new Promise((resolve) => setTimeout(resolve, 100));
      else call.over(peer);
    }
  }

  async #hangUp(call: CarrierCall): Promise<boolean> {
    if (call.has('BYE')) return true;
    const other = call.peer.closed ? await SipPeer.connect(this.trunk.sipPort, this.trunk.ca).catch(() => null) : null;
    if (call.peer.closed && other === null) return false;
    if (other !== null) call.signalling.over(other);
    const status = await call.request('BYE').then(
      (answer) => answer.status,
      () => 0,
    );
    other?.close();
    // A call that the gateway has given up meanwhile is as ended.
    return status === 200 || status === 481;
  }
}

async function accepting(trunk: Trunk, listener: CarrierListener): Promise<CarrierCall> {
  const call = await CarrierCall.open(trunk, trunk.number);
  await call.connect(listener.port);
  listener.add(call);
  return call;
}

function longestGap(momentsMs: readonly number[], sinceMs: number): number {
  const times = momentsMs.filter((atMs) => atMs >= sinceMs - 100);
  return Math.round(Math.max(0, ...times.slice(1).map((atMs, index) => atMs - (times[index] ?? atMs))));
}
