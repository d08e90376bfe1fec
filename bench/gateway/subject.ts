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

/** Of the ports: two subjects that run at once have one half each. */
export type Share = 'all' | 'first' | 'second';

export function relayPorts(share: Share): { readonly min: number; readonly max: number } {
  const { min, max } = RELAY_PORTS;
  const middle = (min + max + 1) / 2;
  return { min: share === 'second' ? middle : min, max: share === 'first' ? middle - 1 : max };
}
