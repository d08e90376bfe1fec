import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { childrenOf, openFiles, type ChildName } from '../support/processes.js';
import type { MachineFaults } from './preload.js';
import { lastPid } from './process-faults.js';
import type { Fault } from './run-fault.js';
import type { World } from './world.js';

// Faults of the machine: disk, clock, name service, file handles, memory.

const LASTS_MS = 5_000;
const HOUR_S = 3_600;
/** What a process has open more than it needs at rest. */
const SPARE_FILES = 2;

function preloaded(name: string, title: string, process: ChildName, faults: MachineFaults, more: Partial<Fault> = {}): Fault {
  return {
    name,
    title,
    world: 'two gateways',
    lastsMs: LASTS_MS,
    inject: (world) => world.faults?.set(process, faults),
    heal: (world) => world.faults?.set(process, {}),
    ...more,
  };
}

function clock(name: ChildName, title: string): Fault[] {
  return [
    preloaded(`clock-forward-${name}`, `clock of ${title}: an hour forwards, and back after 5 s`, name, { clockSeconds: HOUR_S }),
    preloaded(`clock-back-${name}`, `clock of ${title}: an hour back, and right again after 5 s`, name, { clockSeconds: -HOUR_S }),
  ];
}

/** The soft limit only: lowering the hard one could not be undone without rights. */
function limitFiles(world: World, name: ChildName, limit: (pid: number) => string): void {
  for (const { pid } of childrenOf(world.gateway.ready.pid).filter((child) => child.name === name))
    execFileSync('prlimit', ['--pid', String(pid), `--nofile=${limit(pid)}:`]);
}

function fewFiles(name: ChildName, title: string): Fault {
  return {
    name: `file-handles-${name}`,
    title: `file handles of ${title} run out for 5 s`,
    world: 'two gateways',
    lastsMs: LASTS_MS,
    inject: (world) => limitFiles(world, name, (pid) => String(openFiles(pid) + SPARE_FILES)),
    heal: (world) => limitFiles(world, name, () => '4096'),
  };
}

const BALLAST = { NODE_OPTIONS: `--require ${resolve('test/faults/ballast.cjs')} --max-old-space-size=192` };
const signal = (name: ChildName) => (world: World) => void process.kill(lastPid(world, name), 'SIGUSR2');

export const MACHINE_FAULTS: readonly Fault[] = [
  preloaded('disk-full-redis', 'disk full for 5 s: Redis’ append-only file', 'redis-server', { isDiskFull: true }),
  preloaded('disk-full-gateway', 'disk full for 5 s: logs of the gateways', 'gateway', { isDiskFull: true }),
  preloaded('disk-full-sip-server', 'disk full for 5 s: log of the SIP server', 'sip-server', { isDiskFull: true }),
  ...clock('gateway', 'the gateways'),
  ...clock('sip-server', 'the SIP server'),
  ...clock('redis-server', 'Redis'),
  fewFiles('gateway', 'the gateways'),
  fewFiles('sip-server', 'the SIP server'),
  preloaded('dns-gone', 'no answer from the DNS for 5 s, agent by name', 'gateway', { isDnsGone: true }, { world: 'proxies' }),
  {
    name: 'memory-sip-server',
    title: 'SIP server above sip.max_memory_mb for 5 s',
    world: 'two gateways',
    settings: { ...BALLAST, TRUNKLINE_SIP_MAX_MEMORY_MB: '350' },
    lastsMs: LASTS_MS,
    inject: signal('sip-server'),
    heal: signal('sip-server'),
  },
  {
    name: 'memory-gateway',
    title: 'heap of one of two gateways runs out',
    world: 'two gateways',
    settings: BALLAST,
    // It takes a moment to fill.
    lastsMs: LASTS_MS,
    inject: signal('gateway'),
    excused: { 'every call has its record': 'what it answered while it stood still, just before it died, is not kept yet' },
  },
];

/** A place for certificates that a fault puts others in. */
export function certificateFault(good: CertificateFiles, expired: CertificateFiles, ca: string): Fault {
  const directory = mkdtempSync(join(tmpdir(), 'trunkline-faults-tls-'));
  const [certFile, keyFile] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  const install = (files: CertificateFiles) => {
    copyFileSync(files.keyFile, keyFile);
    copyFileSync(files.certFile, certFile);
  };
  install(good);
  const put = (files: CertificateFiles) => (world: World) => {
    install(files);
    process.kill(world.gateway.ready.pid, 'SIGHUP');
  };
  return {
    name: 'certificate-expired',
    title: 'certificate of the SIP server has expired, another one after 5 s',
    world: 'two gateways',
    settings: { TRUNKLINE_SIP_CERT_FILE: certFile, TRUNKLINE_SIP_KEY_FILE: keyFile },
    ca,
    lastsMs: LASTS_MS,
    inject: put(expired),
    heal: put(good),
  };
}

interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}
