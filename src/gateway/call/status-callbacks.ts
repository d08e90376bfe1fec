import type { Log } from '../../lib/log.js';
import type { CallRecord } from '../model/call-record.js';
import type { StatusCallbackEvent } from '../model/records.js';
import type { VoiceRequest, VoiceServer } from '../ports/ports.js';
import type { AnsweredBy } from '../twilio/answered-by.js';
import { callParameters } from '../twilio/call-parameters.js';
import { callStatusOf, type CallStatus } from '../twilio/call-status.js';
import type { CallOrigin } from './call-record.js';
import type { CallState } from './state.js';
import { voiceApplicationOf } from './voice-application.js';

const STATUS: Readonly<Record<StatusCallbackEvent, CallStatus | 'initiated'>> = {
  initiated: 'initiated',
  ringing: 'ringing',
  answered: 'in-progress',
  completed: 'completed',
};

interface CallMoment {
  readonly event: StatusCallbackEvent;
  /** Milliseconds of the epoch. */
  readonly atMs: number;
  /** Status callbacks before this one. */
  readonly sequence: number;
  /** `null`: the call has not ended. */
  readonly record: CallRecord | null;
}

/** One call's status callbacks, in order and without waiting for their answers. */
export class StatusCallbacks {
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

/** What the call's application gets at this moment; `null`: nothing. */
function statusCallback(
  origin: CallOrigin,
  { route, identity }: Pick<CallState, 'route' | 'identity'>,
  { event, atMs, sequence, record }: CallMoment,
  answeredBy: AnsweredBy | null,
): VoiceRequest | null {
  const { callId, direction, to, caller } = origin;
  const { token, statusCallback: callback = null } = voiceApplicationOf(origin, route) ?? {};
  const orgId = route?.org.org_id ?? origin.orgId;
  if (token === undefined || orgId === undefined || callback?.events.includes(event) !== true) return null;
  const status = record === null ? STATUS[event] : callStatusOf(record);
  return {
    url: callback.url,
    method: callback.method,
    token,
    parameters: {
      ...callParameters({ callId, orgId, direction, to, caller, identity, answeredBy }, status),
      ...(record === null ? {} : { CallDuration: String(secondsOf(record)) }),
      Timestamp: new Date(atMs).toUTCString(),
      CallbackSource: 'call-progress-events',
      SequenceNumber: String(sequence),
    },
  };
}

function secondsOf({ answered_at: answeredAt, ended_at: endedAt }: CallRecord): number {
  return answeredAt === null ? 0 : Math.round((Date.parse(endedAt) - Date.parse(answeredAt)) / 1_000);
}
