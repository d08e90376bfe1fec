import type { IncomingRequest } from '../sip/user-agent/user-agent-context.js';
import { cseqNumber } from '../sip/message/core-headers.js';
import { getHeader, header, type SipRequest } from '../sip/message/message.js';
import { tagOf } from '../sip/message/uri.js';
import type { FramePeer } from './control-protocol.js';
import type { Flow } from '../sip/transport/flow.js';
import { PassingMap } from '../lib/passing-map.js';
import type { QueuedTimer, TimerQueue } from '../lib/timers.js';
import type { DialogEntry } from '../sip/dialog/dialog-table.js';
import { ASLEEP_MS } from '../sip/user-agent.js';
import type { AppConnection } from './applications.js';

/** A dialog and its application. */
export interface AppDialog {
  /** Dialog id of the control protocol. */
  readonly id: string;
  readonly entry: DialogEntry;
  /** `null`: its application disconnected and may return. */
  app: AppConnection | null;
  /** Transaction id of the initial INVITE, which its ACK carries. */
  readonly inviteTransactionId: string;
  /** Nobody took it up in time: it ends as soon as its application is there. */
  readonly isLate?: boolean;
}

/** Calls that end at a time, unless their application is there, or acts, before. */
interface Deadline {
  readonly calls: Set<AppDialog>;
  readonly timer: QueuedTimer;
}

/** 64·T1: within this time a connected application acts in each call that it took over. It may have lost the call meanwhile. */
const CLAIM_MS = 32_000;

/** Every application's dialogs, including those of disconnected applications. */
export class AppDialogs {
  readonly #byId = new PassingMap<string, AppDialog>();
  /** By the key of their entry. */
  readonly #byKey = new PassingMap<string, AppDialog>();
  readonly #byCallId = new PassingMap<string, AppDialog>();
  /** By instance. */
  readonly #orphans = new Map<string, Deadline>();
  readonly #unclaimed = new Map<AppConnection, Deadline>();

  constructor(
    private readonly timers: TimerQueue,
    /** How long calls wait for a disconnected application; 0: they end immediately. */
    private readonly graceMs: number,
    /** False: another host may have the call. */
    private readonly mayEnd: (call: AppDialog) => boolean,
    private readonly end: (call: AppDialog) => void,
  ) {}

  get size(): number {
    return this.#byKey.size;
  }

  byId(id: string): AppDialog | undefined {
    return this.#byId.get(id);
  }

  of(entry: DialogEntry): AppDialog | undefined {
    const call = this.#byKey.get(entry.key);
    return call?.entry === entry ? call : undefined;
  }

  byCallId(callId: string | undefined): AppDialog | undefined {
    return callId === undefined ? undefined : this.#byCallId.get(callId);
  }

  add(call: AppDialog): void {
    this.#byId.set(call.id, call);
    this.#byKey.set(call.entry.key, call);
    this.#byCallId.set(call.entry.state.callId, call);
  }

  drop(call: AppDialog): void {
    this.#byKey.deleteOnly(call.entry.key, call);
    this.#byId.deleteOnly(call.id, call);
    this.#byCallId.deleteOnly(call.entry.state.callId, call);
    this.#release(this.#orphans, call);
    this.#release(this.#unclaimed, call);
  }

