import type { Dialog, SessionTimer } from './dialog.js';

/** What another process needs to go on with a confirmed dialog: plain data, fit for JSON. */
export interface DialogRecord extends Omit<Dialog, 'localSeq'> {
  /** No CSeq number of ours is above it: numbers are reserved in blocks, so that most of our requests change no record. */
  readonly reservedSeq: number;
  /** The user's own text. */
  readonly userData: string;
  readonly transport: 'TLS' | 'TCP' | 'UDP';
  /** Where the peer's last message came from. */
  readonly sourceAddress: string;
  readonly sourcePort: number;
  /** Who may act in the dialog: addresses, and names of certificates as `Flow.tlsIdentity` has them. */
  readonly actors: readonly string[];
  readonly lastSdp: string;
  readonly lastContact: string | null;
  readonly sessionTimer: SessionTimer | null;
  /** When the session timer is due, in milliseconds since the Unix epoch; 0: no timer. */
  readonly sessionDueMs: number;
  /** Our 2xx without an ACK. */
  readonly unacknowledged: UnacknowledgedAnswer | null;
  /** CSeq number of our last INVITE; 0: none. */
  readonly ownInviteSeq: number;
  /** Body of its ACK. */
  readonly ackBody: string;
  /** Connections that we open for it lead to public addresses alone. */
  readonly isPublicOnly?: boolean;
}

export interface UnacknowledgedAnswer {
  /** The INVITE's. */
  readonly cseq: number;
  /** As sent. */
  readonly text: string;
  /** The INVITE created the dialog. */
  readonly isInitial: boolean;
}

/** Keeps dialogs outside the process. Nothing throws. */
export interface DialogStore {
  /** False: another host may have them by now. No request of ours but BYE goes out. */
  readonly isOwner: boolean;
  /** False: this process stood still and does not know who has them. Nothing is decided, and not even a BYE goes out. */
  readonly isAwake: boolean;
  /**
   * The first change of a dialog is its whole record.
   * @param when `now`: it survives the process when the call returns; `soon`: in the next turn of the event loop
   */
  write(key: string, changes: Partial<DialogRecord>, when: 'now' | 'soon'): void;
  /** Soon. */
  end(key: string): void;
  /** Whether another host may have a dialog that this one does not know. */
  isElsewhere(key: string): Promise<boolean> | false;
}

/** Those that change during a dialog. */
const CHANGING = [
  ...(['remoteTarget', 'remoteSeq', 'reservedSeq', 'transport', 'sourceAddress', 'sourcePort', 'actors', 'lastSdp'] as const),
  ...(['userData', 'lastContact', 'sessionTimer', 'sessionDueMs', 'unacknowledged', 'ownInviteSeq', 'ackBody'] as const),
  ...(['isPublicOnly'] as const),
] satisfies readonly (keyof DialogRecord)[];

/** The fields that differ, compared by identity; `null`: none. */
export function changesOf(before: DialogRecord, after: DialogRecord): Partial<DialogRecord> | null {
  let changes: Record<string, unknown> | null = null;
  for (const name of CHANGING) if (after[name] !== before[name]) (changes ??= {})[name] = after[name];
  return changes;
}
