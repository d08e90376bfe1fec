import type { Log } from '../../src/lib/log.js';

export interface LoggedEvent {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A log that tests read, and wait on. */
export class EventLog implements Log {
  readonly events: LoggedEvent[] = [];
  #waiters: { event: string; resolve: (logged: LoggedEvent) => void }[] = [];

  debug = (fields: object, event: string): void => this.#add('debug', fields, event);
  info = (fields: object, event: string): void => this.#add('info', fields, event);
  warn = (fields: object, event: string): void => this.#add('warn', fields, event);
  error = (fields: object, event: string): void => this.#add('error', fields, event);
  child = (): Log => this;

  /** The next one of this name from now on. */
  next(event: string): Promise<LoggedEvent> {
    return new Promise((resolve) => this.#waiters.push({ event, resolve }));
  }

  named(event: string): LoggedEvent[] {
    return this.events.filter((logged) => logged.event === event);
  }

  #add(level: LoggedEvent['level'], fields: object, event: string): void {
    const logged = { level, event, fields: { ...fields } };
    this.events.push(logged);
    const due = this.#waiters.filter((waiter) => waiter.event === event);
    this.#waiters = this.#waiters.filter((waiter) => waiter.event !== event);
    for (const { resolve } of due) resolve(logged);
  }
}
