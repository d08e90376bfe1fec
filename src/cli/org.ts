import { Argument, Command, InvalidArgumentError } from 'commander';
import { PROVIDERS, type ProviderName } from '../gateway/model/provider.js';
import type { OrgRecord } from '../gateway/model/records.js';
import { accountSidOf } from '../gateway/model/twilio-ids.js';
import { MAX_ALLOWED_SOURCES } from '../gateway/api/schemas/sip-api.js';
import { isSourceAddress } from '../lib/address.js';
import { newTwilioToken, newWebhookSecret } from '../gateway/store/new-records.js';
import type { OrgChange, OrgLimit, Stores } from '../gateway/ports/stores.js';
import { addDialling } from './dialling.js';
import {
  checkName,
  CommandFailure,
  findOrg,
  limitArgument,
  noteChange,
  overStores,
  noteOrg,
  printResult,
  table,
  textOf,
  type JsonFlag,
  type LimitArgument,
  type StoreIo,
} from './command.js';

const SECRETS = {
  webhook_secret: {
    command: 'webhook-secret',
    description: "print the secret that signs the organization's webhooks",
    rotate: 'create a new secret first; it signs webhooks immediately',
    make: newWebhookSecret,
    lines: ({ webhook_secret: secret }: OrgRecord) => [secret],
    more: () => ({}),
  },
  twilio_token: {
    command: 'twilio-token',
    description:
      "print the account SID and the auth token of an organization, as variables of Twilio's libraries; the token is the key of X-Twilio-Signature",
    rotate: 'create a new key first; it signs calls from the next lookup on',
    make: newTwilioToken,
    lines: ({ org_id: id, twilio_token: token }: OrgRecord) => [`TWILIO_ACCOUNT_SID=${accountSidOf(id)}`, `TWILIO_AUTH_TOKEN=${token}`],
    more: ({ org_id: id }: OrgRecord) => ({ account_sid: accountSidOf(id) }),
  },
} as const;

interface LimitFlags extends JsonFlag {
  readonly maxConcurrentCalls?: LimitArgument;
  readonly maxCallsPerSecond?: LimitArgument;
  readonly maxProviderSessions?: LimitArgument;
  readonly maxProviderMinutesPerDay?: LimitArgument;
  readonly maxProviderTokensPerDay?: LimitArgument;
  readonly allowedSources?: readonly string[];
}

/** `trunkline org …`. */
export function orgCommand(io: StoreIo): Command {
  const org = new Command('org').description('create and change organizations, which own numbers, agents and API keys');
  const create = org
    .command('create')
    .description('create an organization')
    .argument('<name>', 'its name, such as "My company"')
    .option('--sip', 'enable SIP too, as enable-sip does')
    .option('--json', 'print JSON');
  overStores(create, io, async (stores, flags: JsonFlag & { readonly sip?: boolean }, name: string) => {
    const wanted = checkName('an organization', name);
    if ((await stores.orgs.list()).some((other) => other.name === wanted))
      throw new CommandFailure(`organization "${wanted}" already exists`);
    const made = await stores.orgs.create({ name: wanted, sip_enabled: flags.sip === true });
    const { org_id: id } = made;
    await noteChange(stores, id, 'org.create', id, ['name', 'sip_enabled']);
    printResult(io, flags, shown(made), `Created organization "${made.name}": ${id}`, `Next: trunkline key create ${id}`);
  });
  const list = org.command('list').description('list all organizations').option('--json', 'print JSON');
  overStores(list, io, async (stores, flags: JsonFlag) => {
    const orgs = await stores.orgs.list();
    const none = 'No organization yet. Create one: trunkline org create <name> --sip';
    const yes = (is: boolean): string => (is ? 'yes' : 'no');
    const rows = orgs.map((one) => [one.org_id, one.name, yes(one.sip_enabled), yes(one.disabled), one.created_at]);
    const lines = orgs.length === 0 ? [none] : table(['ID', 'NAME', 'SIP', 'DISABLED', 'CREATED'], rows);
    printResult(io, flags, orgs.map(shown), ...lines);
  });
  addChange(org, io, 'enable-sip', 'let an organization use the /sip routes and receive calls', { sip_enabled: true });
  addChange(org, io, 'disable-sip', 'undo enable-sip: the gateway refuses /sip (403) and new calls; calls in progress continue', {
    sip_enabled: false,
  });
  addChange(org, io, 'disable', 'refuse all API requests and new calls of an organization; nothing is deleted', { disabled: true });
  addChange(org, io, 'enable', 'undo disable', { disabled: false });
  addChange(org, io, 'enable-operator-keys', "let an organization's agents use the operator's keys of providers", { operator_keys: true });
  addChange(org, io, 'disable-operator-keys', 'undo enable-operator-keys', { operator_keys: false });
  addProviderKey(org, io);
  addProviderUsage(org, io);
  addSetTranscripts(org, io);
  addPathwayUrl(org, io);
  addSetLimits(org, io);
  addDialling(org, io, changeOrg, shown);
  addSecret('webhook_secret', org, io);
  addSecret('twilio_token', org, io);
  return org.addHelpText(
    'after',
    '\nA first organization that can attach numbers:\n  trunkline org create "My company" --sip\n  trunkline key create "My company"',
  );
}

