import { snakeKeys } from '../lib/snake-keys.js';
import { Command } from 'commander';
import type { Config } from '../config/schema.js';
import { examine } from '../supervisor/doctor.js';
import { redisWarnings } from '../gateway/store/redis/redis-health.js';
import type { RedisStores } from '../gateway/store/redis/redis-stores.js';

/** `trunkline doctor`: finds problems on this machine, with a fix for each. Exit code 1 when there is one. */
export function doctorCommand(config: () => Config, connect: () => Promise<RedisStores>): Command {
  return new Command('doctor')
    .description('check every dependency; print each problem and its fix')
    .option('--json', 'print one JSON array')
    .action(async ({ json }: { json?: true }) => {
      const findings = await examine(config(), async () => {
        const stores = await connect();
        try {
          const [storedBytes, health] = await Promise.all([stores.storedCallBytes(), stores.health()]);
          return { ...health, storedBytes, warnings: redisWarnings(health) };
        } finally {
          await stores.close();
        }
      });
      if (json === true) console.log(JSON.stringify(snakeKeys(findings), null, 2));
      else {
        for (const { name, isFine, detail, remedy } of findings) {
          console.log(`  ${isFine ? 'ok  ' : 'FAIL'}  ${name.padEnd(38)} ${detail}`);
          if (remedy !== null) console.log(`        → ${remedy}`);
        }
      }
      if (findings.some(({ isFine }) => !isFine)) process.exitCode = 1;
    });
}
