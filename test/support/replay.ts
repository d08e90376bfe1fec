import { expect } from 'vitest';
import { readFrames, readLines, readPeer, type PeerMessage, type RecordedFrame } from './recordings.js';
import { Bench } from './transcript.js';

/** What stands in a recording in place of what our server does: [theirs, ours]. */
export type Differences = readonly (readonly [RegExp, string])[];

/** Gives made-up values names by the order of their first appearance. */
class Names {
  readonly #known = new Map<string, string>();
  readonly values: string[] = [];
  /** The first CSeq number that the server made up. */
  firstCseq: number | null = null;

  normalise(text: string): string {
    return text
      .replace(/;rport=\d+/g, '')
      .replace('500 Internal Server Error', '500 Server Internal Error')
      .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, (id) => this.#name('ID', id))
      .replace(
        /;((?:from-)?tag)=([A-Za-z0-9.-]{13})(?=[\r\n;>|]|$)/g,
        (_all, what: string, tag: string) => `;${what}=${this.#name('TAG', tag)}`,
      )
      .replace(/;branch=(z9hG4bK[A-Za-z0-9.]{13})(?=[\r\n;,]|$)/g, (_all, branch: string) => `;branch=${this.#name('BRANCH', branch)}`)
      .replace(
        /^CSeq: (\d{4,}) /gm,
        (_all, number: string) => `CSeq: first+${String(Number(number) - (this.firstCseq ??= Number(number)))} `,
      )
      .replace(/\|\d\d:\d\d:\d\d\.\d{6}\|/g, '|TIME|')
      .replace(/^([^\r\n]*\|(?:network|application)\|)\d+\|(?:udp|tcp|tls)?\|/, '$1SIZE|PROTOCOL|');
  }

  #name(kind: string, value: string): string {
    let name = this.#known.get(value);
    if (name === undefined) {
      name = `<${kind}${String(this.values.length)}>`;
      this.#known.set(value, name);
      this.values.push(value);
    }
    return name;
  }
}

/** A recorded session, played again on our server: its application and its peer do what they did, at the time at which they did it. */
export class Replay {
  readonly frames: readonly RecordedFrame[];
  readonly bench: Bench;
  readonly #recorded = new Names();
  readonly #actual = new Names();
  /** The peer's own log. */
  readonly peer: readonly PeerMessage[];
  /** What the application is shown of it. */
  readonly #shown: ReadonlySet<string>;
  #seen = 0;

