import type { AgentRecord } from '../model/agent-record.js';
import type { E164 } from '../model/e164.js';
import type { OwnSide } from './call-dialog.js';
import type { CallOrigin } from './call-record.js';
import type { DialTarget } from './placed-invite.js';
import type { CallFacts } from './state.js';

/** A call to be placed. */
export interface PlaceContext {
  readonly origin: CallOrigin;
  readonly orgId: string;
  readonly from: E164;
  readonly to: E164;
  /** With the settings of this call; `null`: the operator's default. */
  readonly agent: AgentRecord | null;
  readonly facts: CallFacts;
  readonly own: OwnSide;
  readonly target: DialTarget;
  readonly ringTimeoutMs: number;
  /** Finds out whether a person, a machine or a fax answers. */
  readonly detectAnswerer: boolean;
}