  /** The application disconnected: ends its calls, or keeps them if it has an instance id. */
  orphan(app: AppConnection): void {
    const calls = [...this.#byKey.values()].filter((call) => call.app === app);
    const { instance } = app;
    if (instance === null || this.graceMs === 0) {
      for (const call of calls) this.#endAndDrop(call);
      return;
    }
    for (const call of calls) {
      // Nobody else can acknowledge it.
      if (call.entry.owesFirstAck) {
        this.#endAndDrop(call);
        continue;
      }
      call.app = null;
      this.#release(this.#unclaimed, call);
      this.#await(this.#orphans, instance, call, this.graceMs);
    }
  }

  /** A call of an earlier process waits for its application as for one that disconnected now. */
  restore(call: AppDialog, instance: string): void {
    this.add(call);
    this.#await(this.#orphans, instance, call, this.graceMs);
  }

  /** Instances of lost hosts, whose calls wait for an application of ours. */
  get takenInstances(): readonly string[] {
    return [...this.#orphans.keys()].filter((instance) => instance.endsWith(TAKEN));
  }

  /** The application reconnected, or takes the calls of another instance: reassigns them, and returns them. */
  adopt(app: AppConnection, instance = app.instance): readonly AppDialog[] {
    const orphans = instance === null ? undefined : this.#orphans.get(instance);
    const calls = [...(orphans?.calls ?? [])];
    for (const call of calls) {
      if (call.isLate === true) {
        this.#endAndDrop(call);
        continue;
      }
      this.#release(this.#orphans, call);
      call.app = app;
      this.#await(this.#unclaimed, app, call, CLAIM_MS);
    }
    return calls.filter(({ isLate }) => isLate !== true);
  }

  /** The application acted in the call. */
  claim(call: AppDialog): void {
    if (this.#unclaimed.size > 0) this.#release(this.#unclaimed, call);
  }

  #await<Key>(deadlines: Map<Key, Deadline>, key: Key, call: AppDialog, withinMs: number): void {
    const known = deadlines.get(key);
    if (known !== undefined) return void known.calls.add(call);
    deadlines.set(key, { calls: new Set([call]), timer: this.#due(deadlines, key, withinMs) });
  }

  #due<Key>(deadlines: Map<Key, Deadline>, key: Key, withinMs: number): QueuedTimer {
    return this.timers.start(withinMs, () => {
      const late = deadlines.get(key);
      if (late !== undefined && [...late.calls].some((call) => !this.mayEnd(call)))
        return void deadlines.set(key, { ...late, timer: this.#due(deadlines, key, ASLEEP_MS) });
      deadlines.delete(key);
      for (const each of late?.calls ?? []) this.#endAndDrop(each);
    });
  }

  #release<Key>(deadlines: Map<Key, Deadline>, call: AppDialog): void {
    for (const [key, { calls, timer }] of deadlines) {
      if (!calls.delete(call) || calls.size > 0) continue;
      this.timers.stop(timer);
      deadlines.delete(key);
    }
  }

  #endAndDrop(call: AppDialog): void {
    this.end(call);
    this.drop(call);
  }
}

const TAKEN = '|taken';

/** The text of a dialog that another host had: its application is to be one of ours. */
export function takenUserData(text: string): string {
  return text.endsWith(TAKEN) ? text : `${text}${TAKEN}`;
}

/** The lost gateway's name. */
export function gatewayOf(takenInstance: string): string {
  return takenInstance.slice('gw:'.length, -TAKEN.length);
}

/** The text in a dialog's record that leads to its application; `null`: the call does not wait for it. */
export function userDataOf(app: AppConnection, transactionId: string): string | null {
  return app.instance === null ? null : `${transactionId}|${app.instance}`;
}

/** `instance` is empty if the text is not ours. */
export function readUserData(text: string): { readonly inviteTransactionId: string; readonly instance: string } {
  const [inviteTransactionId = '', ...rest] = text.split('|');
  return { inviteTransactionId, instance: rest.join('|') };
}

/** Source or destination of a message. */
export function peerOf(flow: Flow): FramePeer {
  return { protocol: flow.transport.toLowerCase(), address: flow.remote.address, port: flow.remote.port };
}

/** Address in the echo of our request: the remote end of a connection, the local end for UDP. */
export function sentTo(flow: Flow): FramePeer {
  return flow.reliable ? peerOf(flow) : { protocol: flow.transport.toLowerCase(), ...flow.local };
}

/** Dialog id of the protocol: Call-ID and From tag of the INVITE, in either direction. */
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

/** Notifies an application that the caller is gone without a CANCEL: it supports no other way. */
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
