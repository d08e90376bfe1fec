/** RTP and RTCP on both sides. */
const PORTS_PER_CALL = 4;

/** How many calls a range of rtpengine's ports carries, both ends included. */
export function callsOfPorts({ min, max }: { readonly min: number; readonly max: number }): number {
  return Math.floor((max - min + 1) / PORTS_PER_CALL);
}

/** Other files of rtpengine, some ten with two threads; and calls that end while the next ones begin. */
const SPARE_FILES = 100;

/** How many calls an rtpengine with these ports and this limit on open files carries: each port is a socket. */
export function callsOf(ports: { readonly min: number; readonly max: number }, maxOpenFiles: number): number {
  return Math.max(0, Math.min(callsOfPorts(ports), Math.floor((maxOpenFiles - SPARE_FILES) / PORTS_PER_CALL)));
}
