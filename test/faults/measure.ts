import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { send } from '../support/redis.js';
import { childrenOf, openFiles } from '../support/processes.js';
import { sessionsOf } from '../support/trunk.js';
import type { World } from './world.js';

// What an operator would look at before a fault and after it.

/** Open files by process; several of one name together. */
export function filesOf(world: World): Readonly<Record<string, number>> {
  const files: Record<string, number> = {};
  const { dataDir, ready } = world.gateway;
  const followers = readdirSync(dataDir)
    .filter((name) => name.endsWith('-next.pid'))
    .map((name) => (JSON.parse(readFileSync(join(dataDir, name), 'utf8')) as { readonly pid: number }).pid);
  for (const { name, pid } of childrenOf(ready.pid)) if (!followers.includes(pid)) files[name] = (files[name] ?? 0) + openFiles(pid);
  return files;
}

/** What is kept for a call only as long as it lasts: snapshots, places under limits, calls in progress. */
const OF_CALLS = [
  ['gw:*:calls', (key: string) => `HLEN ${key}`],
  // A place whose time is over is free, though it is taken off the list later.
  ['*:leases', (key: string) => `ZCOUNT ${key} ${String(Date.now())} +inf`],
  ['*:live', (key: string) => `ZCARD ${key}`],
] as const;

/** What is left of calls, in words; nothing when all is freed. */
export async function leftOvers(world: World): Promise<string[]> {
  const left: string[] = [];
  for (const port of world.ngPorts) {
    const sessions = await sessionsOf(port);
    if (sessions !== 0) left.push(`${String(sessions ?? 'unknown')} rtpengine sessions`);
  }
  // Whoever looks at the list takes those off it whose gateway died.
  await world.stores.live.list(world.orgId, { limit: 500 });
  for (const [pattern, count] of OF_CALLS) {
    for (const key of await keysOf(world, pattern)) {
      const answer = await send(world.redisPort(), count(key));
      if (!answer.startsWith(':0')) left.push(`${key.replace(/\{.*\}/, '{…}')} has ${answer.slice(1).trim()}`);
    }
  }
  return left;
}

async function keysOf({ redisPort }: World, pattern: string): Promise<string[]> {
  const answer = await send(redisPort(), `KEYS ${pattern}`);
  return answer.split('\r\n').filter((line) => !/^[*$]|^$/.test(line));
}

/** The events of a severity that somebody looks at, and those that say that a part is back. */
const TELLING = /"level":"(?:warn|error|fatal)"|\.(?:back|connected|restarted|reconnected|ready|resumed|over|normal)"|is back"/;

/** Reads what the processes have logged since it was made. */
export class LogReader {
  readonly #from = new Map<string, number>();
  readonly #printed: number;
  readonly #printedBySip: number;

  constructor(private readonly world: World) {
    for (const file of this.#files()) this.#from.set(file, statSync(file).size);
    this.#printed = world.gateway.output.length;
    this.#printedBySip = world.sipServer?.output.length ?? 0;
  }

  #lines(): string[] {
    const { gateway, sipServer } = this.world;
    const texts = [
      gateway.output.slice(this.#printed),
      sipServer?.output.slice(this.#printedBySip) ?? '',
      ...this.#files().map((file) =>
        readFileSync(file)
          .subarray(this.#from.get(file) ?? 0)
          .toString(),
      ),
    ];
    return texts.flatMap((text) => text.split('\n'));
  }

  /** What was logged of these calls, by Call-ID. */
  of(sipCallIds: readonly string[]): string[] {
    return this.#lines().filter((line) => sipCallIds.some((id) => line.includes(`"${id}"`)));
  }

  /** The calls that a line says the end of, by Call-ID. */
  toldEnds(): ReadonlySet<string> {
    const ends = this.#lines().filter((line) => /"msg":"call\.(?:ended|refused)"/.test(line));
    return new Set(ends.map((line) => /"sip_call_id":"([^"]*)"/.exec(line)?.[1] ?? ''));
  }

  /** Each event once, with how often it came. */
  events(): Readonly<Record<string, number>> {
    const events: Record<string, number> = {};
    for (const line of this.#lines()) {
      const event = TELLING.test(line) ? /"msg":"([^"]*)"/.exec(line)?.[1] : undefined;
      if (event !== undefined) events[event] = (events[event] ?? 0) + 1;
    }
    return events;
  }

  #files(): string[] {
    const directory = join(this.world.gateway.dataDir, 'logs');
    return readdirSync(directory)
      .filter((name) => /^(?:gateway|sip-server).*\.log$/.test(name))
      .map((name) => join(directory, name));
  }
}

const EVERY_MS = 200;
const NO_ANSWER_MS = 1_000;

/** Asks /readyz all the time: which parts it named, and whether it answered at all. */
export class ReadyWatch {
  readonly seen = new Set<string>();
  readonly #timer: NodeJS.Timeout;

  constructor(private readonly url: string) {
    this.#timer = setInterval(() => void this.#ask(), EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #ask(): Promise<void> {
    try {
      const answer = await fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(NO_ANSWER_MS) });
      this.seen.add(answer.status === 200 ? '200' : `503 ${missingParts(await answer.text())}`);
    } catch {
      this.seen.add('no answer');
    }
  }
}

function missingParts(text: string): string {
  return [...text.matchAll(/"(redis|rtpengine|sip_server)":false/g)].map(([, part]) => part ?? '').join(', ');
}
