import { Command } from 'commander';
import type { OrgRecord } from '../gateway/model/records.js';
import { NO_ORG, type Stores } from '../gateway/ports/stores.js';
import { checkName, CommandFailure, findOrg, noteChange, printResult, table, withStores, type StoreIo } from './command.js';

interface Flags {
  readonly operator?: boolean;
  readonly json?: boolean;
  readonly name?: string;
}

/** `trunkline key …`. */
export function keyCommand(io: StoreIo): Command {
  const key = new Command('key').description('make, list and revoke API keys');
  addCreate(key, io);
  addList(key, io);
  addRevoke(key, io);
  key.addHelpText(
    'after',
    '\nA key goes in the authorization header of every request:\n  curl -H "authorization: $TRUNKLINE_API_KEY" http://127.0.0.1:8080/sip',
  );
  return key;
}

function addCreate(parent: Command, io: StoreIo): void {
  const command = parent
    .command('create')
    .description('make an API key and print it; it is shown this once and kept nowhere')
    .argument('[org]', "the organization's id or name")
    .option('--operator', 'a key of yours in place of an organization: it reads of all of them over HTTP, and changes nothing')
    .option('--name <name>', 'what the key is for, such as "billing job"', 'default')
    .option('--json', 'print JSON')
    .action((idOrName: string | undefined, flags: Flags) =>
      withStores(command, io, async (stores) => {
        const org = await ownerOf(stores, idOrName, flags);
        const { key, record } = await stores.keys.create(org?.org_id ?? null, checkName('a key', flags.name ?? 'default'));
        await noteChange(stores, org?.org_id ?? NO_ORG, 'key.create', record.key_id, ['name']);
        printResult(
          io,
          flags,
          { key, ...record },
          key,
          `Key ${record.key_id} of ${titleOf(org)}. It will not be shown again: keep it now.`,
        );
      }),
    );
}

function addList(parent: Command, io: StoreIo): void {
  const command = parent
    .command('list')
    .description('show the keys of an organization, without the keys themselves')
    .argument('[org]', 'its id or its name')
    .option('--operator', "operators' keys in place of an organization's")
    .option('--json', 'print JSON')
    .action((idOrName: string | undefined, flags: Flags) =>
      withStores(command, io, async (stores) => {
        const org = await ownerOf(stores, idOrName, flags);
        const keys = await stores.keys.list(org?.org_id ?? null);
        const none = `There is no key of ${titleOf(org)}. Make one: trunkline key create ${org?.org_id ?? '--operator'}`;
        const rows = keys.map((one) => [one.key_id, one.name, one.created_at, one.last_used_at ?? 'never', one.revoked_at ?? '-']);
        printResult(io, flags, keys, ...(keys.length === 0 ? [none] : table(['ID', 'NAME', 'CREATED', 'LAST USED', 'REVOKED'], rows)));
      }),
    );
}

function addRevoke(parent: Command, io: StoreIo): void {
  const command = parent
    .command('revoke')
    .description('make a key invalid from now on; that cannot be undone')
    .argument('<key-id>', 'the id that "key list" shows, not the key itself')
    .option('--json', 'print JSON')
    .action((keyId: string, flags: Flags) =>
      withStores(command, io, async (stores) => {
        const record = await stores.keys.revoke(keyId);
        // Not quoted back: it may be the key itself, typed by mistake.
        if (record === null) throw new CommandFailure('there is no key with this id (trunkline key list <org> shows them)');
        await noteChange(stores, record.org_id ?? NO_ORG, 'key.revoke', record.key_id, ['revoked_at']);
        printResult(io, flags, record, `Key ${record.key_id} ("${record.name}") is revoked.`);
      }),
    );
}

/** Whose keys are meant; `null`: an operator's. */
async function ownerOf(stores: Pick<Stores, 'orgs'>, idOrName: string | undefined, { operator }: Flags): Promise<OrgRecord | null> {
  if ((idOrName === undefined) !== (operator === true)) throw new CommandFailure('give an organization, by its id or name, or --operator');
  return idOrName === undefined ? null : findOrg(stores, idOrName);
}

function titleOf(org: OrgRecord | null): string {
  return org === null ? 'the operator' : `"${org.name}"`;
}
