import { userInfo } from 'node:os';
import { Command, InvalidArgumentError } from 'commander';
import type { OrgRecord } from '../gateway/model/records.js';
import { MAX_ALLOWED_SOURCES } from '../gateway/api/schemas/sip-api.js';
import { isSourceAddress } from '../lib/source-address.js';
import { StoreUnavailableError } from '../gateway/ports/ports.js';
import { errorText } from '../lib/error-text.js';
import { newStreamKey, newWebhookSecret } from '../gateway/store/new-records.js';
import type { OrgChange, Stores } from '../gateway/ports/stores.js';

interface Flags {
  readonly json?: boolean;
  readonly sip?: boolean;
}

/** `trunkline org …`. @param print where lines go; standard output unless a test reads them */
export function orgCommand(connect: Connect, print = printLine): Command {
  const io = { connect, print };
  const org = new Command('org').description('make and change organizations, the owners of numbers, agents and API keys');
  addCreate(org, io);
  addList(org, io);
  addChange(org, io, 'enable-sip', 'let an organization use the /sip routes and take calls', { sip_enabled: true });
  addChange(org, io, 'disable-sip', 'take that away: /sip is refused (403), new calls too; calls in progress go on', {
    sip_enabled: false,
  });
  addChange(org, io, 'disable', 'refuse all API requests and new calls of an organization; nothing is deleted', { disabled: true });
  addChange(org, io, 'enable', 'undo disable', { disabled: false });
  addSetLimits(org, io);
  addSecret('webhook_secret', org, io);
  addSecret('stream_key', org, io);
  org.addHelpText(
    'after',
    '\nA first organization that can attach numbers:\n  trunkline org create "My company" --sip\n  trunkline key create "My company"',
  );
  return org;
}

function addCreate(parent: Command, { connect, print }: CommandIo): void {
  const command = parent
    .command('create')
    .description('make an organization')
    .argument('<name>', 'what you call it, such as "My company"')
    .option('--sip', 'enable SIP at once, as enable-sip does')
    .option('--json', 'print JSON')
    .action((name: string, flags: Flags) =>
      withStores(command, connect, async (stores) => {
        const wanted = checkName('an organization', name);
        if ((await stores.orgs.list()).some((other) => other.name === wanted)) {
          throw new CommandFailure(`there is an organization "${wanted}" already`);
        }
        const made = await stores.orgs.create({ name: wanted, sip_enabled: flags.sip === true });
        await noteChange(stores, made.org_id, 'org.create', made.org_id, ['name', 'sip_enabled']);
        if (flags.json === true) {
          print(JSON.stringify(shown(made)));
          return;
        }
        print(`Organization "${made.name}" made: ${made.org_id}`);
        print(`Next: trunkline key create ${made.org_id}`);
      }),
    );
}

function addList(parent: Command, { connect, print }: CommandIo): void {
  const command = parent
    .command('list')
    .description('show all organizations')
    .option('--json', 'print JSON')
    .action((flags: Flags) =>
      withStores(command, connect, async (stores) => {
        const orgs = await stores.orgs.list();
        if (flags.json === true) {
          print(JSON.stringify(orgs.map(shown)));
          return;
        }
        if (orgs.length === 0) {
          print('There is no organization yet. Make one: trunkline org create <name> --sip');
          return;
        }
        const rows = orgs.map((org) => [org.org_id, org.name, org.sip_enabled ? 'yes' : 'no', org.disabled ? 'yes' : 'no', org.created_at]);
        for (const line of table(['ID', 'NAME', 'SIP', 'DISABLED', 'CREATED'], rows)) print(line);
      }),
    );
}

function addChange(parent: Command, { connect, print }: CommandIo, name: string, description: string, change: OrgChange): void {
  const command = parent
    .command(name)
    .description(description)
    .argument('<org>', 'its id or its name')
    .option('--json', 'print JSON')
    .action((idOrName: string, flags: Flags) =>
      withStores(command, connect, async (stores) => {
        const org = await findOrg(stores, idOrName);
        const changed = await stores.orgs.change(org.org_id, change);
        if (changed === null) throw new CommandFailure(`there is no organization "${idOrName}"`);
        await noteChange(stores, org.org_id, 'org.change', org.org_id, Object.keys(change));
        if (flags.json === true) {
          print(JSON.stringify(shown(changed)));
          return;
        }
        print(`"${changed.name}": SIP ${changed.sip_enabled ? 'enabled' : 'not enabled'}, ${changed.disabled ? 'disabled' : 'active'}`);
      }),
    );
}

