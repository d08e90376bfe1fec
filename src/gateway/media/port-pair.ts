import type { LegEvent, MediaAddress } from '../model/media.js';
import type { MediaLeg } from './leg.js';
import type { Ticking } from './slot-clock.js';
import type { SocketPair } from './socket-pair.js';

export const CALLS_PER_SOCKET_PAIR = 64;

/** No port pair is free for the leg; or its id is open already, or not open. */
export class EndpointFullError extends Error {
  override readonly name = 'EndpointFullError';
}

export interface OpenLeg {
  readonly callId: string;
  readonly media: MediaLeg;
  readonly portPair: PortPair;
  remote: MediaAddress;
  /** The remote's numbers on the two sockets. */
  rtpPeer: number;
  rtcpPeer: number;
  /** SSRC of the peer's RTP. */
  ssrc: number | undefined;
  /** SSRCs of the peer's recent calls here. */
  shunned: readonly ShunnedSource[];
  readonly ticking: Ticking;
  readonly onEvent: (event: LegEvent) => void;
}

/** A pair of sockets and the peers that use it. */
export interface PortPair {
  readonly pair: SocketPair;
  /** By the number of the peer on the socket. */
  readonly byRtp: Map<number, OpenLeg>;
  readonly byRtcp: Map<number, OpenLeg>;
  /** Peers that left recently. */
  readonly resting: RestingPeers;
}

/**
 * The pair for a leg whose far side has the port.
 * @throws EndpointFullError
 */
export function portPairFor(portPairs: readonly PortPair[], localRtpPort: number, remote: MediaAddress): PortPair {
  const portPair = portPairs.find(({ pair }) => pair.rtp.port === localRtpPort);
  if (portPair === undefined) throw new EndpointFullError(`port ${String(localRtpPort)} is not one of the media endpoint's`);
  if (portPair.byRtp.size >= CALLS_PER_SOCKET_PAIR)
    throw new EndpointFullError(`port ${String(localRtpPort)} of the media endpoint has no free slot`);
  if (isTaken(portPair, remote, null)) throw new EndpointFullError('the peer has another leg on these sockets');
  return portPair;
}

/** Whether another leg has the peer on these sockets. */
export function isTaken({ pair, byRtp, byRtcp }: PortPair, { address, rtpPort, rtcpPort }: MediaAddress, leg: OpenLeg | null): boolean {
  const owners = [byRtp.get(pair.rtp.findPeer(address, rtpPort)), byRtcp.get(pair.rtcp.findPeer(address, rtcpPort))];
  return owners.some((owner) => owner !== undefined && owner !== leg);
}

export function addressOf({ pair }: PortPair): MediaAddress {
  return { address: pair.address, rtpPort: pair.rtp.port, rtcpPort: pair.rtcp.port };
}

/** After a call, packets still in flight must not reach the next call of the same peer on the same sockets. */
const REST_MS = 2_000;

interface RestingPeer {
  readonly callId: string;
  readonly address: string;
  readonly port: number;
  /** SSRC of the call's RTP; `undefined`: none arrived. */
  readonly ssrc: number | undefined;
  readonly untilMs: number;
}

/** A source to ignore until a time. */
export interface ShunnedSource {
  readonly ssrc: number;
  readonly untilMs: number;
}

/** Recent peers of a pair of sockets. */
export class RestingPeers {
  /** In the order in which their calls ended. */
  readonly #peers: RestingPeer[] = [];
  readonly #byPort = new Map<number, RestingPeer[]>();

  /** Adds the peer of an ended call. */
  add(callId: string, address: string, port: number, ssrc: number | undefined, nowMs: number): void {
    this.#forget(nowMs);
    const peer = { callId, address, port, ssrc, untilMs: nowMs + REST_MS };
    this.#peers.push(peer);
    const samePort = this.#byPort.get(port);
    if (samePort === undefined) this.#byPort.set(port, [peer]);
    else samePort.push(peer);
  }

  /** SSRCs of other calls from there, which this call must ignore. */
  sources(callId: string, address: string, port: number, nowMs: number): ShunnedSource[] {
    this.#forget(nowMs);
    return (this.#byPort.get(port) ?? []).flatMap((peer) =>
      peer.callId !== callId && peer.address === address && peer.ssrc !== undefined ? [{ ssrc: peer.ssrc, untilMs: peer.untilMs }] : [],
    );
  }

  #forget(nowMs: number): void {
    for (let [oldest] = this.#peers; oldest !== undefined && oldest.untilMs <= nowMs; [oldest] = this.#peers) {
      this.#peers.shift();
      const samePort = this.#byPort.get(oldest.port);
      samePort?.shift();
      if (samePort?.length === 0) this.#byPort.delete(oldest.port);
    }
  }
}