function addChange(parent: Command, io: StoreIo, name: string, description: string, change: OrgChange): void {
  const command = parent.command(name).description(description).argument('<org>', 'its id or its name').option('--json', 'print JSON');
  overStores(command, io, async (stores, flags: JsonFlag, idOrName: string) => {
    const changed = await changeOrg(stores, idOrName, change);
    const state = `SIP ${changed.sip_enabled ? 'enabled' : 'not enabled'}, ${changed.disabled ? 'disabled' : 'active'}`;
    printResult(io, flags, shown(changed), `"${changed.name}": ${state}`);
  });
}

async function changeOrg(stores: Pick<Stores, 'orgs' | 'audit'>, idOrName: string, change: OrgChange): Promise<OrgRecord> {
  const { org_id: id } = await findOrg(stores, idOrName);
  const changed = await stores.orgs.change(id, change);
  if (changed === null) throw new CommandFailure(`organization "${idOrName}" not found`);
  await noteChange(stores, id, 'org.change', id, Object.keys(change));
  return changed;
}

function addSetLimits(parent: Command, io: StoreIo): void {
  const command = parent
    .command('set-limits')
    .description("limit an organization's calls over all its numbers and all gateways; omitted limits stay")
    .argument('<org>', 'its id or its name')
    .option('--max-concurrent-calls <n>', 'calls in progress, 0 to 100000, or "none"', limitArgument(100_000))
    .option('--max-calls-per-second <n>', 'new calls a second, 0 to 10000, or "none"', limitArgument(10_000))
    .option('--max-provider-sessions <n>', 'sessions at providers at once, 0 to 100000, or "none"', limitArgument(100_000))
    .option('--max-provider-minutes-per-day <n>', 'minutes at providers in a day (UTC), or "none"', limitArgument(1_000_000))
    .option('--max-provider-tokens-per-day <n>', 'tokens that providers report in a day (UTC), or "none"', limitArgument(1e12))
    .option('--allowed-sources <list>', 'accepted source addresses and CIDR blocks, comma-separated, or "any"', sourcesArgument)
    .option('--json', 'print JSON');
  overStores(command, io, async (stores, flags: LimitFlags, idOrName: string) => {
    const change: OrgChange = {
      ...changeOf('max_concurrent_calls', flags.maxConcurrentCalls),
      ...changeOf('max_calls_per_second', flags.maxCallsPerSecond),
      ...changeOf('max_provider_sessions', flags.maxProviderSessions),
      ...changeOf('max_provider_minutes_per_day', flags.maxProviderMinutesPerDay),
      ...changeOf('max_provider_tokens_per_day', flags.maxProviderTokensPerDay),
      ...(flags.allowedSources === undefined ? {} : { allowed_sources: flags.allowedSources }),
    };
    if (Object.keys(change).length === 0) throw new CommandFailure('nothing to change: set at least one limit (--help shows them)');
    const changed = await changeOrg(stores, idOrName, change);
    printResult(io, flags, shown(changed), limitsLine(changed));
  });
}