  /** `interleaved`: what the peer sent that the application is not shown goes after what it is shown; else the test sends it. */
  constructor(
    readonly name: string,
    private readonly differences: Differences = [],
    private readonly interleaved = true,
  ) {
    this.frames = readFrames(name)
      .filter(({ payload, connection }) => connection === 1 && !isLogin(payload))
      .map((frame) => ({ ...frame, payload: this.#edited(frame.payload) }));
    this.peer = readPeer(`${name}.sip.txt`).map((message) => ({ ...message, text: this.#edited(message.text) }));
    this.#shown = new Set(this.frames.filter(isFromPeer).map(({ payload }) => keyOf(sipOf(payload))));
    const meta = this.frames.find(({ payload }) => payload.includes('|sip|network|'))?.payload.split('|') ?? [];
    this.bench = new Bench(meta[4] === 'tls' ? 'TLS' : 'UDP', Number(meta[6] ?? 0));
  }

  /** The frames, or so many of them; each of ours must be theirs. */
  async play(count = this.frames.length): Promise<void> {
    let atMs = this.frames[0]?.atMs ?? 0;
    for (const frame of this.frames.slice(0, count)) {
      await this.bench.pass(Math.max(0, frame.atMs - atMs));
      atMs = Math.max(atMs, frame.atMs);
      if (frame.from === 'app') {
        this.bench.fromApp(this.#translate(frame.payload));
        await this.bench.settle();
      } else await this.#compare(frame);
    }
    expect(this.bench.toApp.slice(this.#seen).map((text) => text.split('\r\n').slice(0, 2))).toEqual([]);
  }

  /** Everything that the peer received. */
  expectReceived(): void {
    const received = this.peer.filter(({ direction }) => direction === 'received').map(({ text }) => this.#recorded.normalise(text));
    expect(this.bench.toCaller.map((text) => this.#actual.normalise(text))).toEqual(received);
  }

  async #fromPeer(text: string): Promise<void> {
    await this.send(text);
    const at = this.peer.findIndex((message) => message.direction === 'sent' && keyOf(message.text) === keyOf(text));
    if (at < 0 || !this.interleaved) return;
    for (const message of this.peer.slice(at + 1)) {
      if (message.direction === 'received') continue;
      if (this.#shown.has(keyOf(message.text))) return;
      await this.send(message.text.startsWith('SIP/2.0') ? message.text : keyOf(message.text));
    }
  }

  /** A recorded message of the peer, with our server's made-up values. */
  async send(text: string): Promise<void> {
    this.bench.fromCaller(this.#translate(text));
    await this.bench.settle();
  }

  async #compare(frame: RecordedFrame): Promise<void> {
    const { payload } = frame;
    if (isFromPeer(frame)) {
      await this.#fromPeer(withoutRport(sipOf(payload)));
    }
    const mine = this.bench.toApp[this.#seen] ?? '(no frame)';
    this.#seen += 1;
    expect(this.#actual.normalise(mine)).toBe(this.#recorded.normalise(payload));
    expect(statedSize(mine)).toBe(realSize(mine));
  }

  #edited(text: string): string {
    return this.differences.reduce((edited, [theirs, ours]) => edited.replace(theirs, ours), text);
  }

  /** Replaces the recorded server's made-up values by those of ours. */
  #translate(text: string): string {
    let translated = text;
    this.#recorded.values.forEach((value, index) => (translated = translated.replaceAll(value, this.#actual.values[index] ?? value)));
    const { firstCseq } = this.#recorded;
    if (firstCseq === null) return translated;
    return translated.replace(
      /^CSeq: (\d{4,}) /gm,
      (_all, number: string) => `CSeq: ${String(Number(number) - firstCseq + (this.#actual.firstCseq ?? 0))} `,
    );
  }
}

function isLogin(payload: string): boolean {
  return payload.includes('|authenticate|') || /\|OK\|(tls|tcp|udp)\//.test(payload);
}

/** What the server made itself has no size, or the source `application`. */
function isFromPeer({ payload }: RecordedFrame): boolean {
  return /^[^\r\n]*\|sip\|network\|[1-9]/.test(payload);
}

const sipOf = (payload: string): string => payload.slice(payload.indexOf('\r\n') + 2);
const keyOf = (text: string): string => text.replace(/;rport(=\d+)?/g, '');
const withoutRport = (text: string): string => text.replace(/;rport=\d+/g, '');

/** `bytes` of a frame that carries a message, and what it is. */
function statedSize(payload: string): number {
  return Number(/^[^\r\n]*\|(?:network|application)\|(\d+)\|/.exec(payload)?.[1] ?? 0);
}

function realSize(payload: string): number {
  return statedSize(payload) === 0 ? 0 : payload.length - payload.indexOf('\r\n') - 2;
}

/** What the recorded server sent in a session, and what ours sends in its place; repeated messages count once. */
export interface PlayedLines {
  readonly toApp: { readonly theirs: readonly string[]; readonly ours: readonly string[] };
  readonly toPeer: { readonly theirs: readonly string[]; readonly ours: readonly string[] };
}

/** Ids, tags and RSeq; a branch may be an id as well and is learned by itself. */
const MADE_UP = /(?<!branch=z9hG4bK)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=;tag=)\w{13}(?=[;\r])|(?<=RSeq: )\d+/g;
const WAYS = [/;branch=[^;,\r]+/, /^Record-Route: (.*)$/m];

/** Plays a session of which both ends were recorded: the application and the peers do what they did, when they did it. `unrecorded`: to a peer without a log. */
export async function playLines(name: string, differences: Differences = [], unrecorded = /^$/): Promise<PlayedLines> {
  const recorded = readLines(name);
  const shown =
    recorded
      .find(({ text }) => text.includes('|sip|network|'))
      ?.text.split('\r\n', 1)[0]
      ?.split('|') ?? [];
  const ownPort = new RegExp(`\\b${shown[11] ?? '25060'}\\b`, 'g');
  const edited = (text: string): string =>
    differences.reduce((all, [theirs, ours]) => all.replace(theirs, ours), text.replace(ownPort, '25060'));
  const lines = recorded.map((line) => ({ ...line, text: edited(line.text) }));
  const bench = new Bench('UDP', Number(shown[6] ?? 25_260));
  for (const method of ['invite', 'message']) bench.fromApp(`r|route|${method}`);
  await bench.settle();
  bench.toApp.length = 0;
  const values = new Map<string, string>();
  const sent = { app: () => bench.toApp, peer: () => [...new Set(bench.toCaller)].filter((text) => !unrecorded.test(text)) };
  const seen = { app: new Set<string>(), peer: new Set<string>() };
  const translate = (text: string): string => [...values].reduce((all, [theirs, mine]) => all.replaceAll(theirs, mine), text);
  const learn = (theirs: string, mine: string): void => {
    const made = mine.match(MADE_UP) ?? [];
    (theirs.match(MADE_UP) ?? []).forEach((value, index) => values.set(value, values.get(value) ?? made[index] ?? value));
    for (const way of WAYS) {
      const [one, other] = [way.exec(theirs), way.exec(mine)].map((match) => match?.[1] ?? match?.[0]);
      if (one !== undefined && other !== undefined && one !== other && !values.has(one)) values.set(one, other);
    }
  };
  let atMs = lines[0]?.atMs ?? 0;
  for (const { atMs: at, from, side, text } of lines) {
    await bench.pass(Math.max(0, at - atMs));
    atMs = Math.max(atMs, at);
    if (from === 'app') bench.fromApp(translate(text));
    else if (from === 'peer') bench.fromCaller(translate(text));
    else if (!seen[side].has(text)) {
      learn(text, sent[side]()[seen[side].size] ?? '');
      seen[side].add(text);
    }
    await bench.settle();
  }
  return { toApp: { theirs: [...seen.app], ours: sent.app() }, toPeer: { theirs: [...seen.peer], ours: sent.peer() } };
}
