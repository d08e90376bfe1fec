import { Command } from 'commander';
import { CommandFailure, findOrg, noteChange, overStores, printResult, table, type JsonFlag, type StoreIo } from './command.js';

const MAX_LIMIT = 500;

/** `trunkline webhook …`. */
export function webhookCommand(io: StoreIo): Command {
  const webhook = new Command('webhook').description('list and redeliver webhooks that were given up');
  const dead = webhook
    .command('dead')
    .description("list an organization's given-up webhooks, newest first")
    .argument('<org>', 'its id or its name')
    .option('--limit <n>', `1 to ${String(MAX_LIMIT)}`, '50')
    .option('--json', 'print JSON');
  overStores(dead, io, async (stores, flags: JsonFlag & { readonly limit: string }, idOrName: string) => {
    const limit = Number(flags.limit);
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) throw new CommandFailure(`--limit must be 1 to ${String(MAX_LIMIT)}`);
    const org = await findOrg(stores, idOrName);
    const { letters } = await stores.outbox.dead(org.org_id, limit, null);
    const none = `"${org.name}" has no dead letters: every webhook was delivered, or is being retried.`;
    const rows = letters.map((one) => [one.delivery_id, one.died_at, String(one.attempts), one.last_error ?? '-', one.url]);
    const lines = letters.length === 0 ? [none] : table(['DELIVERY', 'GIVEN UP', 'ATTEMPTS', 'LAST ERROR', 'URL'], rows);
    printResult(io, flags, letters, ...lines);
  });
  const resend = webhook
    .command('resend')
    .description('redeliver given-up webhooks')
    .argument('<org>', 'its id or its name')
    .argument('<delivery-id...>', 'ids from "webhook dead"');
  overStores(resend, io, async (stores, _flags, idOrName: string, ids: readonly string[]) => {
    const org = await findOrg(stores, idOrName);
    const missing: string[] = [];
    for (const id of ids) {
      if (await stores.outbox.revive(org.org_id, id.toLowerCase())) {
        await noteChange(stores, org.org_id, 'webhook.resend', id.toLowerCase());
        io.print(`Delivery ${id} is sent again.`);
      } else missing.push(id);
    }
    if (missing.length > 0)
      throw new CommandFailure(`no such dead letter: ${missing.join(', ')} (trunkline webhook dead <org> shows them)`);
  });
  return webhook;
}
