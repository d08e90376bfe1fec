import { createSocket, type Socket } from 'node:dgram';
import { readWire, WirePeer } from './wire-peer.js';
import { freePorts } from './ports.js';

/** A hand-made SIP peer on a UDP port of its own: calls the server, and is called. */
export class UdpPeer extends WirePeer {
  readonly transport = 'UDP';
  readonly #seen = new Set<string>();

  private constructor(
    private readonly socket: Socket,
    private readonly serverPort: number,
  ) {
    super();
    socket.on('message', (data) => {
      const text = data.toString('latin1');
      // What UDP repeats is taken once.
      if (this.#seen.has(text)) return;
      this.#seen.add(text);
      this.deliver(readWire(text));
    });
  }

  static async open(serverPort: number): Promise<UdpPeer> {
    const socket = createSocket('udp4');
    // A port that is free for TCP too: some peers listen there.
    const [port] = await freePorts(1);
    await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve));
    return new UdpPeer(socket, serverPort);
  }

  get localPort(): number {
    return this.socket.address().port;
  }

  raw(text: string): void {
    this.socket.send(Buffer.from(text, 'latin1'), this.serverPort, '127.0.0.1');
  }

  close(): void {
    this.socket.close();
  }
}
