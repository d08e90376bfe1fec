import { Command } from 'commander';
import { CommandFailure, findOrg, printLine, table, withStores, type Connect } from './org.js';

interface Flags {
  readonly org: string;
  readonly json?: boolean;
  readonly limit: string;
}

const MAX_LIMIT = 1000;

/** `trunkline audit …`. @param print where lines go; standard output unless a test reads them */
export function auditCommand(connect: Connect, print = printLine): Command {
  const audit = new Command('audit').description('who changed what, over the API and at the command line');
  const list = audit
    .command('list')
    .description('show the newest changes of an organization')
    .requiredOption('--org <org>', "the organization's id or name")
    .option('--limit <n>', '1 to 1000', '50')
    .option('--json', 'print JSON');
  list.action((flags: Flags) =>
    withStores(list, connect, async (stores) => {
      const take = Number(flags.limit);
      if (!Number.isInteger(take) || take < 1 || take > MAX_LIMIT) throw new CommandFailure(`--limit must be 1 to ${String(MAX_LIMIT)}`);
      const entries = await stores.audit.list((await findOrg(stores, flags.org)).org_id, { take });
      if (flags.json === true) {
        print(JSON.stringify(entries));
        return;
      }
      const rows = entries.map(({ at, by, action, record, fields }) => [at, by.name, action, record, fields.join(', ')]);
      for (const line of table(['AT', 'BY', 'WHAT', 'RECORD', 'FIELDS'], rows)) print(line);
    }),
  );
  return audit;
}
