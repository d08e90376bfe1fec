import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** Between a gateway and its SIP server: the connection can be cut, and kept from coming back. */
export class ControlProxy {
  readonly #sockets = new Set<Socket>();
  #isOpen = true;

  private constructor(private readonly server: Server) {}

  static async open(targetPort: number): Promise<ControlProxy> {
    const server = createServer();
    const proxy = new ControlProxy(server);
    server.on('connection', (client) => proxy.#join(client, targetPort));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
    return proxy;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Breaks every connection; new ones are broken at once until `mend`. */
  cut(): void {
    this.#isOpen = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#isOpen = true;
  }

  close(): void {
    this.cut();
    this.server.close();
  }

  #join(client: Socket, port: number): void {
    if (!this.#isOpen) {
      client.destroy();
      return;
    }
    const server = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }
}
