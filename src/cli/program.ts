import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command, Option } from 'commander';
import { loadConfig } from '../config/load.js';
import { nativeFile, packagedNativeFile } from '../config/native-files.js';
import type { Config } from '../config/schema.js';
import { packageVersion } from '../config/version.js';
import type { StartedWith } from './ready.js';

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

function config(given: { readonly file: string | undefined; readonly set: readonly string[] } = givenConfig()): Config {
  const loaded = loadConfig({ ...given, set: [...given.set], environment: process.env });
  // For this process, its threads and its children: an installed package has no addon beside it.
  const addon = nativeFile(loaded, 'srtp.node');
  if (addon !== packagedNativeFile('srtp.node')) process.env['TRUNKLINE_SRTP_ADDON'] ??= addon;
  return loaded;
}

function givenConfig(): { readonly file: string | undefined; readonly set: readonly string[] } {
  return { file: configFile(), set: program.opts<ConfigFlags>().set };
}

/** For commands on a running product: its settings, unless others are given here. */
function runningConfig(given: () => StartedWith | null): Config {
  const { config: file, set } = program.opts<ConfigFlags>();
  const started = file === undefined && set.length === 0 ? given() : null;
  return started === null ? config() : config({ file: started.config ?? undefined, set: started.set });
}

/** For commands, from whatever directory. */
function startedWith(): StartedWith {
  const { file, set } = givenConfig();
  return { config: file === undefined ? null : resolve(file), set };
}

/** The same settings for a child process. */
function configFlags(): string[] {
  const [file, { set }] = [configFile(), program.opts<ConfigFlags>()];
  return [...(file === undefined ? [] : ['--config', file]), ...set.flatMap((setting) => ['--set', setting])];
}

interface GatewayFlags {
  readonly worker?: string;
  readonly succeeds?: string;
  readonly retired?: true;
  readonly after?: number;
}

/** How a successor is loaded before its predecessor ends. */
function after(): Option {
  return new Option('--after <pid>', 'load everything, then start when this process has ended').argParser(Number).hideHelp();
}

// Load only what the command needs: callers wait while a dead gateway restarts.
program
  .command('up')
  .description('start Redis, rtpengine, the SIP server and the gateway in the foreground')
  .action(async () => (await import('./up.js')).runUp(config(), configFlags(), startedWith()));
program
  .command('gateway')
  .description('start only the gateway; SIP server, rtpengine and Redis run elsewhere')
  .option('--worker <n/of>', 'position among gateway processes that share ports and limits; `trunkline up` sets it')
  .addOption(new Option('--succeeds <name>', 'take new calls in place of this process').hideHelp())
  .addOption(new Option('--retired', 'only go on with calls that an earlier process left, and end').hideHelp())
  .addOption(after())
  .action(async ({ worker, succeeds: predecessor, retired: isRetired, after: pid }: GatewayFlags) => {
    const [{ runGateway }, { parseWorker }] = await Promise.all([import('./gateway.js'), import('../config/gateway-worker.js')]);
    await runGateway(config(), worker === undefined ? null : { ...parseWorker(worker), predecessor, isRetired }, pid ?? null);
  });
program
  .command('sip-server')
  .description('start only the embedded SIP server')
  .addOption(new Option('--cell <n/of>', 'position among SIP servers that share the calls of their sockets').hideHelp())
  .addOption(after())
  .action(async ({ cell = '1/1', after: pid }: { readonly cell?: string; readonly after?: number }) => {
    const [{ runSipServer }, { parseWorker }] = await Promise.all([import('./sip-server.js'), import('../config/gateway-worker.js')]);
    await runSipServer(config(), parseWorker(cell), pid ?? null);
  });
// A service starts at once: it does not load what the other commands need.
if (!['up', 'gateway', 'sip-server'].includes(process.argv[2] ?? '')) {
  const [{ addCommands }, ready] = await Promise.all([import('./commands.js'), import('./ready.js')]);
  addCommands(program, () => runningConfig(() => ready.startedWith(config())));
}

program.parseAsync().catch((error: unknown) => {
  console.error(`trunkline: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
