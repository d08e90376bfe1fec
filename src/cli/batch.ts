import { Command, InvalidArgumentError } from 'commander';
import { checkName, CommandFailure, findOrg, noteChange, printLine, table, withStores, type CommandIo, type Connect } from './org.js';

interface Flags {
  readonly org: string;
  readonly json?: boolean;
}

interface AppendFlags {
  readonly json?: boolean;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly timestamp?: string;
}

interface LogFlags extends Flags {
  readonly take: string;
  readonly direction: string;
}

/** `trunkline batch …`. @param print where lines go; standard output unless a test reads them */
export function batchCommand(connect: Connect, print = printLine): Command {
  const io = { connect, print };
  const batch = new Command('batch').description('make batches of calls, write their logs and read them');
  addCreate(batch, io);
  addAppend(batch, io);
  addList(batch, io);
  addLogs(batch, io);
  return batch;
}

function orgFlags(command: Command): Command {
  return command.requiredOption('--org <org>', "the organization's id or name").option('--json', 'print JSON');
}

function addCreate(parent: Command, { connect, print }: CommandIo): void {
  const command = orgFlags(parent.command('create').description('make a batch and print its id').argument('<name>'));
  command.action((name: string, flags: Flags) =>
    withStores(command, connect, async (stores) => {
      const { org_id: orgId } = await findOrg(stores, flags.org);
      const made = await stores.batches.create({ orgId, name: checkName('a batch', name) });
      await noteChange(stores, orgId, 'batch.create', made.batch_id, ['name']);
      print(flags.json === true ? JSON.stringify(made) : `Batch "${made.name}" made: ${made.batch_id}`);
    }),
  );
}

function addAppend(parent: Command, { connect, print }: CommandIo): void {
  const command = parent
    .command('append')
    .description('write an entry into the log of a batch')
    .argument('<batch-id>')
    .argument('<event-type>', 'lifecycle, complete, or another one')
    .requiredOption('--payload <json>', 'what the entry says, a JSON object', objectArgument)
    .option('--timestamp <time>', 'ISO 8601; now, when left out')
    .option('--json', 'print JSON');
  command.action((batchId: string, eventType: string, { json, payload, timestamp }: AppendFlags) =>
    withStores(command, connect, async (stores) => {
      const event = { event_type: eventType, payload, ...(timestamp === undefined ? {} : { timestamp }) };
      const entry = await stores.batches.append(batchId, event);
      if (!entry.ok) throw new CommandFailure(entry.error === 'not-found' ? 'there is no batch with this id' : entry.error.message);
      print(json === true ? JSON.stringify(entry.value) : `Entry ${entry.value.id} written.`);
    }),
  );
}

function objectArgument(text: string): Readonly<Record<string, unknown>> {
  const value = parsed(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new InvalidArgumentError('must be a JSON object.');
  return value as Readonly<Record<string, unknown>>;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function addList(parent: Command, { connect, print }: CommandIo): void {
  const command = orgFlags(parent.command('list').description('show the newest batches of an organization'));
  command.action((flags: Flags) =>
    withStores(command, connect, async (stores) => {
      const batches = await stores.batches.list((await findOrg(stores, flags.org)).org_id, { take: 1000, skip: 0 });
      if (flags.json === true) {
        print(JSON.stringify(batches));
        return;
      }
      const rows = batches.map((one) => [one.batch_id, one.name, one.created_at]);
      for (const line of table(['ID', 'NAME', 'CREATED'], rows)) print(line);
    }),
  );
}

function addLogs(parent: Command, { connect, print }: CommandIo): void {
  const command = orgFlags(parent.command('logs').description('show the log of a batch').argument('<batch-id>'))
    .option('--take <n>', 'entries, 1 to 1000', '100')
    .option('--direction <order>', 'asc: oldest first, or desc', 'asc');
  command.action((batchId: string, flags: LogFlags) =>
    withStores(command, connect, async (stores) => {
      const [take, { direction }] = [Number(flags.take), flags];
      if (!Number.isInteger(take) || take < 1 || take > 1000) throw new CommandFailure('--take must be 1 to 1000');
      if (direction !== 'asc' && direction !== 'desc') throw new CommandFailure('--direction must be asc or desc');
      const { org_id: orgId } = await findOrg(stores, flags.org);
      const entries = await stores.batches.read(orgId, batchId, { take, skip: 0, direction });
      if (entries === null) throw new CommandFailure('there is no batch with this id (trunkline batch list shows them)');
      if (flags.json === true) {
        print(JSON.stringify(entries));
        return;
      }
      for (const one of entries) print(`${one.timestamp}  ${one.event_type}  ${JSON.stringify(one.payload)}`);
    }),
  );
}
