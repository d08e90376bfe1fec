import type { IncomingRequest } from '../sip/user-agent/user-agent-context.js';
import { cseqNumber } from '../sip/message/core-headers.js';
import { getHeader, header, type SipRequest } from '../sip/message/message.js';
import { tagOf } from '../sip/message/uri.js';
import type { FramePeer } from './control-protocol.js';
import type { Flow } from '../sip/transport/flow.js';
import type { QueuedTimer, TimerQueue } from '../lib/timers.js';
import type { DialogEntry } from '../sip/dialog/dialog-table.js';
import type { AppConnection } from './applications.js';

/** A dialog and the application that it belongs to. */
export interface AppDialog {
  /** The protocol's dialog id. */
  readonly id: string;
  readonly entry: DialogEntry;
  /** `null`: its application is gone and may come back. */
  app: AppConnection | null;
  /** The transaction id of the initial INVITE, which its ACK carries. */
  readonly inviteTransactionId: string;
}

interface Orphans {
  readonly calls: Set<AppDialog>;
  readonly timer: QueuedTimer;
}

/** Every dialog that an application has, and those whose application is awaited back. */
export class AppDialogs {
  readonly #byId = new Map<string, AppDialog>();
  readonly #byEntry = new Map<DialogEntry, AppDialog>();
  readonly #byCallId = new Map<string, AppDialog>();
  readonly #orphans = new Map<string, Orphans>();

  constructor(
    private readonly timers: TimerQueue,
    /** How long a lost application may take to come back; 0: its calls end at once. */
    private readonly graceMs: number,
    private readonly end: (call: AppDialog) => void,
  ) {}

  get size(): number {
    return this.#byEntry.size;
  }

  byId(id: string): AppDialog | undefined {
    return this.#byId.get(id);
  }

  of(entry: DialogEntry): AppDialog | undefined {
    return this.#byEntry.get(entry);
  }

  byCallId(callId: string | undefined): AppDialog | undefined {
    return callId === undefined ? undefined : this.#byCallId.get(callId);
  }

  add(call: AppDialog): void {
    this.#byId.set(call.id, call);
    this.#byEntry.set(call.entry, call);
    this.#byCallId.set(call.entry.state.callId, call);
  }

  drop(call: AppDialog): void {
    this.#byEntry.delete(call.entry);
    if (this.#byId.get(call.id) === call) this.#byId.delete(call.id);
    const { callId } = call.entry.state;
    if (this.#byCallId.get(callId) === call) this.#byCallId.delete(callId);
    for (const [instance, { calls, timer }] of this.#orphans) {
      if (!calls.delete(call) || calls.size > 0) continue;
      this.timers.stop(timer);
      this.#orphans.delete(instance);
    }
  }

  /** The application is gone: its calls end, or wait for it when it said who it is. */
  orphan(app: AppConnection): void {
    const calls = [...this.#byEntry.values()].filter((call) => call.app === app);
    const { instance } = app;
    if (instance === null || this.graceMs === 0 || calls.length === 0) {
      for (const call of calls) this.#endAndDrop(call);
      return;
    }
    for (const call of calls) call.app = null;
    const earlier = this.#orphans.get(instance);
    if (earlier !== undefined) {
      for (const call of calls) earlier.calls.add(call);
      return;
    }
    const timer = this.timers.start(this.graceMs, () => {
      const late = this.#orphans.get(instance);
      this.#orphans.delete(instance);
      for (const call of late?.calls ?? []) this.#endAndDrop(call);
    });
    this.#orphans.set(instance, { calls: new Set(calls), timer });
  }

  /** The application is back: its calls are its own again. Returns how many. */
  adopt(app: AppConnection): number {
    const orphans = app.instance === null ? undefined : this.#orphans.get(app.instance);
    if (app.instance === null || orphans === undefined) return 0;
    this.timers.stop(orphans.timer);
    this.#orphans.delete(app.instance);
    for (const call of orphans.calls) call.app = app;
    return orphans.calls.size;
  }

  #endAndDrop(call: AppDialog): void {
    this.end(call);
    this.drop(call);
  }
}

/** Where a message came from or went to. */
export function peerOf(flow: Flow): FramePeer {
  return { protocol: flow.transport.toLowerCase(), address: flow.remote.address, port: flow.remote.port };
}

/** What the echo of a request of ours names: the remote end of a connection, the local one of UDP. */
export function sentTo(flow: Flow): FramePeer {
  return flow.reliable ? peerOf(flow) : { protocol: flow.transport.toLowerCase(), ...flow.local };
}

/** The dialog id of the protocol: Call-ID and the From tag of the INVITE, whoever sent it. */
export function dialogIdOfEntry(dialog: DialogEntry): string {
  const { role, callId, localTag, remoteTag } = dialog.state;
  return `${callId};from-tag=${role === 'uas' ? remoteTag : localTag}`;
}

export function dialogIdOf(request: IncomingRequest): string {
  return request.dialog === null ? `${request.core.callId};from-tag=${request.core.fromTag ?? ''}` : dialogIdOfEntry(request.dialog);
}

export function outgoingDialogId(message: SipRequest): string {
  return `${getHeader(message, 'call-id') ?? ''};from-tag=${tagOf(getHeader(message, 'from') ?? '') ?? ''}`;
}

/** What an application is told when the caller is gone without a CANCEL: it knows no other way to hear of it. */
export function syntheticCancel(invite: SipRequest): SipRequest {
  const kept = invite.headers.filter(({ id }) => ['via', 'from', 'to', 'call-id', 'max-forwards'].includes(id));
  return {
    kind: 'request',
    method: 'CANCEL',
    uri: invite.uri,
    headers: [...kept, header('CSeq', `${String(cseqNumber(invite))} CANCEL`)],
    body: '',
  };
}
