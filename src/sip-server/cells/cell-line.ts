import type { Socket } from 'node:net';
import { TurnBatch } from '../../lib/turn-batch.js';

/**
 * A frame between two cells: `<kind><number> <length>\n`, then the bytes. The number is that of a connection of a peer's; 0: the UDP
 * socket, and the text begins with a datagram's source or destination.
 *
 * From the cell that has the connection: `h` its own number, first of all; `f` what is known of a connection, as JSON; `n` a new request on it,
 * which may be refused; `m` any other message; `c` the connection is closed.
 * From the cell that has the call: `s` a message for the connection; `x` it is to be closed; `r` the new request with this text is refused.
 */
export type OwnersKind = 'h' | 'f' | 'n' | 'm' | 'c';
export type TakersKind = 's' | 'x' | 'r';
type FrameKind = OwnersKind | TakersKind;

export interface CellFrame<Kind extends FrameKind = FrameKind> {
  readonly kind: Kind;
  /** The connection's. */
  readonly id: number;
  /** A byte string. */
  readonly text: string;
}

export function encodeCellFrame({ kind, id, text }: CellFrame): string {
  return `${kind}${String(id)} ${String(text.length)}\n${text}`;
}

const HEAD = /^([a-z])(\d{1,15}) (\d{1,9})$/;
const MAX_HEAD = 32;

/** Cuts what comes into frames. */
export class CellFrameDecoder {
  #pending = '';

  constructor(private readonly maxBytes: number) {}

  /** The frames that are complete; `null`: the bytes are no frames, and nothing that follows can be read. */
  push(bytes: string): CellFrame[] | null {
    const text = this.#pending === '' ? bytes : this.#pending + bytes;
    const frames: CellFrame[] = [];
    let at = 0;
    for (;;) {
      const headEnd = text.indexOf('\n', at);
      if (headEnd < 0) break;
      const head = HEAD.exec(text.slice(at, headEnd));
      const length = Number(head?.[3]);
      if (head === null || length > this.maxBytes) return null;
      const end = headEnd + 1 + length;
      if (text.length < end) break;
      frames.push({ kind: head[1] as FrameKind, id: Number(head[2]), text: text.slice(headEnd + 1, end) });
      at = end;
    }
    this.#pending = text.slice(at);
    if (this.#pending.length > this.maxBytes + MAX_HEAD) return null;
    return frames;
  }
}

export interface CellLineLimits {
  readonly maxFrameBytes: number;
  /** Unread bytes at which the other cell counts as hung. */
  readonly maxUnsentBytes: number;
}

/** A connection between two cells. */
export class CellLine<Sent extends FrameKind, Received extends FrameKind> {
  readonly #decoder: CellFrameDecoder;
  readonly #batch: TurnBatch<string>;
  #isOpen = true;

  constructor(
    private readonly socket: Socket,
    private readonly limits: CellLineLimits,
    onFrame: (frame: CellFrame<Received>) => void,
    private readonly onClose: () => void,
  ) {
    this.#decoder = new CellFrameDecoder(limits.maxFrameBytes);
    this.#batch = new TurnBatch((texts) => this.#write(texts.join('')));
    socket.on('data', (chunk: Buffer) => {
      const frames = this.#decoder.push(chunk.toString('latin1'));
      if (frames === null) return this.close();
      for (const frame of frames) if (this.#isOpen) onFrame(frame as CellFrame<Received>);
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.close());
  }

  send(kind: Sent, id: number, text = ''): void {
    if (this.#isOpen) this.#batch.push(encodeCellFrame({ kind, id, text }));
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#batch.clear();
    this.socket.destroy();
    this.onClose();
  }

  #write(text: string): void {
    this.socket.write(text, 'latin1');
    if (this.socket.writableLength > this.limits.maxUnsentBytes) this.close();
  }
}
