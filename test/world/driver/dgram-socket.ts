import { EventEmitter } from 'node:events';
import { worldDatagrams, type From } from './datagrams.js';
import { boundToProcess } from './process.js';
import { later } from './time.js';

/** In place of a socket of node:dgram: with the forms of `bind` and `send` that are used. */
export class WorldDgramSocket extends EventEmitter {
  #bound: { readonly port: number; readonly close: () => void } | null = null;
  #isClosed = false;

  constructor(onMessage?: (...given: unknown[]) => void) {
    super();
    if (onMessage !== undefined) this.on('message', onMessage);
  }

  bind(...given: readonly unknown[]): this {
    const [first] = given;
    const port = typeof first === 'object' && first !== null ? ((first as { readonly port?: number }).port ?? 0) : Number(first ?? 0) || 0;
    const onListening = given.find((one): one is () => void => typeof one === 'function');
    if (onListening !== undefined) this.once('listening', onListening);
    this.#bind(port);
    return this;
  }

  #bind(port: number): void {
    try {
      this.#bound = worldDatagrams().bind(port, (datagrams) => {
        for (const { bytes, from } of datagrams) this.emit('message', Buffer.from(bytes), { ...from, family: 'IPv4', size: bytes.length });
      });
    } catch (error) {
      later(boundToProcess(() => this.emit('error', error)));
      return;
    }
    later(boundToProcess(() => this.emit('listening')));
  }

  /** `send(bytes, [offset, length,] port, address, [callback])`. */
  send(bytes: Uint8Array | string, ...given: readonly unknown[]): void {
    if (this.#bound === null) this.#bind(0);
    const onSent = given.find((one): one is (error: Error | null) => void => typeof one === 'function');
    const numbers = given.filter((one): one is number => typeof one === 'number');
    const whole = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    const [offset = 0, length = whole.length] = numbers.length === 3 ? numbers : [];
    const from: From = { address: '127.0.0.1', port: this.#bound?.port ?? 0 };
    worldDatagrams().send(whole.subarray(offset, offset + length), from, numbers.at(-1) ?? 0);
    if (onSent !== undefined) later(boundToProcess(() => onSent(null)));
  }

  address(): { readonly address: string; readonly family: string; readonly port: number } {
    return { address: '127.0.0.1', family: 'IPv4', port: this.#bound?.port ?? 0 };
  }

  close(onClosed?: () => void): this {
    if (this.#isClosed) throw Object.assign(new Error('Not running'), { code: 'ERR_SOCKET_DGRAM_NOT_RUNNING' });
    this.#isClosed = true;
    if (onClosed !== undefined) this.once('close', onClosed);
    this.#bound?.close();
    later(boundToProcess(() => this.emit('close')));
    return this;
  }

  setRecvBufferSize(): void {
    return;
  }

  getRecvBufferSize(): number {
    return 8 << 20;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}