function changeOf(limit: Exclude<OrgLimit, 'allowed_sources'>, argument: LimitArgument | undefined): OrgChange {
  return argument === undefined ? {} : { [limit]: argument === 'none' ? null : argument };
}

function sourcesArgument(text: string): readonly string[] {
  if (text === 'any') return [];
  const sources = text.split(',').map((source) => source.trim());
  const bad = sources.find((source) => !isSourceAddress(source));
  if (bad !== undefined) throw new InvalidArgumentError(`"${bad}" is not an IP address or CIDR block, such as 203.0.113.0/24.`);
  if (sources.length > MAX_ALLOWED_SOURCES) throw new InvalidArgumentError(`at most ${MAX_ALLOWED_SOURCES} of them.`);
  return sources;
}

function limitsLine(org: OrgRecord): string {
  const { name, max_concurrent_calls, max_calls_per_second, allowed_sources } = org;
  const sources = allowed_sources.length === 0 ? 'any source' : allowed_sources.join(', ');
  const ofProviders = [
    ['sessions', org.max_provider_sessions],
    ['minutes a day', org.max_provider_minutes_per_day],
    ['tokens a day', org.max_provider_tokens_per_day],
  ] as const;
  const further = ofProviders.flatMap(([what, limit]) => (limit === null ? [] : [`, ${what} at providers ${String(limit)}`])).join('');
  return `"${name}": calls in progress ${max_concurrent_calls ?? 'no limit'}, calls a second ${max_calls_per_second ?? 'no limit'}, from ${sources}${further}`;
}

function addPathwayUrl(parent: Command, io: StoreIo): void {
  const command = parent
    .command('pathway-url')
    .description("set where the texts of an organization's pathways are fetched for agents at providers")
    .argument('<org>', 'its id or its name')
    .argument('<url>', 'https://… with {pathway_id} in its path or query, or "none"', pathwayUrl)
    .option('--bearer-token-file <file>', 'file with a token, sent as Authorization: Bearer; without it: none')
    .option('--json', 'print JSON');
  overStores(command, io, async (stores, flags: JsonFlag & { readonly bearerTokenFile?: string }, idOrName: string, url: string) => {
    const token = flags.bearerTokenFile === undefined ? null : (await textOf(flags.bearerTokenFile)).trim();
    if (token !== null && !/^[\x21-\x7e]{1,4000}$/.test(token)) throw new CommandFailure('the token must be printable and have no space');
    const changed = await changeOrg(stores, idOrName, { pathway_url: url === 'none' ? null : url, pathway_token: token });
    printResult(io, flags, shown(changed), `"${changed.name}": pathways ${changed.pathway_url === null ? 'not fetched' : `from ${url}`}`);
  });
}

