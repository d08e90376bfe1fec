import { z } from 'zod';
import { StoreUnavailableError } from '../../ports/ports.js';
import type { CancelTimer, Clock } from '../../../lib/clock.js';
import { errorText } from '../../../lib/result.js';
import { newUuid } from '../../../lib/ids.js';
import type { Log } from '../../../lib/log.js';
import { gatewayChannel } from './keys.js';
import type { RedisConnection } from './redis.js';
import type { GatewayBus } from '../../ports/stores.js';

const MAX_MESSAGE = 262_144;
/** Requests that wait for an answer, and requests of others that are being answered. */
const MAX_WAITING = 1_000;
const MAX_ANSWERING = 100;
const REPORT_MS = 1_000;

/** What goes over a gateway's channel: others' requests, and the answers to its own. */
const message = z.strictObject({
  type: z.enum(['request', 'change', 'answer']),
  id: z.uuid(),
  from: z.string().min(1).max(200),
  body: z.json(),
});
type Message = z.output<typeof message>;

type Handler = (body: unknown) => unknown;

/** Gateways talk to each other over Redis' channels, one each. Nothing waits there: who does not listen has missed it. */
export class RedisGatewayBus implements GatewayBus {
  readonly #waiting = new Map<string, (body: unknown) => void>();
  #answering = 0;
  #ignored = 0;
  #cancelReport: CancelTimer | undefined;
  #handler: Handler | undefined;

  constructor(
    private readonly redis: RedisConnection,
    private readonly instance: string,
    private readonly onChange: (key: string) => void,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  request(instance: string, body: unknown, limitMs: number): Promise<unknown> {
    return this.#ask('request', instance, body, limitMs);
  }

  /** Tells a gateway of a change; resolves when it has confirmed, or at the limit. */
  async confirm(instance: string, key: string, limitMs: number): Promise<void> {
    await this.#ask('change', instance, key, limitMs);
  }

  async #ask(type: 'request' | 'change', instance: string, body: unknown, limitMs: number): Promise<unknown> {
    if (this.#waiting.size >= MAX_WAITING) throw new StoreUnavailableError('too many requests wait for other gateways');
    const id = newUuid();
    const answer = new Promise<unknown>((resolve) => {
      const cancel = this.clock.setTimer(limitMs, () => this.#settle(id, null));
      this.#waiting.set(id, (value) => {
        cancel();
        resolve(value);
      });
    });
    try {
      await this.#send(instance, { type, id, from: this.instance, body: body as Message['body'] });
    } catch (error) {
      this.#settle(id, null);
      throw error;
    }
    return answer;
  }

  onRequest(handler: Handler): void {
    this.#handler = handler;
  }

  /** A message of this gateway's channel. */
  take(text: string): void {
    const read = readMessage(text);
    if (read === undefined) return this.#ignore();
    if (read.type === 'answer') return this.#settle(read.id, read.body);
    if (read.type === 'change') return this.#confirm(read);
    if (this.#handler === undefined || this.#answering >= MAX_ANSWERING) return this.#ignore();
    this.#answering += 1;
    this.#answer(this.#handler, read)
      .catch((error: unknown) => this.log.warn({ error: errorText(error) }, 'gateway.bus.not_answered'))
      .finally(() => (this.#answering -= 1));
  }

  close(): void {
    this.#cancelReport?.();
    for (const id of [...this.#waiting.keys()]) this.#settle(id, null);
  }

  #confirm(change: Message): void {
    if (typeof change.body !== 'string') return this.#ignore();
    this.onChange(change.body);
    this.#send(change.from, { ...change, type: 'answer', from: this.instance }).catch((error: unknown) => {
      this.log.warn({ error: errorText(error) }, 'gateway.bus.not_answered');
    });
  }

  async #answer(handler: Handler, { id, from, body }: Message): Promise<void> {
    await this.#send(from, { type: 'answer', id, from: this.instance, body: (await handler(body)) as Message['body'] });
  }

  async #send(instance: string, sent: Message): Promise<void> {
    const text = JSON.stringify(sent);
    if (text.length > MAX_MESSAGE) throw new Error(`a message to another gateway has more than ${String(MAX_MESSAGE)} characters`);
    await this.redis.run((client) => client.publish(gatewayChannel(instance), text));
  }

  /** Nothing when nobody waits any more. */
  #settle(id: string, body: unknown): void {
    const settle = this.#waiting.get(id);
    this.#waiting.delete(id);
    settle?.(body);
  }

  #ignore(): void {
    this.#ignored += 1;
    this.#cancelReport ??= this.clock.setTimer(REPORT_MS, () => {
      this.#cancelReport = undefined;
      this.log.warn({ messages: this.#ignored }, 'gateway.bus.ignored');
      this.#ignored = 0;
    });
  }
}

/** `undefined`: it is none. */
function readMessage(text: string): Message | undefined {
  if (text.length > MAX_MESSAGE) return undefined;
  try {
    return message.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
