import type { Command } from 'commander';
import { sentinelOf, type Config } from '../config/schema.js';
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
import { reloadCommand, stopCommand } from './stop.js';
import { simulateCommand } from './simulate.js';
import { orgCommand } from './org.js';
import { toolCommand } from './tool.js';
import { topCommand } from './top.js';
import { traceCommand } from './trace.js';
import { webhookCommand } from './webhook.js';

/** Adds every command that is no service of its own. @param config the settings, read when a command needs them */
export function addCommands(program: Command, config: () => Config): void {
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
  const overStore = { connect, print: printLine };
  program.addCommand(orgCommand(overStore));
  program.addCommand(keyCommand(overStore));
  program.addCommand(webhookCommand(overStore));
  const organizations = async () => {
    const stores = await connect();
    try {
      return await stores.orgs.list();
    } finally {
      await stores.close();
    }
  };
  const overApi = { config, environment: process.env, print: printLine, organizations };
  program.addCommand(numberCommand(overApi));
  program.addCommand(agentCommand(overApi));
  program.addCommand(toolCommand(overApi));
  program.addCommand(batchCommand(overApi));
  program.addCommand(auditCommand(overApi));
  program.addCommand(callsCommand(overApi));
  program.addCommand(topCommand(overApi));
  program.addCommand(traceCommand(overApi));
  program.addCommand(callCommand(config));
  program.addCommand(simulateCommand(overApi));
  program.addCommand(loadCommand(overApi));
  program.addCommand(reloadCommand(config));
  program.addCommand(stopCommand(config));
  program.addCommand(doctorCommand(config, connect));
  program.addCommand(healthCommand(config));
  program.addCommand(completionCommand(() => program));
}
