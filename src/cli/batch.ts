import { Command, InvalidArgumentError } from 'commander';
import type { Schemas } from '../client/index.js';
import { overApi, queryOf, type ApiFlags, type ApiIo } from './api.js';
import { readFile } from 'node:fs/promises';
import { errorText } from '../lib/result.js';
import { CommandFailure, parsedJson, printResult, table, whole } from './command.js';

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
  addDial(batch, io);
  for (const [action, what] of ACTIONS)
    overApi(batch.command(`${action} <batch-id>`).description(what), io, async (api, flags: ApiFlags, batch_id: string) => {
      const { data } = await api.POST(`/v2/batches/{batch_id}/${action}`, { params: { path: { batch_id } }, body: {} });
      printResult(io, flags, data, `Batch ${batch_id}: ${String(data.state)}`);
    });
  overApi(batch.command('show <batch-id>').description('show how far a batch is'), io, async (api, flags: ApiFlags, batch_id: string) => {
    const { data } = await api.GET('/v2/batches/{batch_id}', { params: { path: { batch_id } } });
    const counts = Object.entries(data.counts ?? {}).map(([name, value]) => [name, String(value)]);
    printResult(io, flags, data, `${data.name}: ${data.state ?? 'a log only'}`, ...table(['COUNT', 'VALUE'], counts));
  });
  overApi(batch.command('list').description('show the newest batches of an organization'), io, async (api, flags: ApiFlags) => {
    const { data } = await api.GET('/v2/batches', { params: { query: { take: 1_000 } } });
    const rows = data.map((one) => [one.batch_id, one.name, one.created_at]);
    printResult(io, flags, data, ...table(['ID', 'NAME', 'CREATED'], rows));
  });
  const logs = batch.command('logs <batch-id>').description('show the log of a batch');
  overApi(logs, io, async (api, flags: LogFlags, batch_id: string) => {
    // The API says which directions there are.
    const query = { take: Number(flags.take), direction: flags.direction as 'asc' };
    const { data } = await api.GET('/v2/batches/{batch_id}/logs', { params: { path: { batch_id }, query } });
    printResult(io, flags, data, ...data.map((one) => `${one.timestamp}  ${one.event_type}  ${JSON.stringify(one.payload)}`));
  })
    .option('--take <n>', 'entries, 1 to 1000', '100')
    .option('--direction <order>', 'asc: oldest first, or desc', 'asc');
  return batch;
}

const ACTIONS = [
  ['start', 'dial the numbers of a batch that is ready'],
  ['pause', 'begin no more calls for now'],
  ['resume', 'go on with a paused batch'],
  ['stop', 'begin no more calls, for good'],
] as const;

interface DialFlags extends ApiFlags {
  readonly from: string;
  readonly csv: string;
  readonly start?: boolean;
  readonly agent?: string;
  readonly callsPerSecond?: number;
  readonly maxConcurrentCalls?: number;
  readonly options?: Record<string, unknown>;
}

function addDial(batch: Command, io: ApiIo): void {
  const dial = batch.command('dial <name>').description('show what would be dialled of a CSV file (docs/batches.md); batch start dials it');
  overApi(dial, io, async (api, flags: DialFlags, name: string) => {
    const { from, agent, callsPerSecond, maxConcurrentCalls, options } = flags;
    const csv = await readFile(flags.csv, 'utf8').catch((error: unknown) => {
      throw new CommandFailure(`${flags.csv}: ${errorText(error)}`);
    });
    const body = {
      name,
      from,
      csv,
      start: flags.start === true,
      ...(agent === undefined ? {} : { agent_id: agent }),
      ...(callsPerSecond === undefined ? {} : { calls_per_second: callsPerSecond }),
      ...(maxConcurrentCalls === undefined ? {} : { max_concurrent_calls: maxConcurrentCalls }),
      ...options,
    };
    const { data } = await api.POST('/v2/batches', { params: {}, body });
    printResult(io, flags, data, ...previewLines(data));
    if (flags.start === true && data.state === 'ready')
      throw new CommandFailure(`Nothing is dialled: rows are refused. To dial the others: trunkline batch start ${data.batch_id}`);
  })
    .requiredOption('--from <number>', 'a number of yours that is attached for outbound calls')
    .requiredOption('--csv <file>', 'a column phone_number; if wanted time_zone, and others for the agent')
    .option('--start', 'dial at once, if no row is refused')
    .option('--agent <id>', "the agent (default: the operator's)")
    .option('--calls-per-second <n>', 'on all gateways together, 1 to 100 (default: 1)', whole(1, 100))
    .option('--max-concurrent-calls <n>', '1 to 1000 (default: 10)', whole(1, 1_000))
    .option('--options <json>', 'further fields of POST /v2/batches: hours, retries, do_not_call_digit, …', objectArgument);
}

/** What would be dialled, and every row that is not. */
function previewLines({ name, batch_id: id, state, counts, preview, refused_rows: rows }: Schemas['CreatedBatch']): readonly string[] {
  const { validated = 0, requested = 0 } = counts ?? {};
  const {
    refused = 0,
    callable_now: now = 0,
    callable_later: later = 0,
    first_call_at: first = null,
    reserved_cost: cost = 0,
  } = preview ?? {};
  const hours = `${String(now)} may be called now, ${String(later)} later${first === null ? '' : `, the first at ${first}`}`;
  return [
    `Batch "${name}": ${id}, ${(state ?? '').replace('_', ' ')}`,
    `${String(validated)} of ${String(requested)} rows are numbers to dial; ${hours}`,
    `A call to each reserves up to ${cost.toFixed(2)} in the operator's currency`,
    ...(rows.length === 0
      ? []
      : table(
          ['REFUSED ROW', 'NUMBER', 'REASON', 'WHY'],
          rows.map(({ row, phone_number: number, reason, message }) => [String(row), number, reason, message]),
        )),
    ...(refused > rows.length ? [`… and ${String(refused - rows.length)} more`] : []),
    ...(state === 'failed' ? [] : [`Next: trunkline batch ${state === 'ready' ? 'start' : 'show'} ${id}`]),
  ];
}

function objectArgument(text: string): Record<string, unknown> {
  const value = parsedJson(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new InvalidArgumentError('must be a JSON object.');
  return value as Record<string, unknown>;
}
