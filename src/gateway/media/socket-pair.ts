import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { Log } from '../../lib/log.js';

/** Holds bursts of all calls of a pair while the event loop is busy; the usual 208 kB hold some 280 packets. */
const RECEIVE_BUFFER_BYTES = 4 * 1_024 * 1_024;

/** One datagram; the callback owns the buffer. */
export type OnDatagram = (datagram: Buffer, address: string, port: number) => void;

/** RTP on an even port and RTCP on the next one (RFC 3550 §11). */
export class SocketPair {
  #sendErrors = 0;
  #isClosed = false;
  readonly #onSent = (error: Error | null): void => {
    if (error !== null) this.#sendErrors += 1;
  };

  private constructor(
    readonly address: string,
    readonly rtpPort: number,
    private readonly rtp: Socket,
    private readonly rtcp: Socket,
  ) {}

  /** Binds both ports. Rejects with the system's error if one is taken, and then leaves none open. */
  static async open(address: string, rtpPort: number, onRtp: OnDatagram, onRtcp: OnDatagram, log: Log): Promise<SocketPair> {
    const rtp = await bind(address, rtpPort, onRtp);
    try {
      const pair = new SocketPair(address, rtpPort, rtp, await bind(address, rtpPort + 1, onRtcp));
      for (const socket of [pair.rtp, pair.rtcp])
        socket.on('error', (error) => log.warn({ rtp_port: rtpPort, error: error }, 'media.socket.error'));
      return pair;
    } catch (error) {
      await closed(rtp);
      throw error;
    }
  }

  get rtcpPort(): number {
    return this.rtpPort + 1;
  }

  /** Datagrams that the system did not send. */
  get sendErrors(): number {
    return this.#sendErrors;
  }

  /**
   * Requests large receive buffers. Linux reports twice what it grants; the other half is its own bookkeeping.
   * @returns the bytes granted for packets, of the smaller buffer
   */
  growReceiveBuffers(): { readonly askedBytes: number; readonly grantedBytes: number } {
    const granted = [this.rtp, this.rtcp].map((socket) => {
      try {
        socket.setRecvBufferSize(RECEIVE_BUFFER_BYTES);
      } catch {
        // The system keeps the previous size, which the caller gets.
      }
      const reported = socket.getRecvBufferSize();
      return process.platform === 'linux' ? reported / 2 : reported;
    });
    return { askedBytes: RECEIVE_BUFFER_BYTES, grantedBytes: Math.min(...granted) };
  }

  sendRtp(buffer: Uint8Array, lengthBytes: number, address: string, port: number): void {
    if (!this.#isClosed) this.rtp.send(buffer, 0, lengthBytes, port, address, this.#onSent);
  }

  sendRtcp(buffer: Uint8Array, lengthBytes: number, address: string, port: number): void {
    if (!this.#isClosed) this.rtcp.send(buffer, 0, lengthBytes, port, address, this.#onSent);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.all([closed(this.rtp), closed(this.rtcp)]);
  }
}

function bind(address: string, port: number, onDatagram: OnDatagram): Promise<Socket> {
  const family = isIPv6(address) ? 6 : 4;
  const socket = createSocket({
    type: family === 6 ? 'udp6' : 'udp4',
    // Addresses are checked literals: otherwise each datagram would use the resolver's thread pool.
    lookup: (hostname, _options, callback) => callback(null, hostname, family),
  });
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind({ address, port, exclusive: true }, () => {
      socket.off('error', reject);
      socket.on('message', (datagram: Buffer, from: RemoteInfo) => onDatagram(datagram, from.address, from.port));
      resolve(socket);
    });
  });
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.close(() => resolve()));
}
