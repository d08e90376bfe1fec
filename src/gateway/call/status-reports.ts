import type { Log } from '../../lib/log.js';
import type { CallRecord } from '../model/call-record.js';
import type { StatusCallbackEvent } from '../model/records.js';
import type { AnsweredBy } from '../twilio/answered-by.js';
import type { VoiceServer } from '../ports/ports.js';
import type { CallOrigin } from './call-record.js';
import type { CallState } from './state.js';
import { statusCallback } from './status-callback.js';

/** One call's status callbacks, in order and without waiting for their answers. */
export class StatusReports {
  #count = 0;

  constructor(
    private readonly server: Pick<VoiceServer, 'notify'>,
    private readonly call: {
      readonly origin: CallOrigin;
      readonly state: () => CallState;
      readonly wallMs: () => number;
      readonly log: Log;
      /** In the words of Twilio. */
      readonly answeredBy: () => AnsweredBy | null;
    },
  ) {}

  /** How many went out. */
  get count(): number {
    return this.#count;
  }

  restore(count: number): void {
    this.#count = count;
  }

  send(event: StatusCallbackEvent, record: CallRecord | null = null): void {
    const { origin, state, wallMs, log, answeredBy } = this.call;
    const moment = { event, atMs: wallMs(), sequence: this.#count, record };
    const callback = statusCallback(origin, state(), moment, answeredBy());
    if (callback === null) return;
    this.#count += 1;
    void this.server.notify(callback).then((sent) => {
      if (!sent.ok) log.warn({ error: sent.error }, 'call.status_callback.failed');
    });
  }
}
