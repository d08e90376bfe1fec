import type { AgentCall } from '../../test/support/agent/agent-site.js';

/** When the last packet with speech came to the caller, on `performance.now()`. */
export function lastVoicedMs({ end }: AgentCall): number {
  const heard = end.peer.received.findLast(
    ({ packet: { header, payload } }) => header.payloadType === 0 && payload.some((byte) => byte < 0xff),
  );
  return heard?.arrivalMs ?? 0;
}
