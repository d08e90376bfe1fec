import type { Clock } from '../lib/clock.js';
import type { Log } from '../lib/log.js';
import { MediaUnavailableError, type MediaRelay, type RelayAnswer, type RelayCall, type RelayFigures } from '../gateway/ports.js';
import { answerCommand, deleteCommand, offerCommand, type NgCommand, type RelayLegs } from './flags.js';
import { RtpengineError, type NgReply, type RtpengineNode } from './node.js';

const MAX_LISTED = 20_000;
const DELETE_RETRIES_MS = [200, 1_000, 5_000, 15_000];

/** The media relay that the gateway sees, on one rtpengine. */
export class RtpengineRelay implements MediaRelay {
  constructor(
    private readonly node: RtpengineNode,
    private readonly interfaces: RelayLegs['interfaces'],
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  async offer(call: RelayCall, sdp: string): Promise<RelayAnswer> {
    const legs: RelayLegs = { interfaces: this.interfaces, insideSrtp: call.insideSrtp };
    return this.#sdpOf(await this.#ask('offer', offerCommand({ callId: call.relayId, fromTag: call.fromTag, sdp }, legs)));
  }

  async answer(call: RelayCall & { readonly toTag: string }, sdp: string): Promise<RelayAnswer> {
    return this.#sdpOf(await this.#ask('answer', answerCommand({ callId: call.relayId, fromTag: call.fromTag, toTag: call.toTag, sdp })));
  }

  /** A lost `delete` leaves a session that nobody frees: asked again until confirmed, for about 20 s. */
  async delete({ relayId }: Pick<RelayCall, 'relayId'>): Promise<RelayFigures> {
    for (const delayMs of DELETE_RETRIES_MS) {
      try {
        return figuresOf(await this.node.command('delete', deleteCommand(relayId)));
      } catch (error) {
        if (error instanceof RtpengineError && error.kind === 'closed') break;
        this.log.warn({ callId: relayId, error: (error as Error).message }, 'rtpengine.delete.retry');
        await new Promise<void>((resolve) => void this.clock.setTimer(delayMs, resolve));
      }
    }
    throw new MediaUnavailableError('rtpengine did not confirm that the session is freed');
  }

  /** Frees every session that rtpengine has. */
  async deleteAll(): Promise<void> {
    const { calls } = await this.#ask('list', { limit: MAX_LISTED });
    const relayIds = Array.isArray(calls) ? calls.filter((id): id is string => typeof id === 'string') : [];
    await Promise.all(relayIds.map((relayId) => this.delete({ relayId })));
    if (relayIds.length > 0) this.log.warn({ sessions: relayIds.length }, 'rtpengine.leftovers.freed');
  }

  async ping(): Promise<void> {
    await this.#ask('ping', {});
  }

  async #ask(name: NgCommand, args: object): Promise<NgReply> {
    try {
      return await this.node.command(name, args);
    } catch (error) {
      throw new MediaUnavailableError(`rtpengine ${name}: ${(error as Error).message}`, { cause: error });
    }
  }

  #sdpOf(reply: NgReply): RelayAnswer {
    const sdp = reply['sdp'];
    // An offer without a usable m-line is answered ok and without an SDP.
    if (typeof sdp !== 'string' || sdp === '') throw new MediaUnavailableError('rtpengine answered without an SDP');
    return { sdp };
  }
}

function figuresOf(reply: NgReply): RelayFigures {
  const totals = record(record(reply['totals'])['RTP']);
  return { packets: number(totals['packets']), bytes: number(totals['bytes']), errors: number(totals['errors']) };
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function number(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
