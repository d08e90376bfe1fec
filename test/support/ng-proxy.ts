import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';

const COOKIE_CHARACTERS = 36;

/** Between a gateway and its rtpengine: keeps back the replies to a command until it is told otherwise. Everything else passes. */
export class NgProxy {
  /** By cookie: a retransmitted command gets the same reply again. */
  readonly #held = new Map<string, Buffer>();
  readonly #heldCookies = new Set<string>();
  readonly #clients = new Map<string, number>();
  holding: string | null = null;

  private constructor(
    private readonly front: Socket,
    private readonly back: Socket,
    readonly rtpenginePort: number,
  ) {
    front.on('message', (data, from) => {
      const cookie = data.toString('latin1', 0, COOKIE_CHARACTERS);
      this.#clients.set(cookie, from.port);
      const command = /7:command(\d+):/.exec(data.toString('latin1'));
      const name =
        command === null
          ? ''
          : data.toString('latin1', command.index + command[0].length, command.index + command[0].length + Number(command[1]));
      if (name === this.holding) this.#heldCookies.add(cookie);
      back.send(data, rtpenginePort, '127.0.0.1');
    });
    back.on('message', (reply) => {
      const cookie = reply.toString('latin1', 0, COOKIE_CHARACTERS);
      if (this.#heldCookies.has(cookie)) this.#held.set(cookie, reply);
      else this.#pass(cookie, reply);
    });
  }

  static async open(rtpenginePort: number): Promise<NgProxy> {
    const sockets = [createSocket('udp4'), createSocket('udp4')] as const;
    for (const socket of sockets) {
      socket.bind(0, '127.0.0.1');
      await once(socket, 'listening');
    }
    return new NgProxy(...sockets, rtpenginePort);
  }

  get port(): number {
    return this.front.address().port;
  }

  /** Commands whose replies are kept back at the moment. */
  get heldCount(): number {
    return this.#held.size;
  }

  /** What was kept back goes out, and nothing more is kept. */
  release(): void {
    this.holding = null;
    this.#heldCookies.clear();
    for (const [cookie, reply] of this.#held) this.#pass(cookie, reply);
    this.#held.clear();
  }

  close(): void {
    this.front.close();
    this.back.close();
  }

  #pass(cookie: string, reply: Buffer): void {
    const port = this.#clients.get(cookie);
    if (port !== undefined) this.front.send(reply, port, '127.0.0.1');
  }
}
