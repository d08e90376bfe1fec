import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:tls';
import type { CarrierCall } from './carrier-call.js';
import { testCertificates } from './certificates.js';
import { SipPeer } from './sip-peer.js';

/** Where carriers accept our connections: a message goes on in its call, over the connection that it came by. */
export class CarrierListener {
  readonly #calls = new Map<string, CarrierCall>();
  readonly #peers: SipPeer[] = [];
  readonly #server: Server;

  private constructor(cert: string, key: string) {
    this.#server = createServer({ cert, key }, (socket) => {
      const peer = SipPeer.accepted(socket);
      this.#peers.push(peer);
      peer.onMessage = (message) => this.#calls.get(message.header('Call-ID') ?? '')?.take(peer, message);
    });
  }

  static async open(): Promise<CarrierListener> {
    const { cert, key } = await testCertificates();
    const listener = new CarrierListener(cert, key);
    await new Promise<void>((resolve) => listener.#server.listen(0, '127.0.0.1', resolve));
    return listener;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get connections(): number {
    return this.#peers.length;
  }

  add(call: CarrierCall): void {
    this.#calls.set(call.signalling.callId, call);
  }

  close(): void {
    for (const peer of this.#peers) peer.close();
    this.#server.close();
  }
}
