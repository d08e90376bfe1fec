import { UdpSocket, type OnDatagram } from '../../srtp/udp-socket.js';

/** Holds bursts of all calls of a pair while the event loop is busy; the usual 208 kB hold some 280 packets. */
const RECEIVE_BUFFER_BYTES = 4 * 1_024 * 1_024;

/** RTP on an even port and RTCP on the next one (RFC 3550 §11). */
export class SocketPair {
  private constructor(
    readonly address: string,
    readonly rtp: UdpSocket,
    readonly rtcp: UdpSocket,
  ) {}

  /** Binds both ports. Throws the system's error if one is taken, and then leaves none open. */
  static open(address: string, rtpPort: number, onRtp: OnDatagram, onRtcp: OnDatagram): SocketPair {
    const rtp = new UdpSocket(address, rtpPort, onRtp);
    try {
      return new SocketPair(address, rtp, new UdpSocket(address, rtpPort + 1, onRtcp));
    } catch (error) {
      rtp.close();
      throw error;
    }
  }

  /** Datagrams of unknown senders. */
  get strangers(): number {
    return this.rtp.strangers + this.rtcp.strangers;
  }

  /** Datagrams that the system did not take. */
  get sendErrors(): number {
    return this.rtp.sendErrors + this.rtcp.sendErrors;
  }

  /**
   * Requests large receive buffers. Linux reports twice what it grants; the other half is its own bookkeeping.
   * @returns the bytes granted for packets, of the smaller buffer
   */
  growReceiveBuffers(): { readonly askedBytes: number; readonly grantedBytes: number } {
    const reported = Math.min(...[this.rtp, this.rtcp].map((socket) => socket.growReceiveBuffer(RECEIVE_BUFFER_BYTES)));
    return { askedBytes: RECEIVE_BUFFER_BYTES, grantedBytes: process.platform === 'linux' ? reported / 2 : reported };
  }

  close(): void {
    this.rtp.close();
    this.rtcp.close();
  }
}