function pathwayUrl(text: string): string {
  if (text === 'none') return text;
  const isUrl = /^https?:\/\/[^/?#{}\s]+[/?]\S*\{pathway_id\}/.test(text) && URL.canParse(text.replaceAll('{pathway_id}', 'x'));
  if (!isUrl || text.length > 1_000) throw new InvalidArgumentError('must be a URL with {pathway_id} in its path or query, or "none".');
  return text;
}

function addSetTranscripts(parent: Command, io: StoreIo): void {
  const command = parent
    .command('set-transcripts')
    .description("set how long transcripts of an organization's next calls are kept; webhooks get them anyway")
    .argument('<org>', 'its id or its name')
    .argument('<days>', '1 to 3650, "none", or "records": as long as the call records', transcriptDays)
    .option('--json', 'print JSON');
  overStores(command, io, async (stores, flags: JsonFlag, idOrName: string, days: number | 'records') => {
    const changed = await changeOrg(stores, idOrName, { transcript_days: days === 'records' ? null : days });
    const kept = days === 'records' ? 'as long as records' : days === 0 ? 'not kept' : `${String(days)} days`;
    printResult(io, flags, shown(changed), `"${changed.name}": transcripts ${kept}`);
  });
}

// Not null for "records": as for limits.
function transcriptDays(text: string): number | 'records' {
  if (text === 'records') return text;
  if (text === 'none') return 0;
  if (/^[1-9]\d{0,3}$/.test(text) && Number(text) <= 3_650) return Number(text);
  throw new InvalidArgumentError('must be 1 to 3650, "none" or "records".');
}

function addProviderUsage(parent: Command, io: StoreIo): void {
  const command = parent
    .command('provider-usage')
    .description("print an organization's sessions at providers, and its minutes and tokens of today (UTC)")
    .argument('<org>', 'its id or its name')
    .option('--json', 'print JSON');
  overStores(command, io, async (stores, flags: JsonFlag, idOrName: string) => {
    const { org_id: id, name } = await findOrg(stores, idOrName);
    const { sessions, milliseconds, tokens } = await stores.providerUsage.usage(id);
    const minutes = Math.round(milliseconds / 6_000) / 10;
    const line = `"${name}": ${String(sessions)} sessions, ${String(minutes)} minutes and ${String(tokens)} tokens today`;
    printResult(io, flags, { org_id: id, sessions, minutes, tokens }, line);
  });
}

function addProviderKey(parent: Command, io: StoreIo): void {
  const command = parent
    .command('provider-key')
    .description("store an organization's key at a provider, which is never shown again")
    .argument('<org>', 'its id or its name')
    .addArgument(new Argument('<provider>', 'the provider').choices(PROVIDERS))
    .option('--key-file <file>', 'file with the key')
    .option('--clear', 'delete the key')
    .option('--json', 'print JSON');
  overStores(
    command,
    io,
    async (stores, flags: JsonFlag & { readonly keyFile?: string; readonly clear?: boolean }, idOrName: string, provider: ProviderName) => {
      const key = flags.keyFile === undefined ? '' : (await textOf(flags.keyFile)).trim();
      if (flags.clear !== true && !/^[\x21-\x7e]{1,4096}$/.test(key))
        throw new CommandFailure('pass --key-file with a key that is printable and has no space, or --clear');
      const { provider_keys: keys, org_id: id } = await findOrg(stores, idOrName);
      const { [provider]: _before, ...others } = keys;
      const changed = await changeOrg(stores, id, { provider_keys: flags.clear === true ? others : { ...others, [provider]: key } });
      printResult(io, flags, shown(changed), `"${changed.name}": ${flags.clear === true ? 'no key' : 'key stored'} for ${provider}`);
    },
  );
}

function addSecret(field: keyof typeof SECRETS, parent: Command, io: StoreIo): void {
  const secret = SECRETS[field];
  const command = parent
    .command(secret.command)
    .description(secret.description)
    .argument('<org>', 'its id or its name')
    .option('--rotate', secret.rotate)
    .option('--json', 'print JSON');
  overStores(command, io, async (stores, flags: JsonFlag & { readonly rotate?: boolean }, idOrName: string) => {
    const isRotated = flags.rotate === true;
    const found = isRotated ? await changeOrg(stores, idOrName, { [field]: secret.make() }) : await findOrg(stores, idOrName);
    printResult(io, flags, { org_id: found.org_id, ...secret.more(found), [field]: found[field] }, ...secret.lines(found));
    noteOrg(io, found);
  });
}

/** Everything but the secrets. */
function shown({ webhook_secret: _secret, twilio_token: _key, provider_keys: _keys, pathway_token: _token, ...rest }: OrgRecord): object {
  return rest;
}
