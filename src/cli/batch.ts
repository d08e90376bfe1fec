import { Command, InvalidArgumentError } from 'commander';
import { overApi, queryOf, type ApiFlags, type ApiIo } from './api.js';
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
  overApi(batch.command('create <name>').description('create a batch and print its id'), io, async (api, flags: ApiFlags, name: string) => {
    const { data } = await api.POST('/v2/batches', { body: { name } });
    printResult(io, flags, data, `Created batch "${data.name}": ${data.batch_id}`);
  });
  const append = batch
    .command('append <batch-id>')
    .description("write an entry to a batch's log")
    .argument('<event-type>', 'lifecycle, complete, or your own');
  overApi(append, io, async (api, flags: AppendFlags, batch_id: string, event_type: string) => {
    const { payload, timestamp } = flags;
    const body = { event_type, payload, ...queryOf({ timestamp }) };
    const { data } = await api.POST('/v2/batches/{batch_id}/logs', { params: { path: { batch_id } }, body });
    printResult(io, flags, data, `Wrote entry ${data.id}.`);
  })
    .requiredOption('--payload <json>', "the entry's content, a JSON object", objectArgument)
    .option('--timestamp <time>', 'ISO 8601 (default: now)');
  overApi(batch.command('list').description('show the newest batches of an organization'), io, async (api, flags: ApiFlags) => {
    const { data } = await api.GET('/v2/batches', { params: { query: { take: '1000' } } });
    const rows = data.map((one) => [one.batch_id, one.name, one.created_at]);
    printResult(io, flags, data, ...table(['ID', 'NAME', 'CREATED'], rows));
  });
  const logs = batch.command('logs <batch-id>').description('show the log of a batch');
  overApi(logs, io, async (api, flags: LogFlags, batch_id: string) => {
    // The API says which directions there are.
    const query = { take: flags.take, direction: flags.direction as 'asc' };
    const { data } = await api.GET('/v2/batches/{batch_id}/logs', { params: { path: { batch_id }, query } });
    printResult(io, flags, data, ...data.map((one) => `${one.timestamp}  ${one.event_type}  ${JSON.stringify(one.payload)}`));
  })
    .option('--take <n>', 'entries, 1 to 1000', '100')
    .option('--direction <order>', 'asc: oldest first, or desc', 'asc');
  return batch;
}

function objectArgument(text: string): Record<string, unknown> {
  const value = parsedJson(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new InvalidArgumentError('must be a JSON object.');
  return value as Record<string, unknown>;
}
