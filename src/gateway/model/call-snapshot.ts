import type { DialPermit } from './dialling.js';
import type { BeginningCall, CallAnswer } from './live-calls.js';

/** What a gateway that was killed needs of an answered call, or of one that it dials. The store keeps it as it is and looks at nothing but these. */
export interface CallSnapshot {
  readonly call_id: string;
  /** Whose limits it counts against. */
  readonly org_id: string;
  readonly phone_number: string;
  /** For the lists of calls in progress. */
  readonly call: BeginningCall;
  /** For a placed call: what is reserved for it, and the dialled number; `null`: it came in. An earlier version has none. */
  readonly dial?: { readonly permit: DialPermit; readonly to: string } | null;
  /** `null`: a placed call that is not answered. */
  readonly answer: CallAnswer | null;
  /** The rest, in the gateway's own form. */
  readonly state: unknown;
}
