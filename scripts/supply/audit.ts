import { spawnSync } from 'node:child_process';
import { auditVerdict } from './audit-verdict.js';

// Whether the registry knows of faults in the packages of production. Exit codes: 0 no high or critical ones, 1 some, 3 not audited.

const LIMIT_MS = 20_000;
const ARGS = ['audit', '--omit=dev', '--json', '--fetch-retries=0'];

const { stdout } = spawnSync('npm', ARGS, { encoding: 'utf8', timeout: LIMIT_MS, killSignal: 'SIGKILL', maxBuffer: 32 << 20 });
const verdict = auditVerdict(stdout);
if (verdict.kind === 'clean') {
  console.log(verdict.lesser === 0 ? 'no known faults' : `no high or critical faults, ${String(verdict.lesser)} lesser ones`);
} else if (verdict.kind === 'vulnerable') {
  console.log(verdict.packages.join('\n'));
  process.exitCode = 1;
} else {
  console.log(`not audited: ${verdict.why}`);
  process.exitCode = 3;
}
