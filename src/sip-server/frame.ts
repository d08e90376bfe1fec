/** Text in front of the payload: its length in bytes. All text here is a byte string, so length and size are the same. */
export function encodeFrame(payload: string): string {
  return `${payload.length}#${payload}`;
}

export type FrameItem = { readonly type: 'frame'; readonly payload: string } | { readonly type: 'error'; readonly reason: string };

/** Cuts a byte stream into frames: `<decimal length>#<payload>`, wherever the reads fall. A spoiled stream yields one error. */
export class FrameDecoder {
  #pending = '';
  #spoiled = false;

  constructor(private readonly maxPayloadBytes: number) {}

  push(bytes: string): FrameItem[] {
    if (this.#spoiled) return [];
    this.#pending = this.#pending === '' ? bytes : this.#pending + bytes;
    const items: FrameItem[] = [];
    let at = 0;
    for (;;) {
      const hash = this.#pending.indexOf('#', at);
      const digits = this.#pending.slice(at, hash < 0 ? undefined : hash);
      if (!/^\d{0,7}$/.test(digits) || (hash >= 0 && digits === ''))
        return this.#spoil(items, 'a frame must begin with its length in digits');
      if (hash < 0) break;
      const length = Number(digits);
      if (length > this.maxPayloadBytes)
        return this.#spoil(items, `a frame of ${length} bytes is over the limit of ${this.maxPayloadBytes}`);
      const end = hash + 1 + length;
      if (end > this.#pending.length) break;
      // Zero length is allowed and means nothing.
      if (length > 0) items.push({ type: 'frame', payload: this.#pending.slice(hash + 1, end) });
      at = end;
    }
    this.#pending = this.#pending.slice(at);
    return items;
  }

  #spoil(items: FrameItem[], reason: string): FrameItem[] {
    this.#spoiled = true;
    this.#pending = '';
    items.push({ type: 'error', reason });
    return items;
  }
}
