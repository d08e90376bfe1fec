import type { Element } from './xml.js';

/** A URL that is requested for the next document. */
export interface Action {
  readonly url: string;
  readonly method: 'GET' | 'POST';
}

/** Reads the attributes of one element, and collects what has no effect: a sentence each. */
export class ElementReader {
  readonly warnings: string[] = [];

  constructor(private readonly element: Element) {}

  warn(text: string): void {
    this.warnings.push(text);
  }

  text(name: string): string | null {
    const value = this.element.attributes[name]?.trim() ?? '';
    return value === '' ? null : value;
  }

  int(name: string, byDefault: number, min: number, max: number): number {
    const text = this.text(name);
    if (text === null) return byDefault;
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    this.warn(`${this.#at(name)} is not between ${String(min)} and ${String(max)}: the default holds.`);
    return byDefault;
  }

  flag(name: string, byDefault: boolean): boolean {
    const text = this.text(name);
    return text === null ? byDefault : text.toLowerCase() === 'true';
  }

  /** The value of a name, in any case. */
  oneOf<T>(name: string, values: Readonly<Record<string, T>>, byDefault: T): T {
    const text = this.text(name);
    if (text === null) return byDefault;
    const value = Object.hasOwn(values, text.toLowerCase()) ? values[text.toLowerCase()] : undefined;
    if (value === undefined) this.warn(`${this.#at(name)} is none of ${Object.keys(values).join(', ')}: the default holds.`);
    return value ?? byDefault;
  }

  method(name = 'method'): Action['method'] {
    return this.oneOf(name, { get: 'GET', post: 'POST' }, 'POST');
  }

  action(name = 'action', method = 'method'): Action | null {
    const url = this.text(name);
    return url === null ? null : { url, method: this.method(method) };
  }

  /** Warns of attributes beside these. */
  only(...names: string[]): this {
    for (const name of Object.keys(this.element.attributes)) {
      if (!names.includes(name)) this.warn(`${this.#at(name)} has no effect here.`);
    }
    return this;
  }

  #at(name: string): string {
    return `The attribute ${name} of <${this.element.name}>`;
  }
}
