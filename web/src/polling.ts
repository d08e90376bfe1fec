import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { ApiError } from '../../src/client/index.js';
import { retryDelayMs, troubleText } from './retry.js';

/** What is wrong between here and the server at the moment, for the line on top of the page. */
export const trouble = signal<string | null>(null);

/** A run of requests, one after the other. Resolves with when the next is due; `null`: never. */
type Step = () => Promise<number | null>;

/** Runs steps while the page is visible, never two at once. */
class Poller {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isRunning = false;
  #isOver = false;

  constructor(private readonly step: Step) {
    document.addEventListener('visibilitychange', this.run);
    this.run();
  }

  readonly run = (): void => {
    if (this.#isRunning || this.#isOver || document.visibilityState === 'hidden') return;
    clearTimeout(this.#timer);
    this.#isRunning = true;
    void this.step().then((delayMs) => {
      this.#isRunning = false;
      if (delayMs !== null && !this.#isOver) this.#timer = setTimeout(this.run, delayMs);
    });
  };

  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    document.removeEventListener('visibilitychange', this.run);
  }
}

/** Whatever was thrown, as a failure of the API. */
export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(String(error), { status: 400, code: 'CONSOLE', cause: error });
}

/**
 * Does `work` now and each `everyMs`, and tries again what failed on the way; what the server refuses for good ends it and comes back.
 * @param everyMs `null`: until it succeeded once
 */
export function usePolling(work: () => Promise<void>, everyMs: number | null, inputs: readonly unknown[]): ApiError | null {
  const [refused, setRefused] = useState<ApiError | null>(null);
  useEffect(() => {
    let failures = 0;
    setRefused(null);
    const poller = new Poller(async () => {
      try {
        await work();
        failures = 0;
        trouble.value = null;
        return everyMs;
      } catch (caught) {
        const error = asApiError(caught);
        failures += 1;
        const delayMs = retryDelayMs(error, failures);
        if (delayMs === null) setRefused(error);
        else trouble.value = troubleText(error, delayMs);
        return delayMs;
      }
    });
    return () => poller.end();
  }, [...inputs, everyMs]);
  return refused;
}

export interface Loaded<T> {
  /** `null`: not here yet. */
  readonly value: T | null;
  readonly refused: ApiError | null;
  readonly reload: () => void;
}

/** What a page shows, asked for anew when one of the inputs changes, or as often as `everyMs` says. */
export function useLoaded<T>(load: () => Promise<T>, inputs: readonly unknown[], everyMs: number | null = null): Loaded<T> {
  const [value, setValue] = useState<T | null>(null);
  const [times, setTimes] = useState(0);
  const [key] = useState({ current: 0 });
  useEffect(() => setValue(null), inputs);
  const refused = usePolling(
    async () => {
      key.current += 1;
      const mine = key.current;
      const loaded = await load();
      // An answer that was overtaken by a newer question is nobody's.
      if (mine === key.current) setValue(() => loaded);
    },
    everyMs,
    [...inputs, times],
  );
  return { value, refused, reload: () => setTimes((before) => before + 1) };
}
