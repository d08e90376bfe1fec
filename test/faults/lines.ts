import { createSocket, type Socket as Datagrams } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** What may be wrong with a connection. */
export type LineFault = 'reset' | 'black hole' | 'slow' | null;

/** A connection between two parts, with a proxy in it that can spoil it. */
export interface Line {
  readonly port: number;
  spoil(fault: LineFault): void;
  close(): Promise<void>;
}

const SLOW_MS = 200;
/** Share of datagrams lost while the line is slow. */
const LOST = 0.05;

/**
 * A TCP connection. `reset` breaks what is connected and whatever connects anew; in a `black hole` nothing comes through, nobody is told,
 * and what was sent comes when it is over (TCP repeats it); `slow` delays what comes by 200 ms each way.
 */
export class TcpLine implements Line {
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #fault: LineFault = null;

  private constructor(
    private readonly server: Server,
    private readonly targetPort: () => number,
  ) {
    // The target's port may not be known before it is up.
    server.on('connection', (client) => this.#join(client));
  }

  static async open(targetPort: number | (() => number)): Promise<TcpLine> {
    const server = createServer();
    const line = new TcpLine(server, typeof targetPort === 'number' ? () => targetPort : targetPort);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return line;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  spoil(fault: LineFault): void {
    this.#fault = fault;
    for (const pair of this.#pairs) {
      if (fault === 'reset') for (const socket of pair) socket.resetAndDestroy();
      else if (fault === 'black hole') for (const socket of pair) socket.pause();
      else for (const socket of pair) socket.resume();
    }
  }

  async close(): Promise<void> {
    this.spoil('reset');
    this.server.close();
    await once(this.server, 'close');
  }

  #join(client: Socket): void {
    client.on('error', () => undefined);
    if (this.#fault === 'reset') {
      client.resetAndDestroy();
      return;
    }
    const server = connect(this.targetPort(), '127.0.0.1');
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [server, client] as const]) {
      const way = new Way(to);
      from.setNoDelay(true);
      from.on('error', () => undefined);
      from.on('data', (chunk: Buffer) => way.pass(chunk, this.#fault === 'slow' ? SLOW_MS : 0));
      from.on('close', () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
      if (this.#fault === 'black hole') from.pause();
    }
  }
}

/** One direction of a TCP connection: what comes later never overtakes, also when the line is no longer slow. */
class Way {
  #last = Promise.resolve();

  constructor(private readonly to: Socket) {}

  pass(chunk: Buffer, delayMs: number): void {
    const due = delayMs === 0 ? Promise.resolve() : new Promise<void>((resolve) => setTimeout(resolve, delayMs));
    this.#last = Promise.all([this.#last, due]).then(() => void this.to.write(chunk));
  }
}

/** The datagrams of ng. There is no reset: a port that nobody has is a `black hole` too, as rtpengine-client sees it. */
export class UdpLine implements Line {
  #fault: LineFault = null;
  readonly #backs = new Map<number, Datagrams>();

  private constructor(
    private readonly front: Datagrams,
    private readonly targetPort: number,
  ) {
    front.on('message', (data, from) => {
      this.#pass(() => this.#backOf(from.port).send(data, this.targetPort, '127.0.0.1'));
    });
  }

  static async open(targetPort: number): Promise<UdpLine> {
    const front = createSocket('udp4');
    front.bind(0, '127.0.0.1');
    await once(front, 'listening');
    return new UdpLine(front, targetPort);
  }

  get port(): number {
    return this.front.address().port;
  }

  spoil(fault: LineFault): void {
    this.#fault = fault;
  }

  close(): Promise<void> {
    for (const back of this.#backs.values()) back.close();
    this.front.close();
    return Promise.resolve();
  }

  /** One towards rtpengine for each of the gateways' sockets. */
  #backOf(port: number): Datagrams {
    const known = this.#backs.get(port);
    if (known !== undefined) return known;
    const back = createSocket('udp4');
    back.on('message', (reply) => this.#pass(() => this.front.send(reply, port, '127.0.0.1')));
    // rtpengine may be gone.
    back.on('error', () => undefined);
    this.#backs.set(port, back);
    return back;
  }

  #pass(send: () => void): void {
    if (this.#fault === 'black hole' || this.#fault === 'reset') return;
    if (this.#fault !== 'slow') send();
    else if (Math.random() >= LOST) setTimeout(send, SLOW_MS);
  }
}
