import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { execFile } from 'node:child_process';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from '../../../scripts/docs/generate.js';
import { testCertificates } from '../../support/certificates.js';
import { testEnvironment } from '../../support/gateway.js';
import { keepLogs } from '../../support/left-logs.js';
import { freePorts } from '../../support/ports.js';
import { processesOf, signalAll } from '../../support/processes.js';
import { runSipp, tunnelTo } from '../../support/sipp.js';
import { until } from '../../support/carrier-call.js';
import { Reader, stepsOf } from '../../support/tutorial.js';

// The commands of docs/getting-started.md, as they stand but for ports. What they clone is the last commit. Three things that only the world has
// are replaced: the name in the DNS by `localhost`, the public CA by the one of the tests, and the carrier by SIPp.

const PAGE = await readFile(`${ROOT}docs/getting-started.md`, 'utf8');
const NUMBER = '+15550100200';
/** Of npm, which fetches packages in the first step. */
const INSTALL_TIMEOUT_MS = 600_000;

/** The page's address of the repository leads to this checkout; npm asks nobody about packages that it has. */
const CLONE = {
  GIT_CONFIG_COUNT: '2',
  GIT_CONFIG_KEY_0: `url.${ROOT}.insteadOf`,
  GIT_CONFIG_VALUE_0: 'https://git.example.com/trunkline.git',
  GIT_CONFIG_KEY_1: 'safe.directory',
  GIT_CONFIG_VALUE_1: '*',
  npm_config_prefer_offline: 'true',
  npm_config_update_notifier: 'false',
};

/** Gives a new clone what its first start would fetch and build for minutes. The start builds anew what differs from this checkout. */
async function fill(clone: string): Promise<void> {
  if (existsSync(join(clone, 'node_modules'))) return;
  const copy = (how: string, path: string): Promise<unknown> => promisify(execFile)('cp', [how, path, join(clone, path)]);
  // Links do not work between file systems.
  await copy('-al', 'node_modules').catch(() => copy('-a', 'node_modules'));
  for (const path of ['dist', 'native/build', 'src/client/types.ts']) await copy('-a', path);
}

describe('docs/getting-started.md, for a bot on the own computer,', () => {
  const steps = stepsOf(PAGE, 'Test your bot on your own computer');
  let directory: string;
  let reader: Reader;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'trunkline-first-hour-'));
    const [port] = await freePorts(1);
    reader = new Reader(directory, CLONE, (text) => text.replaceAll('9000', String(port)), '', {});
  });

  afterAll(async () => {
    await reader.close();
    await rm(directory, { recursive: true, force: true });
  });

  it('has five steps', () => {
    expect(steps.map(({ actions }) => actions.length)).toEqual([1, 1, 1, 1, 0]);
  });

  it.each(steps.map((step) => [step.title, step] as const))(
    'shows what its commands print: %s',
    async (_title, step) => {
      await reader.take(step);
    },
    INSTALL_TIMEOUT_MS,
  );
});

describe('docs/getting-started.md, for a machine on the internet,', () => {
  const steps = stepsOf(PAGE, "From an empty machine to a carrier's first call");
  let directory: string;
  let dataDir: string;
  let lock: Server;
  let reader: Reader;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'trunkline-first-hour-'));
    dataDir = join(directory, 'trunkline/.trunkline');
    const made = await testEnvironment(directory);
    ({ lock } = made);
    const [botPort] = await freePorts(1);
    const { caFile } = await testCertificates();
    const { TRUNKLINE_SIP_TLS_PORT: sipPort = '', TRUNKLINE_HTTP_PORT: httpPort = '' } = made.environment;
    const environment = {
      ...CLONE,
      ...made.environment,
      TRUNKLINE_DATA_DIR: dataDir,
      // Loopback, where the page means the machine's public address.
      TRUNKLINE_BIND_ADDRESS: '127.0.0.1',
      // The CAs that everybody knows.
      NODE_EXTRA_CA_CERTS: caFile,
      SSL_CERT_FILE: caFile,
    };
    const adapt = (text: string): string =>
      text
        .replaceAll(':5061', `:${sipPort}`)
        .replaceAll(':8080', `:${httpPort}`)
        .replaceAll('9000', String(botPort))
        .replaceAll('sip.example.com', 'localhost');
    const yours = `export SIP_HOST=localhost ADDRESS=127.0.0.1 NUMBER=${NUMBER} CARRIER=127.0.0.0/8`;
    const world = {
      DNS: () => Promise.resolve(),
      certificate: async () => {
        const folder = join(await reader.workingDirectory(), 'certificate');
        await mkdir(folder);
        await cp(`${ROOT}test/fixtures/tls/cert.pem`, join(folder, 'fullchain.pem'));
        await cp(`${ROOT}test/fixtures/tls/key.pem`, join(folder, 'privkey.pem'));
      },
      carrier: async () => {
        const tunnel = await tunnelTo(Number(sipPort), caFile);
        const { code, output } = await runSipp(tunnel, 'answered', NUMBER, 1, 1);
        await tunnel.close();
        expect(code, output.slice(-3_000)).toBe(0);
      },
    };
    reader = new Reader(directory, environment, adapt, yours, world, async () => fill(await reader.workingDirectory()));
  });

  afterAll(async () => {
    await reader.close();
    await keepLogs(dataDir);
    signalAll(dataDir, 'SIGKILL');
    await until(() => processesOf(dataDir).length === 0, 'a process of the gateway is still there');
    await new Promise((done) => lock.close(done));
    await rm(directory, { recursive: true, force: true });
  });

  it('has eleven steps, of which three need the world', () => {
    expect(steps).toHaveLength(11);
    const world = steps.flatMap(({ actions }) => actions.filter(({ kind }) => kind === 'world').map(({ name }) => name));
    expect(world).toEqual(['DNS', 'certificate', 'carrier']);
  });

  it.each(steps.map((step) => [step.title, step] as const))(
    'shows what its commands print: %s',
    async (_title, step) => {
      await reader.take(step);
    },
    INSTALL_TIMEOUT_MS,
  );
});
