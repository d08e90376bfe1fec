import { resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Command } from 'commander';
import { askProcess, RELOAD_QUESTION } from '../config/process-socket.js';
import type { Config } from '../config/schema.js';
import { systemClock } from '../lib/system-clock.js';
import { createLogger } from '../observability/log/logger.js';
import { livenessOf } from '../supervisor/running-process.js';
import { runningSupervisor, Supervisor } from '../supervisor/supervisor.js';
import { CommandFailure, orFail, printLine } from './command.js';

/** What the supervisor answers to `trunkline reload`. */
export type ReloadAnswer = { readonly replaced: readonly string[] } | { readonly error: string };

const POLL_MS = 50;
const TOLD_EACH_MS = 5_000;
/** All processes, each of which may take 20 s to start and finishes calls that begin or end. */
const RELOAD_LIMIT_MS = 30 * 60_000;

/** `trunkline stop`: calls in progress may go on for calls.drain_ms, then they get BYE. */
export function stopCommand(config: () => Config): Command {
  const command = new Command('stop').description('stop what `trunkline up` started, after calls in progress have ended or calls.drain_ms');
  return command.action(() =>
    orFail(command, async () => {
      const settings = config();
      const pid = runningSupervisor(resolve(settings.data_dir));
      if (pid === null) return stopLeft(settings);
      const isThere = livenessOf(pid);
      process.kill(pid, 'SIGTERM');
      let toldMs = Date.now();
      while (isThere()) {
        await setTimeout(POLL_MS);
        if (Date.now() - toldMs < TOLD_EACH_MS) continue;
        toldMs = Date.now();
        printLine('waiting for calls in progress');
      }
      printLine('Trunkline is stopped.');
    }),
  );
}

/** Without its supervisor. */
async function stopLeft(config: Config): Promise<void> {
  const log = createLogger('cli', 'error');
  const supervisor = new Supervisor({
    config,
    configFlags: [],
    clock: systemClock,
    log,
    onReady: () => undefined,
    onDied: () => undefined,
  });
  const count = await supervisor.stopLeft();
  if (count === 0) throw new CommandFailure(`no Trunkline runs with data_dir ${resolve(config.data_dir)}`);
  printLine(`Trunkline is stopped: ${String(count)} processes ran without their supervisor.`);
}

/** `trunkline reload`: new code and settings, and calls go on. */
export function reloadCommand(config: () => Config): Command {
  const command = new Command('reload').description('replace the gateways and the SIP server by new processes; calls go on');
  return command.action(() =>
    orFail(command, async () => {
      const directory = resolve(config().data_dir);
      if (runningSupervisor(directory) === null) throw new CommandFailure(`no trunkline up runs with data_dir ${directory}`);
      const answer = (await askProcess(directory, 'supervisor', RELOAD_QUESTION, RELOAD_LIMIT_MS)) as ReloadAnswer;
      if ('error' in answer) throw new CommandFailure(answer.error);
      printLine(`replaced: ${answer.replaced.join(', ')}`);
    }),
  );
}
