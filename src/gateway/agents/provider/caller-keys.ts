import type { CancelTimer, Clock } from '../../../lib/clock.js';

/** Keys form a number once none follows this long. */
const KEYS_MS = 2_000;
const MAX_KEYS = 64;

/** The caller's keys, which a model gets as one text: after `#`, or when none follows. */
export class CallerKeys {
  #keys = '';
  #isStarted = false;
  #cancel: CancelTimer = () => undefined;

  /** @param inform gets the text */
  constructor(
    private readonly clock: Clock,
    private readonly inform: (text: string) => void,
  ) {}

  /** Somebody listens: keys of before are told too. */
  start(): void {
    this.#isStarted = true;
    if (this.#keys !== '') this.#await();
  }

  press(digit: string): void {
    if (digit !== '#' && this.#keys.length < MAX_KEYS) this.#keys += digit;
    if (!this.#isStarted) return;
    if (digit === '#') this.#send();
    else this.#await();
  }

  close(): void {
    this.#cancel();
  }

  #await(): void {
    this.#cancel();
    this.#cancel = this.clock.setTimer(KEYS_MS, () => this.#send());
  }

  #send(): void {
    this.#cancel();
    const keys = Array.from(this.#keys);
    this.#keys = '';
    this.inform(keys.length === 0 ? 'The caller pressed the key #.' : `The caller pressed the keys ${keys.join(' ')}.`);
  }
}
