import type { CallSnapshot } from '../model/call-snapshot.js';
import type { OwnSide } from './call-dialog.js';
import { answerOf, beginningOf, type CallOrigin, type CallProgress } from './call-record.js';
import type { CallState } from './state.js';
import type { DialogSnapshot } from '../ports/signalling.js';

/** A call as it is kept for the next process of this gateway. */
export interface KeptCall {
  readonly origin: CallOrigin;
  readonly own: OwnSide;
  readonly progress: CallProgress;
  readonly dialog: DialogSnapshot;
  /** The media relay that has its session. */
  readonly node: string | null;
  readonly call: CallState;
}

/** What is written is read by another version of the gateway, perhaps: it takes its own form only. */
const FORM = 4;

/** `null`: there is nothing to take up again. */
export function snapshotCall(
  call: CallState,
  parts: Omit<KeptCall, 'call' | 'dialog'> & { readonly dialog: DialogSnapshot | null },
): CallSnapshot | null {
  const { route } = call;
  if (parts.dialog === null || route === null) return null;
  return {
    call_id: parts.origin.callId,
    org_id: route.org.org_id,
    phone_number: route.number.phone_number,
    call: beginningOf(parts.origin),
    answer: answerOf(call, parts.progress),
    state: { form: FORM, ...parts, call },
  };
}

/** `undefined`: another version of the gateway wrote it. */
export function readKeptCall({ state }: CallSnapshot): KeptCall | undefined {
  const kept = state as (KeptCall & { readonly form: number }) | null;
  return kept?.form === FORM ? kept : undefined;
}
