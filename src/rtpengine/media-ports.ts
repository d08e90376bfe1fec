/** RTP and RTCP on both sides. */
const PORTS_PER_CALL = 4;

/** How many calls a range of rtpengine's ports carries, both ends included. */
export function callsOfPorts({ min, max }: { readonly min: number; readonly max: number }): number {
  return Math.floor((max - min + 1) / PORTS_PER_CALL);
}
