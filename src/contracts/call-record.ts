import type { LegFigures } from './media.js';

/** What is kept of a call that ended or was refused. */
export interface CallRecord {
  /** UUID. */
  readonly call_id: string;
  /** `null`: the number was not known. */
  readonly org_id: string | null;
  readonly agent_id: string | null;
  readonly sip_call_id: string;
  readonly from: string;
  readonly to: string;
  readonly source_ip: string;
  /** A code of the reason table. */
  readonly reason: string;
  readonly sip_status: number;
  readonly codec: string | null;
  /** ISO 8601; `null`: did not happen. */
  readonly started_at: string;
  readonly answered_at: string | null;
  readonly ended_at: string;
  readonly quality: LegFigures | null;
}
