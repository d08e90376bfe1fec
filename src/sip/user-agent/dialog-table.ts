import { DialogEntry, type DialogEnds, type DialogUsage } from '../dialog/dialog-entry.js';
import { dialogKey, type Dialog } from '../dialog/dialog.js';
import type { CoreHeaders } from '../message/core-headers.js';
import type { SipStack } from '../stack.js';
import type { ServerTransaction } from '../transaction/transaction-runner.js';
import type { Flow } from '../transport/flow.js';

/** All dialogs, by RFC 3261 §12's id, and the requests that a copy by another way would be merged with (§8.2.2.2). */
export class DialogTable {
  readonly #dialogs = new Map<string, DialogEntry>();
  readonly #merged = new Map<string, ServerTransaction | DialogEntry>();

  constructor(
    private readonly stack: SipStack,
    private readonly ends: DialogEnds,
  ) {}

  get size(): number {
    return this.#dialogs.size;
  }

  find(callId: string, localTag: string, remoteTag: string): DialogEntry | undefined {
    return this.#dialogs.get(dialogKey(callId, localTag, remoteTag));
  }

  /** `merge`: the initial INVITE's key, which stands for the dialog as long as it lives; `null` when the request was ours. */
  add(state: Dialog, flow: Flow, usage: DialogUsage, merge: string | null): DialogEntry {
    const entry = new DialogEntry(state, flow, usage, merge, this.stack.timers, this.stack.timerSettings, this.ends);
    this.#dialogs.set(entry.key, entry);
    return entry;
  }

  forget(dialog: DialogEntry): void {
    const { invite } = dialog;
    dialog.invite = null;
    dialog.end();
    if (this.#dialogs.get(dialog.key) === dialog) this.#dialogs.delete(dialog.key);
    if (dialog.mergeKey !== null && this.#merged.get(dialog.mergeKey) === dialog) this.#merged.delete(dialog.mergeKey);
    invite?.onDialogEnded();
  }

  /** False when the same request came by another way and is not done. */
  claim(transaction: ServerTransaction): boolean {
    const key = transaction.mergeKey;
    if (this.#merged.has(key)) return false;
    this.#merged.set(key, transaction);
    return true;
  }

  /** The request has its final answer; an INVITE's key goes over to the dialog that it made. */
  release(transaction: ServerTransaction, dialog: DialogEntry | null): void {
    const key = transaction.mergeKey;
    if (this.#merged.get(key) === transaction) this.#merged.delete(key);
    if (dialog !== null && dialog.mergeKey === key) this.#merged.set(key, dialog);
  }

  /** The dialog that a request or an ACK of a peer names. */
  of(core: CoreHeaders): DialogEntry | undefined {
    return this.find(core.callId, core.toTag ?? '', core.fromTag ?? '');
  }
}
