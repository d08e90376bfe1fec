import { errorText } from '../../../lib/result.js';
import { TurnBatch } from '../../../lib/turn-batch.js';
import { RedisScript, storeError, type RedisCommand, type RedisConnection } from './redis.js';

const WRITE_TOGETHER = new RedisScript('write-together');
/**
 * Redis serves nobody else while it runs one script, whose stack takes some thousand words; and for a longer text V8 asks the system for
 * memory each time.
 */
const CHARACTERS_AT_ONCE = 50_000;
/** About what the protocol adds to a word, and about what a number has. */
const CHARACTERS_A_WORD = 8;

/** Commands that take any number of members of their key. */
const OF_MEMBERS = new Set<string | number>(['zadd', 'zrem', 'hset', 'hdel']);

interface Write {
  readonly command: RedisCommand;
  readonly settle: (error?: Error) => void;
}

/** One command for the same of several writes. */
interface Joined {
  readonly words: (string | number)[];
  readonly settles: ((error?: Error) => void)[];
}

/**
 * Writes of all calls in one turn of the event loop: one command of the client's, and one round trip. Of a cluster, one for each hash tag.
 * Each write has one key, its first argument.
 */
export class TurnWrites {
  readonly #batch: TurnBatch<Write>;
  readonly #before: (() => void)[] = [];

  constructor(private readonly redis: RedisConnection) {
    this.#batch = new TurnBatch((writes) => this.#send(writes));
  }

  /** What is to be sent before any write. */
  before(send: () => void): void {
    this.#before.push(send);
  }

  /** Resolves when all are written, in order where they have one hash tag; rejects with the first error among them. */
  write(commands: readonly RedisCommand[]): Promise<void> {
    return new Promise((resolve, reject) => {
      let waiting = commands.length;
      const settle = (error?: Error): void => {
        waiting -= 1;
        if (error !== undefined) reject(error);
        else if (waiting === 0) resolve();
      };
      if (waiting === 0) resolve();
      for (const command of commands) this.#batch.push({ command, settle });
    });
  }

  /** Sends at once what waits. */
  flush(): void {
    this.#batch.flush();
  }

  #send(writes: readonly Write[]): void {
    for (const send of this.#before) send();
    for (const group of this.redis.isCluster ? byTag(writes) : [writes]) for (const some of inPieces(group)) void this.#run(some);
  }

  async #run(writes: readonly Write[]): Promise<void> {
    const commands = joined(writes);
    const words: (string | number)[] = [];
    for (const command of commands) {
      words.push(command.words.length);
      for (const word of command.words) words.push(word);
    }
    const errors = new Map<number, Error>();
    try {
      // In full: sent again after NOSCRIPT, a write would come behind a later one.
      const failed = await this.redis.run((client) => client.eval(WRITE_TOGETHER.source, 1, keyOf(writes[0]), ...words));
      if (!Array.isArray(failed)) throw new Error('write-together.lua answered no array');
      for (let at = 0; at < failed.length; at += 2) errors.set(Number(failed[at]), storeError(String(failed[at + 1])));
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(errorText(error));
      for (const { settle } of writes) settle(failure);
      return;
    }
    commands.forEach(({ settles }, place) => {
      for (const settle of settles) settle(errors.get(place));
    });
  }
}

/** Each fits one script before its commands are joined, which makes it shorter. */
function inPieces(writes: readonly Write[]): readonly (readonly Write[])[] {
  const pieces: Write[][] = [];
  let piece: Write[] = [];
  let characters = Infinity;
  for (const write of writes) {
    const more = charactersOf(write);
    if (characters + more > CHARACTERS_AT_ONCE) {
      piece = [];
      pieces.push(piece);
      characters = 0;
    }
    piece.push(write);
    characters += more;
  }
  return pieces;
}

function charactersOf({ command }: Write): number {
  let characters = 0;
  for (const word of command) characters += CHARACTERS_A_WORD + (typeof word === 'string' ? word.length : CHARACTERS_A_WORD);
  return characters;
}

/** The commands of these writes; what follows the same command of its key is joined to it. The order of each key's stays. */
function joined(writes: readonly Write[]): readonly Joined[] {
  const commands: Joined[] = [];
  const last = new Map<string | number | undefined, Joined>();
  for (const { command, settle } of writes) {
    const [name, key] = command;
    const before = last.get(key);
    if (before?.words[0] === name && OF_MEMBERS.has(name)) {
      // In loops: spreading takes longer than the rest of this.
      for (let at = 2; at < command.length; at += 1) before.words.push(command[at] ?? '');
      before.settles.push(settle);
    } else {
      const one = { words: command.slice(), settles: [settle] };
      commands.push(one);
      last.set(key, one);
    }
  }
  return commands;
}

function keyOf(write: Write | undefined): string {
  return String(write?.command[1]);
}

/** Groups by hash tag, each in order. */
function byTag(writes: readonly Write[]): readonly (readonly Write[])[] {
  const groups = new Map<string, Write[]>();
  for (const write of writes) {
    const key = keyOf(write);
    const tag = /\{([^}]+)\}/.exec(key)?.[1] ?? key;
    const group = groups.get(tag);
    if (group === undefined) groups.set(tag, [write]);
    else group.push(write);
  }
  return [...groups.values()];
}
