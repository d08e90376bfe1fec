import type { Duplex } from 'node:stream';

/** Speaks with a Redis as a client does. Answers are the bytes that came, one text for each, so that two of them can be compared. */
export class RedisWire {
  /** What came without a question. */
  readonly pushed: string[] = [];
  readonly #waiting: { readonly answers: string[]; readonly count: number; readonly done: (answers: readonly string[]) => void }[] = [];
  #bytes = '';

  constructor(readonly socket: Duplex) {
    socket.on('data', (chunk: Buffer) => this.#take(chunk.toString('latin1')));
  }

  /** Sends commands at once; resolves with the answer to each. */
  ask(commands: readonly (readonly string[])[]): Promise<readonly string[]> {
    if (commands.length === 0) return Promise.resolve([]);
    return new Promise((done) => {
      this.#waiting.push({ answers: [], count: commands.length, done });
      this.socket.write(Buffer.from(commands.map(commandBytes).join(''), 'latin1'));
    });
  }

  /** The answer to one command, given as words with blanks between. */
  async say(line: string): Promise<string> {
    const [answer = ''] = await this.ask([line.split(' ')]);
    return answer;
  }

  #take(chunk: string): void {
    this.#bytes += chunk;
    for (let end = endOfReply(this.#bytes, 0); end !== null; end = endOfReply(this.#bytes, 0)) {
      const reply = this.#bytes.slice(0, end);
      this.#bytes = this.#bytes.slice(end);
      const [first] = this.#waiting;
      if (first === undefined || /^>\d+\r\n\$7\r\nmessage/.test(reply)) {
        this.pushed.push(reply);
        continue;
      }
      first.answers.push(reply);
      if (first.answers.length < first.count) continue;
      this.#waiting.shift();
      first.done(first.answers);
    }
  }
}

/** A command as clients send it. */
export function commandBytes(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
}

/** Where the answer ends that begins here, in RESP2 or RESP3; `null`: it is not all there. */
function endOfReply(bytes: string, start: number): number | null {
  const lineEnd = bytes.indexOf('\r\n', start);
  if (lineEnd < 0) return null;
  const type = bytes[start] ?? '';
  const count = Number(bytes.slice(start + 1, lineEnd));
  let end: number | null = lineEnd + 2;
  if ('$='.includes(type)) {
    end += count < 0 ? 0 : count + 2;
    return end <= bytes.length ? end : null;
  }
  if (!'*~>%'.includes(type)) return end;
  for (let left = type === '%' ? 2 * count : count; left > 0 && end !== null; left -= 1) end = endOfReply(bytes, end);
  return end;
}
