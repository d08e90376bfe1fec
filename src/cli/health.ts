import { Command } from 'commander';
import { request } from 'undici';
import { z } from 'zod';
import { httpAddress, type Config } from '../config/schema.js';
import { formatHostPort } from '../lib/address.js';
import { printLine } from './command.js';

const LIMIT_MS = 2_000;

const answerSchema = z.object({ message: z.string() });

/** `trunkline health`: for a health check; exit code 0 when the gateway can take calls. */
export function healthCommand(config: () => Pick<Config, 'bind_address' | 'http'>, print = printLine): Command {
  return new Command('health')
    .description('check whether the gateway of this machine can take calls; exit code 0: it can')
    .option('--json', "print the gateway's answer")
    .action(async ({ json }: { readonly json?: true }) => {
      const settings = config();
      const url = `http://${formatHostPort(httpAddress(settings), settings.http.port)}/readyz`;
      const { statusCode, body } = await request(url, { signal: AbortSignal.timeout(LIMIT_MS) }).catch((error: unknown) => {
        throw new Error(`no gateway answers at ${url} (http.bind_address, http.port)`, { cause: error });
      });
      const answer = await body.json().catch(() => null);
      if (json === true) print(JSON.stringify(answer));
      if (statusCode !== 200) throw new Error(answerSchema.safeParse(answer).data?.message ?? `${url} answered ${String(statusCode)}`);
      if (json !== true) print('the gateway accepts calls');
    });
}
