import { nextSerialId } from '../lib/ids.js';
import type { SipMessage } from '../sip/message/message.js';
import { serialize } from '../sip/message/serialize.js';
import type { AppConnection } from './app-connection.js';
import { formatCdr } from './meta-line.js';
import type { Router } from './router.js';

/** Who caused the event. */
export type CdrSource = 'network' | 'application';
export type CdrRole = 'uac' | 'uas' | 'proxy-uas';
export type CdrReason = 'call-rejected' | 'call-canceled' | 'normal-release' | 'session-expired' | 'ackbye';

/** Call detail events, for applications that routed `cdr:attempt`, `cdr:start` or `cdr:stop`; nothing is made when none did. */
export class CdrReporter {
  constructor(
    private readonly router: Router<AppConnection>,
    private readonly time: () => string,
  ) {}

  attempt(source: CdrSource, invite: SipMessage | string): void {
    this.#report('attempt', source, '', invite);
  }

  start(source: CdrSource, role: CdrRole, success: SipMessage | string): void {
    this.#report('start', source, role, success);
  }

  stop(source: CdrSource, reason: CdrReason, message: SipMessage | string): void {
    this.#report('stop', source, reason, message);
  }

  #report(event: 'attempt' | 'start' | 'stop', source: CdrSource, detail: string, message: SipMessage | string): void {
    const app = this.router.next(`cdr:${event}`);
    if (app === undefined) return;
    const text = typeof message === 'string' ? message : serialize(message);
    app.payload(formatCdr(nextSerialId(), event, source, this.time(), detail, text));
  }
}