interface SecretFlags {
  readonly json?: boolean;
  readonly rotate?: boolean;
}

type LimitArgument = number | 'none';

interface LimitFlags {
  readonly json?: boolean;
  readonly maxConcurrentCalls?: LimitArgument;
  readonly maxCallsPerSecond?: LimitArgument;
  readonly allowedSources?: readonly string[];
}

function addSetLimits(parent: Command, { connect, print }: CommandIo): void {
  const command = parent
    .command('set-limits')
    .description('limit the calls of all numbers of an organization together, over all gateways; what is left out stays')
    .argument('<org>', 'its id or its name')
    .option('--max-concurrent-calls <n>', 'calls in progress, 0 to 100000, or "none"', limitArgument(100_000))
    .option('--max-calls-per-second <n>', 'new calls a second, 0 to 10000, or "none"', limitArgument(10_000))
    .option(
      '--allowed-sources <list>',
      'addresses and CIDR blocks that calls may come from, with commas between, or "any"',
      sourcesArgument,
    )
    .option('--json', 'print JSON')
    .action((idOrName: string, flags: LimitFlags) =>
      withStores(command, connect, async (stores) => {
        const change: OrgChange = {
          ...(flags.maxConcurrentCalls === undefined ? {} : { max_concurrent_calls: limitOf(flags.maxConcurrentCalls) }),
          ...(flags.maxCallsPerSecond === undefined ? {} : { max_calls_per_second: limitOf(flags.maxCallsPerSecond) }),
          ...(flags.allowedSources === undefined ? {} : { allowed_sources: flags.allowedSources }),
        };
        if (Object.keys(change).length === 0) throw new CommandFailure('nothing to set: name at least one limit (--help shows them)');
        const org = await findOrg(stores, idOrName);
        const changed = await stores.orgs.change(org.org_id, change);
        if (changed === null) throw new CommandFailure(`there is no organization "${idOrName}"`);
        await noteChange(stores, org.org_id, 'org.change', org.org_id, Object.keys(change));
        print(flags.json === true ? JSON.stringify(shown(changed)) : limitsLine(changed));
      }),
    );
}

function limitOf(argument: LimitArgument): number | null {
  return argument === 'none' ? null : argument;
}

// Not null for "none": commander takes that for an option without a value.
function limitArgument(most: number): (text: string) => LimitArgument {
  return (text) => {
    if (text === 'none') return text;
    if (/^\d{1,6}$/.test(text) && Number(text) <= most) return Number(text);
    throw new InvalidArgumentError(`must be 0 to ${most}, or "none".`);
  };
}

function sourcesArgument(text: string): readonly string[] {
  if (text === 'any') return [];
  const sources = text.split(',').map((source) => source.trim());
  const bad = sources.find((source) => !isSourceAddress(source));
  if (bad !== undefined) throw new InvalidArgumentError(`"${bad}" is no IP address and no CIDR block, such as 203.0.113.0/24.`);
  if (sources.length > MAX_ALLOWED_SOURCES) throw new InvalidArgumentError(`at most ${MAX_ALLOWED_SOURCES} of them.`);
  return sources;
}

function limitsLine({ name, max_concurrent_calls, max_calls_per_second, allowed_sources }: OrgRecord): string {
  const sources = allowed_sources.length === 0 ? 'any source' : allowed_sources.join(', ');
  return `"${name}": calls in progress ${max_concurrent_calls ?? 'no limit'}, calls a second ${max_calls_per_second ?? 'no limit'}, from ${sources}`;
}

