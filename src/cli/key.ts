import { Command } from 'commander';
import type { OrgRecord } from '../gateway/model/records.js';
import { NO_ORG, type Stores } from '../gateway/ports/stores.js';
import { checkName, CommandFailure, findOrg, noteChange, overStores, printResult, table, type StoreIo } from './command.js';

interface Flags {
  readonly operator?: boolean;
  readonly json?: boolean;
  readonly name?: string;
}

/** `trunkline key …`. */
export function keyCommand(io: StoreIo): Command {
  const key = new Command('key').description('create, list and revoke API keys');
  const create = key
    .command('create')
    .description('create an API key and print it; it is shown only once')
    .argument('[org]', "the organization's id or name")
    .option('--operator', "an operator's key instead: reads all organizations over HTTP, changes nothing")
    .option('--name <name>', 'what the key is for, such as "billing job"', 'default')
    .option('--json', 'print JSON');
  overStores(create, io, async (stores, flags: Flags, idOrName: string | undefined) => {
    const org = await ownerOf(stores, idOrName, flags);
    const name = checkName('a key', flags.name ?? 'default');
    const { key: secret, record } = await stores.keys.create(org?.org_id ?? null, name);
    await noteChange(stores, org?.org_id ?? NO_ORG, 'key.create', record.key_id, ['name']);
    const note = `Key ${record.key_id} of ${titleOf(org)}. Store it now: it is not shown again.`;
    printResult(io, flags, { key: secret, ...record }, secret, note);
  });
  const list = key
    .command('list')
    .description("list an organization's keys, without the secrets")
    .argument('[org]', 'its id or its name')
    .option('--operator', "operators' keys instead")
    .option('--json', 'print JSON');
  overStores(list, io, async (stores, flags: Flags, idOrName: string | undefined) => {
    const org = await ownerOf(stores, idOrName, flags);
    const keys = await stores.keys.list(org?.org_id ?? null);
    const none = `No keys for ${titleOf(org)}. Create one: trunkline key create ${org?.org_id ?? '--operator'}`;
    const rows = keys.map((one) => [one.key_id, one.name, one.created_at, one.last_used_at ?? 'never', one.revoked_at ?? '-']);
    printResult(io, flags, keys, ...(keys.length === 0 ? [none] : table(['ID', 'NAME', 'CREATED', 'LAST USED', 'REVOKED'], rows)));
  });
  const revoke = key
    .command('revoke')
    .description('revoke a key; this cannot be undone')
    .argument('<key-id>', 'the id from "key list", not the key itself')
    .option('--json', 'print JSON');
  overStores(revoke, io, async (stores, flags: Flags, keyId: string) => {
    const record = await stores.keys.revoke(keyId);
    // Not quoted back: it may be the key itself, typed by mistake.
    if (record === null) throw new CommandFailure('no key has this id (trunkline key list <org> shows all)');
    await noteChange(stores, record.org_id ?? NO_ORG, 'key.revoke', record.key_id, ['revoked_at']);
    const org = record.org_id === null ? null : await stores.orgs.get(record.org_id);
    printResult(io, flags, record, `Revoked key ${record.key_id} ("${record.name}") of ${titleOf(org)}.`);
  });
  return key.addHelpText(
    'after',
    '\nA key goes in the authorization header of every request:\n  curl -H "authorization: $TRUNKLINE_API_KEY" http://127.0.0.1:8080/sip',
  );
}

/** Whose keys are meant; `null`: an operator's. */
async function ownerOf(stores: Pick<Stores, 'orgs'>, idOrName: string | undefined, { operator }: Flags): Promise<OrgRecord | null> {
  if ((idOrName === undefined) !== (operator === true)) throw new CommandFailure('name an organization (id or name) or use --operator');
  return idOrName === undefined ? null : findOrg(stores, idOrName);
}

function titleOf(org: OrgRecord | null): string {
  return org === null ? 'the operator' : `"${org.name}"`;
}
