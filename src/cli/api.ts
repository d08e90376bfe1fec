import type { Command } from 'commander';
import { ApiError, createClient, type Client } from '../client/index.js';
import type { Config } from '../config/schema.js';
import { CommandFailure, orFail, plain } from './command.js';
import { runningGateway, type Ready } from './ready.js';

// Shared by the commands that use the control API.

export interface ApiFlags {
  readonly apiUrl?: string;
  readonly key?: string;
  readonly json?: boolean;
}

export interface ApiIo {
  readonly config: () => Pick<Config, 'data_dir'>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly print: (line: string) => void;
  /** In place of the global one. */
  readonly fetch?: typeof fetch;
  /** What is said beside the answer, on standard error. */
  readonly note?: (line: string) => void;
  /** All of the running product's. Rejects when the store does not answer. Left out: nobody knows. */
  readonly organizations?: () => Promise<readonly { readonly org_id: string; readonly name: string }[]>;
}

export function apiFlags(command: Command): Command {
  return command
    .option('--api-url <url>', 'control API, such as http://127.0.0.1:8080 (TRUNKLINE_API_URL); default: the running gateway')
    .option('--key <key>', 'API key; TRUNKLINE_API_KEY hides it from other users of this machine')
    .option('--json', 'print JSON');
}

/** Makes `command` one over the control API: gives it the flags of that, and `work` a client, the flags and the arguments. A failure is one line and exit code 1. */
export function overApi(command: Command, io: ApiIo, work: (api: Client, flags: never, ...args: never[]) => Promise<void>): Command {
  return apiFlags(command).action(() =>
    orFail(command, async () => {
      const { api, url } = await openApi(io, command.opts<ApiFlags>());
      const owner = ownerOf(api);
      try {
        await work(api, command.opts<never>(), ...(command.processedArgs as never[]));
      } catch (error) {
        throw error instanceof ApiError ? new CommandFailure(sentenceOf(error, url)) : error;
      } finally {
        await say(io, owner);
      }
    }),
  );
}

/** Says whom a command acts for, as those of `overApi` do. */
export function nameOwner(io: Pick<ApiIo, 'note'>, api: Client): Promise<void> {
  return say(io, ownerOf(api));
}

async function say({ note = console.error }: Pick<ApiIo, 'note'>, owner: Promise<string | null>): Promise<void> {
  const named = await owner;
  if (named !== null) note(named);
}

/** Whom the command acted for: a key says nothing to a person. `null`: the API did not say. */
async function ownerOf(api: Client): Promise<string | null> {
  try {
    const { operator, organizations } = await api.GET('/v1/organizations', {});
    const [org] = organizations;
    if (operator) return 'Organization: all (an operator key)';
    return org === undefined ? null : plain(`Organization: ${org.name} (${org.org_id})`);
  } catch {
    return null;
  }
}

/** A client of the API that is named, or of the running gateway. Throws a `CommandFailure` when there is none, or no key. */
export async function openApi(io: ApiIo, flags: ApiFlags, timeoutMs?: number): Promise<{ readonly api: Client; readonly url: string }> {
  const { url, key } = await accessOf(io, flags);
  const limit = timeoutMs === undefined ? {} : { timeoutMs };
  return { url, api: createClient({ baseUrl: url, apiKey: key, ...limit, ...(io.fetch === undefined ? {} : { fetch: io.fetch }) }) };
}

async function accessOf(io: ApiIo, flags: ApiFlags): Promise<{ readonly url: string; readonly key: string }> {
  const named = namedUrl(io, flags);
  const key = flags.key ?? nonEmpty(io.environment['TRUNKLINE_API_KEY']);
  if (named !== undefined) {
    const url = baseUrl(named);
    // Never send the demo key of this machine's gateway to another server.
    if (key === undefined) throw new CommandFailure('no API key: set --key or TRUNKLINE_API_KEY');
    return { url, key };
  }
  const ready = await runningGateway(io.config(), 'give --api-url and --key');
  if (key !== undefined) return { url: ready.http, key };
  if (ready.api_key === null)
    throw new CommandFailure('no API key: create one with trunkline key create <org>, then set TRUNKLINE_API_KEY');
  await refuseBesideOthers(io, ready);
  return { url: ready.http, key: ready.api_key };
}

/** The key of the demo organization stands in for a key that nobody gave: not where another organization may be meant. */
async function refuseBesideOthers({ organizations }: ApiIo, { org_id: demoId }: Ready): Promise<void> {
  const all = (await organizations?.().catch(() => [])) ?? [];
  const other = all.find((org) => org.org_id !== demoId);
  if (other === undefined) return;
  throw new CommandFailure(
    plain(
      `whose numbers and calls? There is "${other.name}" beside the demo organization: set TRUNKLINE_API_KEY to a key of the one that you mean ` +
        `(trunkline key create "${other.name}"; the demo's is in ready.json)`,
    ),
  );
}

/** `undefined`: the running gateway's. */
export function namedUrl({ environment }: Pick<ApiIo, 'environment'>, { apiUrl }: ApiFlags): string | undefined {
  return apiUrl ?? nonEmpty(environment['TRUNKLINE_API_URL']);
}

/** Without the slash at its end. Throws a `CommandFailure` when it is no URL of an API. */
export function baseUrl(text: string): string {
  if (!/^https?:\/\/[^/\s@]+/i.test(text) || !URL.canParse(text))
    throw new CommandFailure('the URL must be http:// or https://, without a user');
  return text.replace(/\/+$/, '');
}

const nonEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

function sentenceOf(error: ApiError, url: string): string {
  const { code, errors, message, retryAfterSeconds: wait, requestId } = error;
  if (code === 'UNREACHABLE') return `${url} cannot be reached. Is Trunkline running? Start it with: trunkline up`;
  if (code === 'TIMEOUT' || code === 'BAD_ANSWER') return `${url}: ${message}`;
  // The message has the first few of them.
  const all = errors.map((one) => `\n  ${one.path === undefined ? '' : `${one.path} `}${one.message}`);
  const text = all.length > 1 ? `The request is not valid:${all.join('')}` : message;
  const hint = code === 'UNAUTHENTICATED' ? ' (--key, or TRUNKLINE_API_KEY)' : wait === null ? '' : `; try again in ${String(wait)} s`;
  return plain(`${text}${hint}${code === 'INTERNAL' || requestId === null ? '' : ` [${code}]`}`);
}

/** https://no-color.org: not when NO_COLOR is set, whatever to. */
export function wantsColour(environment: ApiIo['environment']): boolean {
  return (environment['NO_COLOR'] ?? '') === '';
}

/** A count for the query of a request, which the API judges. */
export function queryOf<T extends Readonly<Record<string, unknown>>>(given: T): { [name in keyof T]?: Exclude<T[name], undefined> } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as {
    [name in keyof T]?: Exclude<T[name], undefined>;
  };
}
