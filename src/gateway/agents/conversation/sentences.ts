/** Longer ones are cut at a word. */
const MAX_CHARACTERS = 300;
/** The first piece may end at a comma: the caller waits for it. */
const MIN_CLAUSE = 40;
const SENTENCE = /[.!?…:;。！？](?:["'”’)\]]*)(?=\s)|\n/;
const CLAUSE = /,(?=\s)/;

/** Tokens of a text on their way to pieces that can be spoken: sentences. */
export class Sentences {
  #rest = '';
  #isFirst = true;

  /** Returns the pieces that are complete. A sentence is complete when something follows it. */
  push(token: string): string[] {
    this.#rest += token;
    const pieces: string[] = [];
    for (let end = this.#end(); end > 0; end = this.#end()) pieces.push(...this.#take(end));
    return pieces;
  }

  /** The text is complete: the rest of it. */
  flush(): string[] {
    const rest = this.#take(this.#rest.length);
    this.#isFirst = true;
    return rest;
  }

  /** 0: nothing is complete. */
  #end(): number {
    const sentence = SENTENCE.exec(this.#rest);
    if (sentence !== null) return sentence.index + sentence[0].length;
    const clause = this.#isFirst && this.#rest.length > MIN_CLAUSE ? CLAUSE.exec(this.#rest.slice(MIN_CLAUSE)) : null;
    if (clause !== null) return MIN_CLAUSE + clause.index + 1;
    if (this.#rest.length <= MAX_CHARACTERS) return 0;
    const space = this.#rest.lastIndexOf(' ', MAX_CHARACTERS);
    return space > 0 ? space : MAX_CHARACTERS;
  }

  #take(end: number): string[] {
    const piece = this.#rest.slice(0, end).trim();
    this.#rest = this.#rest.slice(end);
    if (piece === '') return [];
    this.#isFirst = false;
    return [piece];
  }
}
