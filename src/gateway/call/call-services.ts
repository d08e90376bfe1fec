import type { E164 } from '../model/e164.js';
import type { TrunkDown } from './place-context.js';
import type { Clock } from '../../lib/clock.js';
import type { TimerQueue } from '../../lib/timers.js';
import type { Log } from '../../lib/log.js';
import type { SipMessageSeen } from '../../lib/observed.js';
import type { CallStore, DialLedger, IdentityClaim, IdentityVerifier, RouteStore, SnapshotStore } from '../ports/ports.js';
import type { DoNotCallList } from '../ports/batches.js';
import type { AwakeGate } from './awake-gate.js';
import type { RequestServices } from './agent-requests.js';
import type { AgentServices } from './call-agent.js';
import type { CallOrigin, OwnSide } from './call.js';
import type { DialogServices, OpenInvite } from './call-dialog.js';
import type { OtherCalls } from './call-legs.js';
import type { MediaServices } from './call-media.js';
import type { CallFacts } from './state.js';

/** What every call of this process shares. */
export interface CallServices extends MediaServices, DialogServices, RequestServices, AgentServices {
  readonly routes: RouteStore;
  readonly calls: CallStore;
  readonly snapshots: SnapshotStore;
  readonly identities: IdentityVerifier;
  readonly dials: DialLedger;
  readonly doNotCall: Pick<DoNotCallList, 'add' | 'find'>;
  readonly others: OtherCalls;
  /** Left out: nobody asks trunks. */
  readonly trunkDown?: TrunkDown;
  /** Trunks are at public addresses alone. */
  readonly trunksArePublic: boolean;
  /** `null`: no other host takes calls. */
  readonly gate: Pick<AwakeGate, 'holds'> | null;
  /** Whether it is kept what happens in calls. */
  readonly isTraced: boolean;
  /** Whether it is kept when the steps of calls ran. */
  readonly isTimed?: boolean;
  readonly onSipMessage?: (message: SipMessageSeen) => void;
  readonly clock: Clock;
  readonly timers: TimerQueue;
  readonly log: Log;
}

/** What is known of one INVITE before it is decided. */
export interface InviteContext {
  readonly origin: CallOrigin;
  readonly open: OpenInvite;
  /** `null`: not a number. */
  readonly called: E164 | null;
  /** What there is to verify of who calls. */
  readonly claim: Omit<IdentityClaim, 'called'>;
  /** Values of `Authorization`, in order. */
  readonly authorization: readonly string[];
  readonly facts: CallFacts;
  readonly own: OwnSide;
}
