import { Command, InvalidArgumentError } from 'commander';
import { apiFlags, queryOf, withApi, type ApiFlags, type ApiIo } from './api.js';
import { parsedJson, printResult, table } from './command.js';

interface AppendFlags extends ApiFlags {
  readonly payload: Record<string, unknown>;
  readonly timestamp?: string;
}

interface LogFlags extends ApiFlags {
  readonly take: string;
  readonly direction: string;
}

/** `trunkline batch …`: the /v2/batches routes. */
export function batchCommand(io: ApiIo): Command {
  const batch = new Command('batch').description('create batches of calls, write and read their logs, over the control API');
  const create = apiFlags(batch.command('create').description('create a batch and print its id').argument('<name>'));
  create.action((name: string, flags: ApiFlags) =>
    withApi(create, io, flags, async (api) => {
      const { data } = await api.POST('/v2/batches', { body: { name } });
      printResult(io, flags, data, `Created batch "${data.name}": ${data.batch_id}`);
    }),
  );
  const append = apiFlags(batch.command('append').description("write an entry to a batch's log"))
    .argument('<batch-id>')
    .argument('<event-type>', 'lifecycle, complete, or your own')
    .requiredOption('--payload <json>', "the entry's content, a JSON object", objectArgument)
    .option('--timestamp <time>', 'ISO 8601 (default: now)');
  append.action((batchId: string, eventType: string, flags: AppendFlags) =>
    withApi(append, io, flags, async (api) => {
      const { payload, timestamp } = flags;
      const body = { event_type: eventType, payload, ...queryOf({ timestamp }) };
      const { data } = await api.POST('/v2/batches/{batch_id}/logs', { params: { path: { batch_id: batchId } }, body });
      printResult(io, flags, data, `Wrote entry ${data.id}.`);
    }),
  );
  const list = apiFlags(batch.command('list').description('show the newest batches of an organization'));
  list.action((flags: ApiFlags) =>
    withApi(list, io, flags, async (api) => {
      const { data } = await api.GET('/v2/batches', { params: { query: { take: '1000' } } });
      const rows = data.map((one) => [one.batch_id, one.name, one.created_at]);
      printResult(io, flags, data, ...table(['ID', 'NAME', 'CREATED'], rows));
    }),
  );
  const logs = apiFlags(batch.command('logs').description('show the log of a batch').argument('<batch-id>'))
    .option('--take <n>', 'entries, 1 to 1000', '100')
    .option('--direction <order>', 'asc: oldest first, or desc', 'asc');
  logs.action((batchId: string, flags: LogFlags) =>
    withApi(logs, io, flags, async (api) => {
      // The API says which directions there are.
      const query = { take: flags.take, direction: flags.direction as 'asc' };
      const { data } = await api.GET('/v2/batches/{batch_id}/logs', { params: { path: { batch_id: batchId }, query } });
      printResult(io, flags, data, ...data.map((one) => `${one.timestamp}  ${one.event_type}  ${JSON.stringify(one.payload)}`));
    }),
  );
  return batch;
}

function objectArgument(text: string): Record<string, unknown> {
  const value = parsedJson(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new InvalidArgumentError('must be a JSON object.');
  return value as Record<string, unknown>;
}
