/** Which applications asked for which methods, served in turn. `T` is compared by identity. */
export class Router<T> {
  readonly #slots = new Map<string, T[]>();
  readonly #offsets = new Map<string, number>();
  readonly #everRouted = new Set<string>();

  /** A method routed twice has two slots, as applications expect. */
  add(method: string, application: T): void {
    this.#everRouted.add(method);
    const slots = this.#slots.get(method);
    if (slots === undefined) this.#slots.set(method, [application]);
    else slots.push(application);
  }

  /** Drops the application's slots for this method only. */
  remove(method: string, application: T): void {
    this.#set(
      method,
      (this.#slots.get(method) ?? []).filter((candidate) => candidate !== application),
    );
  }

  removeAll(application: T): void {
    for (const method of [...this.#slots.keys()]) this.remove(method, application);
  }

  /** The next application for the method (in lower case), or `undefined`. */
  next(method: string): T | undefined {
    const slots = this.#slots.get(method);
    if (slots === undefined) return undefined;
    const offset = (this.#offsets.get(method) ?? 0) % slots.length;
    this.#offsets.set(method, offset + 1);
    return slots[offset];
  }

  /** Whether an application has asked for it, now or before: then it is served here, and only nobody is there at the moment. */
  isServed(method: string): boolean {
    return this.#everRouted.has(method);
  }

  /** Every SIP method that somebody asked for, in lower case; `cdr:` events are none. */
  methods(): string[] {
    return [...this.#slots.keys()].filter((name) => !name.includes(':'));
  }

  #set(method: string, slots: T[]): void {
    if (slots.length === 0) this.#slots.delete(method);
    else this.#slots.set(method, slots);
  }
}
