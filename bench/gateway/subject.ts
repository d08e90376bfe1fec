import type { LoadTarget } from '../sip-server/generator.js';

/** What is measured: where its SIP is, and its processes by name. */
export interface Subject {
  readonly target: LoadTarget;
  /** Several processes of one name are summed up. */
  readonly processes: () => readonly { readonly name: string; readonly pid: number }[];
  /** Those that it is about: all but Redis and rtpengine. */
  readonly own: readonly string[];
  readonly close: () => Promise<void>;
}

/** That the generator calls. */
export const NUMBER = '+15550100100';
/** rtpengine's ports: capacity for 7,500 calls. */
export const RELAY_PORTS = { min: 30_000, max: 59_999 };
