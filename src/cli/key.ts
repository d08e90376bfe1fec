import { Command } from 'commander';
import { checkName, CommandFailure, findOrg, noteChange, printLine, table, withStores, type CommandIo, type Connect } from './org.js';

interface Flags {
  readonly json?: boolean;
  readonly name?: string;
}

/** `trunkline key …`. @param print where lines go; standard output unless a test reads them */
export function keyCommand(connect: Connect, print = printLine): Command {
  const io = { connect, print };
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

function addCreate(parent: Command, { connect, print }: CommandIo): void {
  const command = parent
    .command('create')
    .description('make an API key and print it; it is shown this once and kept nowhere')
    .argument('<org>', "the organization's id or name")
    .option('--name <name>', 'what the key is for, such as "billing job"', 'default')
    .option('--json', 'print JSON')
    .action((idOrName: string, flags: Flags) =>
      withStores(command, connect, async (stores) => {
        const org = await findOrg(stores, idOrName);
        const { key, record } = await stores.keys.create(org.org_id, checkName('a key', flags.name ?? 'default'));
        await noteChange(stores, org.org_id, 'key.create', record.key_id, ['name']);
        if (flags.json === true) {
          print(JSON.stringify({ key, ...record }));
          return;
        }
        print(key);
        print(`Key ${record.key_id} of "${org.name}". It will not be shown again: keep it now.`);
      }),
    );
}

function addList(parent: Command, { connect, print }: CommandIo): void {
  const command = parent
    .command('list')
    .description('show the keys of an organization, without the keys themselves')
    .argument('<org>', 'its id or its name')
    .option('--json', 'print JSON')
    .action((idOrName: string, flags: Flags) =>
      withStores(command, connect, async (stores) => {
        const org = await findOrg(stores, idOrName);
        const keys = await stores.keys.list(org.org_id);
        if (flags.json === true) {
          print(JSON.stringify(keys));
          return;
        }
        if (keys.length === 0) {
          print(`"${org.name}" has no key. Make one: trunkline key create ${org.org_id}`);
          return;
        }
        const rows = keys.map((one) => [one.key_id, one.name, one.created_at, one.last_used_at ?? 'never', one.revoked_at ?? '-']);
        for (const line of table(['ID', 'NAME', 'CREATED', 'LAST USED', 'REVOKED'], rows)) print(line);
      }),
    );
}

function addRevoke(parent: Command, { connect, print }: CommandIo): void {
  const command = parent
    .command('revoke')
    .description('make a key invalid from now on; that cannot be undone')
    .argument('<key-id>', 'the id that "key list" shows, not the key itself')
    .option('--json', 'print JSON')
    .action((keyId: string, flags: Flags) =>
      withStores(command, connect, async (stores) => {
        const record = await stores.keys.revoke(keyId);
        // Not quoted back: it may be the key itself, typed by mistake.
        if (record === null) throw new CommandFailure('there is no key with this id (trunkline key list <org> shows them)');
        await noteChange(stores, record.org_id, 'key.revoke', record.key_id, ['revoked_at']);
        print(flags.json === true ? JSON.stringify(record) : `Key ${record.key_id} ("${record.name}") is revoked.`);
      }),
    );
}
