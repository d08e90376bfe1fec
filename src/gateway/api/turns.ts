import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler } from 'fastify';
import type { Clock } from '../../lib/clock.js';
import { ApiFailure } from './failure.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route waits for somebody else, and limits that by itself. */
    withoutTurn?: boolean;
  }
}

/** Requests of one organization that are worked on at a time: whatever it asks, others find room beside it. */
const AT_ONCE = 4;
const MAX_WAITING = 200;
const WAIT_LIMIT_MS = 5_000;
/**
 * A turn rests after a large body or answer, so that reading and writing much leaves time for calls: this much is free, the rest has this pace.
 */
const FREE_BYTES = 65_536;
const BYTES_PER_MS = 256;

interface Line {
  running: number;
  readonly waiting: Set<() => void>;
}

/** Turns of organizations: a fixed number of requests of each runs, the others wait for a while. */
export class Turns {
  readonly #lines = new Map<string, Line>();

  constructor(private readonly clock: Clock) {}

  /**
   * Resolves with what gives the turn back, told how many bytes body and answer have. Throws RATE_LIMITED when too many wait, or one waits
   * too long.
   */
  async take(name: string): Promise<(bytes?: number) => void> {
    const line = this.#lines.get(name) ?? { running: 0, waiting: new Set() };
    this.#lines.set(name, line);
    if (line.running >= AT_ONCE) await this.#wait(line);
    else line.running += 1;
    let isOver = false;
    return (bytes = 0) => {
      if (isOver) return;
      isOver = true;
      if (bytes <= FREE_BYTES) this.#pass(name, line);
      else this.clock.setTimer((bytes - FREE_BYTES) / BYTES_PER_MS, () => this.#pass(name, line));
    };
  }

  #wait(line: Line): Promise<void> {
    if (line.waiting.size >= MAX_WAITING) throw tooMany();
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        cancel();
        resolve();
      };
      const cancel = this.clock.setTimer(WAIT_LIMIT_MS, () => {
        line.waiting.delete(begin);
        reject(tooMany());
      });
      line.waiting.add(begin);
    });
  }

  /** To the one that has waited longest, if somebody does. */
  #pass(name: string, line: Line): void {
    const [next] = line.waiting;
    if (next !== undefined) {
      line.waiting.delete(next);
      next();
      return;
    }
    line.running -= 1;
    if (line.running === 0) this.#lines.delete(name);
  }
}

/**
 * After authentication.
 * @param nameOf whose turn it is
 * @param maxBodyBytes that a body counts: longer ones are numbers to call, which are read in a thread with turns of its own
 */
export function takeTurn(
  turns: Turns,
  nameOf: (request: Parameters<onRequestAsyncHookHandler>[0]) => string,
  maxBodyBytes: number,
): onRequestAsyncHookHandler {
  return async (request, reply) => {
    if (request.routeOptions.config.withoutTurn === true) return;
    giveBackAtEnd(reply, bodyBytes(request, maxBodyBytes), await turns.take(nameOf(request)));
  };
}

/** One that does not state its length counts as the longest. */
function bodyBytes({ headers }: FastifyRequest, maxBodyBytes: number): number {
  if (headers['transfer-encoding'] !== undefined) return maxBodyBytes;
  return Math.min(Number(headers['content-length'] ?? 0), maxBodyBytes);
}

function giveBackAtEnd(reply: FastifyReply, bodyLength: number, giveBack: (bytes?: number) => void): void {
  const { raw } = reply;
  // The requester may have disconnected while it waited.
  if (raw.destroyed) return giveBack();
  const atEnd = (): void => giveBack(bodyLength + Number(reply.getHeader('content-length') ?? 0));
  raw.once('finish', atEnd);
  raw.once('close', atEnd);
}

function tooMany(): ApiFailure {
  const message = `The organization has reached its limit of concurrent requests (${String(AT_ONCE)}); wait for some to finish`;
  return new ApiFailure('RATE_LIMITED', message, { headers: { 'retry-after': '1' } });
}
