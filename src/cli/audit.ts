import { Command } from 'commander';
import { overApi, type ApiFlags, type ApiIo } from './api.js';
import { printResult, table } from './command.js';

/** `trunkline audit …`: GET /v1/audit. */
export function auditCommand(io: ApiIo): Command {
  const audit = new Command('audit').description('list who changed what, over the API or the command line');
  const list = audit.command('list').description('show the newest changes of an organization');
  overApi(list, io, async (api, flags: ApiFlags & { readonly limit: string }) => {
    const { entries } = await api.GET('/v1/audit', { params: { query: { take: Number(flags.limit) } } });
    const rows = entries.map(({ at, by, action, record, fields }) => [at, by.name, action, record, fields.join(', ')]);
    printResult(io, flags, entries, ...table(['AT', 'BY', 'WHAT', 'RECORD', 'FIELDS'], rows));
  }).option('--limit <n>', '1 to 1000', '50');
  return audit;
}