const SECRETS = {
  webhook_secret: {
    command: 'webhook-secret',
    description: 'print the secret that webhooks of an organization are signed with',
    rotate: 'make another one first; webhooks are signed with it at once',
    make: newWebhookSecret,
  },
  stream_key: {
    command: 'stream-key',
    description: 'print the key of X-Twilio-Signature, by which bots of an organization know its calls',
    rotate: 'make another one first; calls are signed with it from their next look-up on',
    make: newStreamKey,
  },
} as const;

function addSecret(field: keyof typeof SECRETS, parent: Command, { connect, print }: CommandIo): void {
  const secret = SECRETS[field];
  const command = parent
    .command(secret.command)
    .description(secret.description)
    .argument('<org>', 'its id or its name')
    .option('--rotate', secret.rotate)
    .option('--json', 'print JSON')
    .action((idOrName: string, flags: SecretFlags) =>
      withStores(command, connect, async (stores) => {
        const org = await findOrg(stores, idOrName);
        const found = flags.rotate === true ? await stores.orgs.change(org.org_id, { [field]: secret.make() }) : org;
        if (found === null) throw new CommandFailure(`there is no organization "${idOrName}"`);
        if (flags.rotate === true) await noteChange(stores, org.org_id, 'org.change', org.org_id, [field]);
        print(flags.json === true ? JSON.stringify({ org_id: found.org_id, [field]: found[field] }) : found[field]);
      }),
    );
}

/** Everything but the secrets. */
function shown({ webhook_secret: _secret, stream_key: _key, ...rest }: OrgRecord): Omit<OrgRecord, keyof typeof SECRETS> {
  return rest;
}

// What `org` and `key` share.

/** Opens the stores for the time of one command. */
export type Connect = () => Promise<Stores & { close(): Promise<void> }>;

/** A fault of the person at the keyboard: shown as it is, exit code 1. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
}

export interface CommandIo {
  readonly connect: Connect;
  readonly print: (line: string) => void;
}

/** Prints on standard output. */
export const printLine = (line: string): void => console.log(line);

/** Runs `work` with open stores and closes them; a failure is one line on standard error and exit code 1. */
export async function withStores(command: Command, connect: Connect, work: (stores: Stores) => Promise<void>): Promise<void> {
  try {
    const stores = await connect();
    try {
      await work(stores);
    } finally {
      await stores.close();
    }
  } catch (error) {
    if (error instanceof CommandFailure) command.error(`error: ${error.message}`, { exitCode: 1 });
    if (error instanceof StoreUnavailableError) {
      command.error(`error: ${error.message}. Is Trunkline running? Start it with: trunkline up`, { exitCode: 1 });
    }
    throw error;
  }
}

/** Notes a change in the organization's audit log. Never rejects: the change is made, whatever becomes of the note. */
export async function noteChange(
  stores: Pick<Stores, 'audit'>,
  orgId: string,
  action: string,
  record: string,
  fields: readonly string[] = [],
): Promise<void> {
  try {
    await stores.audit.append(orgId, { by: { key_id: null, name: `cli:${userName()}` }, action, record, fields });
  } catch (error) {
    console.error(`trunkline: the change is made, but not noted in the audit log: ${errorText(error)}`);
  }
}

/** A container may run under a user that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}

/** The organization that a person named by its id, or by its name when only one has it. */
export async function findOrg(stores: Pick<Stores, 'orgs'>, idOrName: string): Promise<OrgRecord> {
  const byId = await stores.orgs.get(idOrName);
  if (byId !== null) return byId;
  const named = (await stores.orgs.list()).filter((org) => org.name === idOrName);
  if (named.length > 1) throw new CommandFailure(`${named.length} organizations are called "${idOrName}": use the id (trunkline org list)`);
  const [only] = named;
  if (only === undefined) throw new CommandFailure(`there is no organization "${idOrName}" (trunkline org list shows all)`);
  return only;
}

/** Columns as wide as their widest cell. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  return [header, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** A name as it may stand in a list: 1 to 100 printable characters. */
export function checkName(what: string, name: string): string {
  const trimmed = name.trim();
  if (trimmed.length < 1 || trimmed.length > 100 || /\p{C}/u.test(trimmed)) {
    throw new CommandFailure(`the name of ${what} must be 1 to 100 printable characters`);
  }
  return trimmed;
}
