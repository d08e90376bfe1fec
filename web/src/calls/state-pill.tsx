import type { JSX } from 'preact';
import { reasons } from '../reasons.js';
import type { Call } from './call-list.js';

type Tone = 'live' | 'fine' | 'warn' | 'bad';

/** The state of a call, or the reason of its end. */
export function StatePill({ call }: { readonly call: Pick<Call, 'state' | 'reason' | 'sip_status'> }): JSX.Element {
  const { state, reason } = call;
  const text = state === 'ringing' ? 'Ringing' : state === 'in_progress' ? 'In progress' : (reason ?? 'Ended');
  return (
    <span class={`pill ${toneOf(call)}`} title={reason === null ? undefined : reasons.value.get(reason)?.explanation}>
      {text}
    </span>
  );
}

function toneOf({ state, reason }: Pick<Call, 'state' | 'reason'>): Tone {
  if (state !== 'ended') return 'live';
  const facts = reason === null ? undefined : reasons.value.get(reason);
  if (facts === undefined || facts.fault === 'nobody' || reason === 'CALLER_CANCELLED') return 'fine';
  return facts.fault === 'gateway' || facts.fault === 'agent' ? 'bad' : 'warn';
}
