import type { CancelTimer, Clock } from '../../../../lib/clock.js';
import type { LiveEntry } from '../../../ports/listing.js';
import { endingCallKey, orgLeasesKey, orgLiveCallsKey, orgLiveKey } from '../keys.js';
import type { RedisCommand } from '../redis.js';
import type { TurnWrites } from '../turn-writes.js';

const AGAIN_MS = 1_000;
/** Longer than writing a record takes while Redis is up. */
const ENDING_S = 30;

interface Ending {
  readonly commands: readonly RedisCommand[];
  readonly untilMs: number;
}

/** Takes calls that are over out of the limits and lists, also where Redis is away when they end. */
export class Endings {
  #failed: Ending[] = [];
  #cancel: CancelTimer | undefined;
  #isClosed = false;

  constructor(
    private readonly writes: TurnWrites,
    private readonly leaseMs: number,
    private readonly clock: Clock,
  ) {}

  /** @param commands may be repeated; they are sent until Redis has them, or what they take away has expired. */
  write(commands: readonly RedisCommand[]): void {
    this.#write([{ commands, untilMs: this.clock.nowMs() + this.leaseMs }]);
  }

  /** What was not written expires by itself. */
  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  /** All in one write: where Redis is still away, one failure a second tells. */
  #write(endings: readonly Ending[]): void {
    this.writes.write(endings.flatMap(({ commands }) => commands)).catch(() => {
      if (this.#isClosed) return;
      for (const ending of endings) this.#failed.push(ending);
      this.#cancel ??= this.clock.setTimer(AGAIN_MS, () => this.#writeAgain());
    });
  }

  #writeAgain(): void {
    this.#cancel = undefined;
    const nowMs = this.clock.nowMs();
    const failed = this.#failed;
    this.#failed = [];
    this.#write(failed.filter(({ untilMs }) => nowMs < untilMs));
  }
}

/** The call is over: until its record is written it is known as one that ends. */
export function endOfCall(orgId: string, { text, member, callId }: LiveEntry): readonly RedisCommand[] {
  return [
    ['set', endingCallKey(orgId, callId), text, 'EX', ENDING_S],
    ['zrem', orgLeasesKey(orgId), callId],
    ['zrem', orgLiveKey(orgId), member],
    ['hdel', orgLiveCallsKey(orgId), callId],
  ];
}
