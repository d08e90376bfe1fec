import type { Clock } from '../../lib/clock.js';
import { CarrierCall } from '../test-caller/carrier-call.js';
import { levelDbfs } from '../../rtp/codec/level.js';
import type { CarrierTarget } from '../test-caller/sip-client.js';
import { AUDIBLE_DBFS, type CallerLine, type LineReport } from './caller-line.js';

/** A call to a number, as a carrier places it: TLS, SRTP, telephone-events. */
export class NumberLine implements CallerLine {
  readonly #call: CarrierCall;
  /** Samples of the recording that were looked at. */
  #seen = 0;

  constructor(
    target: CarrierTarget,
    private readonly called: string,
    private readonly caller: string,
    clock: Clock,
  ) {
    this.#call = new CarrierCall(target, ['PCMU', 'PCMA'], clock);
  }

  async connect(): Promise<void> {
    await this.#call.place(this.called, this.caller);
  }

  play(samples: Int16Array): void {
    this.#call.leg?.play(samples);
  }

  press(event: number): void {
    this.#call.leg?.press(event);
  }

  exchange(): boolean {
    const recording = this.#call.leg?.recording() ?? new Int16Array(0);
    const isHeard = levelDbfs(recording.subarray(this.#seen)) > AUDIBLE_DBFS;
    this.#seen = recording.length;
    return isHeard;
  }

  get isOver(): boolean {
    return this.#call.isEnded;
  }

  async close(): Promise<void> {
    await this.#call.hangUp();
    this.#call.close();
  }

  report(): LineReport {
    return { sipCallId: this.#call.sipCallId, bot: null, transcript: [], errors: [] };
  }
}
