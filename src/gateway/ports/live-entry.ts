import type { E164 } from '../model/e164.js';
import type { BeginningCall, CallInProgress } from '../model/live-calls.js';
import { recordMember } from './ordering.js';

/** A call as it stands in its organization's list of those in progress. */
export interface LiveEntry {
  readonly callId: string;
  readonly member: string;
  readonly text: string;
}

type Listed = Omit<CallInProgress, 'org_id' | 'answer'>;

/** The index member's id is what stands behind the time: see `recordMember`. */
export function liveMemberOf({ started_at: startedAt, call_id: callId }: BeginningCall): string {
  return recordMember(startedAt, callId);
}

export function liveEntry(call: BeginningCall, to: E164, gateway: string): LiveEntry {
  const listed: Listed = { ...call, to, gateway };
  return { callId: call.call_id, member: liveMemberOf(call), text: JSON.stringify(listed) };
}

export function readLiveEntry(orgId: string, text: string): CallInProgress {
  return { ...(JSON.parse(text) as Listed), org_id: orgId, answer: null };
}
