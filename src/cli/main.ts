#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { Command } from 'commander';
import { loadConfig } from '../config/load.js';
import { sentinelOf, type Config } from '../config/schema.js';
import { packageVersion } from '../config/version.js';
import { systemClock } from '../lib/system-clock.js';
import { openRedisStores } from '../gateway/store/redis/redis-stores.js';
import { createLogger } from '../observability/log/logger.js';
import { agentCommand } from './agent.js';
import { auditCommand } from './audit.js';
import { batchCommand } from './batch.js';
import { callCommand } from './call.js';
import { callsCommand } from './calls.js';
import { completionCommand } from './completion.js';
import { doctorCommand } from './doctor.js';
import { healthCommand } from './health.js';
import { keyCommand } from './key.js';
import { loadCommand } from './load.js';
import { numberCommand } from './number.js';
import { printLine } from './command.js';
import { orgCommand } from './org.js';
import { toolCommand } from './tool.js';
import { topCommand } from './top.js';
import { traceCommand } from './trace.js';
import { webhookCommand } from './webhook.js';

interface ConfigFlags {
  readonly config?: string;
  readonly set: readonly string[];
}

const program = new Command('trunkline')
  .description('SIP inbound termination gateway for voice agents')
  .version(packageVersion())
  .option('--config <file>', 'YAML file with settings, listed in config/default.yaml (default: /etc/trunkline/config.yaml, if it exists)')
  .option(
    '--set <name=value>',
    'set one setting, such as --set sip.tls_port=5071; repeatable',
    (value, all: string[]) => [...all, value],
    [],
  )
  .showHelpAfterError()
  .addHelpText('after', '\nSettings may also come from the environment: TRUNKLINE_SIP_TLS_PORT=5071 sets sip.tls_port.');

/** Read where no other file is named: commands find the gateway that the system's service manager runs. */
const SYSTEM_CONFIG = '/etc/trunkline/config.yaml';

function configFile(): string | undefined {
  const { config: file } = program.opts<ConfigFlags>();
  return file ?? (process.env['TRUNKLINE_CONFIG'] === undefined && existsSync(SYSTEM_CONFIG) ? SYSTEM_CONFIG : undefined);
}

function config(): Config {
  return loadConfig({ file: configFile(), set: program.opts<ConfigFlags>().set, environment: process.env });
}

/** The same settings for a child process. */
function configFlags(): string[] {
  const [file, { set }] = [configFile(), program.opts<ConfigFlags>()];
  return [...(file === undefined ? [] : ['--config', file]), ...set.flatMap((setting) => ['--set', setting])];
}

const connect = async () => {
  const { redis, log } = config();
  const stores = openRedisStores({
    cluster: redis.cluster,
    sentinel: sentinelOf(redis),
    url: redis.url ?? `redis://127.0.0.1:${String(redis.port)}`,
    clock: systemClock,
    log: createLogger('cli', log.level === 'debug' ? 'debug' : 'error'),
  });
  try {
    await stores.ready();
  } catch (error) {
    // It would try for ever to connect.
    await stores.close();
    throw error;
  }
  return stores;
};

// Load only what the command needs: callers wait while a dead gateway restarts.
program
  .command('up')
  .description('start Redis, rtpengine, the SIP server and the gateway in the foreground')
  .action(async () => (await import('./up.js')).runUp(config(), configFlags()));
program
  .command('gateway')
  .description('start only the gateway; SIP server, rtpengine and Redis run elsewhere')
  .option('--worker <n/of>', 'position among gateway processes that share ports and limits; `trunkline up` sets it', '1/1')
  .action(async ({ worker }: { readonly worker: string }) => {
    const [{ runGateway }, { parseWorker }] = await Promise.all([import('./gateway.js'), import('../config/gateway-worker.js')]);
    await runGateway(config(), parseWorker(worker));
  });
program
  .command('sip-server')
  .description('start only the embedded SIP server')
  .action(async () => (await import('./sip-server.js')).runSipServer(config()));
const overStore = { connect, print: printLine };
program.addCommand(orgCommand(overStore));
program.addCommand(keyCommand(overStore));
program.addCommand(webhookCommand(overStore));
const overApi = { config, environment: process.env, print: printLine };
program.addCommand(numberCommand(overApi));
program.addCommand(agentCommand(overApi));
program.addCommand(toolCommand(overApi));
program.addCommand(batchCommand(overApi));
program.addCommand(auditCommand(overApi));
program.addCommand(callsCommand(overApi));
program.addCommand(topCommand(overApi));
program.addCommand(traceCommand(overApi));
program.addCommand(callCommand(config));
program.addCommand(loadCommand(overApi));
program.addCommand(doctorCommand(config, connect));
program.addCommand(healthCommand(config));
program.addCommand(completionCommand(() => program));

program.parseAsync().catch((error: unknown) => {
  console.error(`trunkline: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
