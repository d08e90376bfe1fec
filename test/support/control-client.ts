import { connect, type Socket } from 'node:net';
import { encodeFrame, FrameDecoder } from '../../src/sip-server/control-protocol.js';

/** An application on the control port, frame by frame. */
export class ControlClient {
  readonly frames: string[] = [];
  readonly #decoder = new FrameDecoder(1 << 22);
  #waiters: { matches: (payload: string) => boolean; resolve: (payload: string) => void }[] = [];
  readonly closed: Promise<void>;

  private constructor(readonly socket: Socket) {
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      for (const item of this.#decoder.push(chunk.toString('latin1'))) if (item.type === 'frame') this.#take(item.payload);
    });
  }

  static async open(port: number): Promise<ControlClient> {
    const socket = connect({ host: '127.0.0.1', port });
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return new ControlClient(socket);
  }

  /** One that may route: authenticated, with these methods. */
  static async application(port: number, ...methods: string[]): Promise<ControlClient> {
    return ControlClient.instance('', port, ...methods);
  }

  /** The same, whose calls wait for its return: `gw:` and a name. */
  static async instance(tag: string, port: number, ...methods: string[]): Promise<ControlClient> {
    const client = await ControlClient.open(port);
    await client.ask(`a|authenticate|test-secret|${tag}`);
    for (const method of methods) await client.ask(`r-${method}|route|${method}`);
    return client;
  }

  send(payload: string): void {
    this.socket.write(encodeFrame(payload), 'latin1');
  }

  /** Sends a frame and resolves with its answer. */
  ask(payload: string): Promise<string> {
    const id = payload.slice(0, payload.indexOf('|'));
    const answer = this.next((frame) => frame.split('|')[1] === 'response' && frame.split('|')[2] === id);
    this.send(payload);
    return answer;
  }

  /** The next SIP message of the server. */
  sip(): Promise<string> {
    return this.next((frame) => frame.split('|')[1] === 'sip');
  }

  next(matches: (payload: string) => boolean): Promise<string> {
    return new Promise((resolve) => this.#waiters.push({ matches, resolve }));
  }

  close(): void {
    this.socket.destroy();
  }

  #take(payload: string): void {
    this.frames.push(payload);
    const due = this.#waiters.filter(({ matches }) => matches(payload));
    this.#waiters = this.#waiters.filter((waiter) => !due.includes(waiter));
    for (const { resolve } of due) resolve(payload);
  }
}
