import { VirtualClock } from '../../support/virtual-clock.js';
import { boundToProcess } from './process.js';

const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  Date: globalThis.Date,
  now: performance.now.bind(performance),
};

/** What Node.js does outside of JavaScript, by its names: while one is under way, something is still to come without time passing. */
const OUTSTANDING = new Set([
  'Immediate',
  'CloseReq',
  'FSReqCallback',
  'FSReqPromise',
  'GetAddrInfoReqWrap',
  'QueryReqWrap',
  'WriteWrap',
  'ShutdownWrap',
]);

/** A test that waits for what never comes ends here: so much virtual time no story needs. */
const LONGEST_MS = 7 * 86_400_000;

/** Work in Node's thread pool that it does not name among its active resources. */
let inThreadPool = 0;

/** Counts the promise among what is outstanding until it is settled. */
export function outstanding<T>(work: Promise<T>): Promise<T> {
  inThreadPool += 1;
  const ended = (): void => void (inThreadPool -= 1);
  work.then(ended, ended);
  return work;
}

function isIdle(): boolean {
  return inThreadPool === 0 && !process.getActiveResourcesInfo().some((name) => OUTSTANDING.has(name));
}

/** As Node's own; clearing it twice does nothing. */
class WorldTimer {
  #cancel: () => void = () => undefined;

  constructor(
    private readonly clock: VirtualClock,
    private readonly fire: () => void,
    private readonly delayMs: number,
    private readonly isRepeated: boolean,
  ) {
    this.#arm();
  }

  #arm(): void {
    this.#cancel = this.clock.setTimer(this.delayMs, () => {
      if (this.isRepeated) this.#arm();
      this.fire();
    });
  }

  close(): this {
    this.#cancel();
    return this;
  }

  refresh(): this {
    this.#cancel();
    this.#arm();
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  [Symbol.toPrimitive](): number {
    return 0;
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }
}

/**
 * Time of the whole process while a world is open. It stands still while anything is under way, and goes on to the next timer when nothing
 * is: when nothing is outstanding (an immediate, a request to Node's thread pool), only time can make something happen. A test just waits for
 * what it expects, and time passes until it is there.
 */
export class WorldTime {
  readonly clock: VirtualClock;
  #isOpen = true;
  /** Told when nothing is under way any more, before time goes on. */
  readonly #waiting: (() => void)[] = [];
  readonly #ended: Promise<void>;

  /** @param startsMs the time of the wall clock, in ms since 1970 */
  constructor(startsMs?: number) {
    this.clock = new VirtualClock(startsMs);
    this.#replaceGlobals();
    this.#ended = this.#pump();
  }

  get nowMs(): number {
    return this.clock.nowMs();
  }

  /** Time passes, and everything that it makes happen has happened. */
  pass(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.setTimer(ms, () => this.#waiting.push(resolve)));
  }

  /** Time passes until it is so. */
  async until(isSo: () => boolean | Promise<boolean>): Promise<void> {
    // Who waits for an hour need not look every 20 ms.
    for (let waitedMs = 0; !(await isSo());) {
      const stepMs = Math.max(20, Math.floor(waitedMs / 50));
      await this.pass(stepMs);
      waitedMs += stepMs;
    }
  }

  /** Everything that can happen without time has happened. */
  settle(): Promise<void> {
    return this.pass(0);
  }

  /** Real time is back. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await this.#ended;
    Object.assign(globalThis, {
      setTimeout: real.setTimeout,
      clearTimeout: real.clearTimeout,
      setInterval: real.setInterval,
      clearInterval: real.clearInterval,
      setImmediate: real.setImmediate,
      Date: real.Date,
    });
    performance.now = real.now;
  }

  async #pump(): Promise<void> {
    while (this.#isOpen) {
      await turn();
      if (!isIdle()) continue;
      if (this.clock.nowMs() > LONGEST_MS) throw new Error('the test waits for what does not come in a week');
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.clock.fireNext();
      else waiting();
    }
  }

  #replaceGlobals(): void {
    const { clock } = this;
    const timer =
      (isRepeated: boolean) =>
      (fire: (...given: unknown[]) => void, delayMs = 0, ...given: unknown[]): WorldTimer =>
        new WorldTimer(
          clock,
          boundToProcess(() => fire(...given)),
          Math.max(isRepeated ? 1 : 0, delayMs || 0),
          isRepeated,
        );
    const clear = (one: unknown): void => {
      if (one instanceof WorldTimer) one.close();
      else real.clearTimeout(one as NodeJS.Timeout);
    };
    class WorldDate extends real.Date {
      constructor(...given: readonly unknown[]) {
        super(...((given.length === 0 ? [clock.wallMs()] : given) as [number]));
      }
      static override now(): number {
        return Math.floor(clock.wallMs());
      }
    }
    Object.assign(globalThis, {
      setTimeout: timer(false),
      setInterval: timer(true),
      setImmediate: (fire: (...given: unknown[]) => void, ...given: unknown[]) => real.setImmediate(boundToProcess(() => fire(...given))),
      clearTimeout: clear,
      clearInterval: clear,
      Date: WorldDate,
    });
    performance.now = () => clock.nowMs();
  }
}

/** The next turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => real.setImmediate(resolve));
}

/** In a later turn, whatever became of the process that asks: what it has sent arrives. */
export function later(work: () => void): void {
  real.setImmediate(work);
}
