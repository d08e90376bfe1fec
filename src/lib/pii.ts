import { inspect } from 'node:util';

const REDACTED = '[redacted]';

/**
 * Personal data on its way into a log: as JSON, as text and in `console.log` it is `[redacted]`. A structured clone of it, for another
 * thread, is empty.
 */
export class Pii<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  reveal(): T {
    return this.#value;
  }

  toJSON(): string {
    return REDACTED;
  }

  toString(): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}

export function pii<T>(value: T): Pii<T> {
  return new Pii(value);
}
