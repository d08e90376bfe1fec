import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { ConfigError } from '../config/layers.js';
import { PACKAGE_ROOT } from '../config/load.js';
import { nativeDirectory, packagedNativeFile, type NativeName } from '../config/native-files.js';
import type { Config } from '../config/schema.js';
import { readText } from './read-text.js';

const SOURCES = join(PACKAGE_ROOT, 'native');
const BUILT: readonly NativeName[] = ['srtp.node', 'media-generator', 'socket-holder'];
const BUILD_TIMEOUT_MS = 600_000;

/** Whether neither the package nor the data directory has the addon for this package's sources. */
export function mustBuildNative(config: Pick<Config, 'data_dir'>): boolean {
  if (existsSync(packagedNativeFile('srtp.node'))) return false;
  const directory = nativeDirectory(config);
  return !BUILT.every((name) => existsSync(join(directory, name))) || readText(join(directory, 'sources.sha256')) !== sourcesHash();
}

/**
 * Builds the addon from the package's sources into `<data_dir>/native`. It uses Node-API and so serves every Node.js version.
 * @throws ConfigError with the compiler's last lines
 */
export async function buildNative(config: Pick<Config, 'data_dir'>): Promise<void> {
  const directory = nativeDirectory(config);
  const work = join(directory, 'work');
  rmSync(work, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  cpSync(SOURCES, work, { recursive: true });
  const require = createRequire(import.meta.url);
  const nodeGyp = join(dirname(require.resolve('node-gyp/package.json')), 'bin/node-gyp.js');
  try {
    await promisify(execFile)(process.execPath, [nodeGyp, 'rebuild', '--silent', ...nodeDirectory()], {
      cwd: work,
      // binding.gyp resolves node-addon-api from the build directory.
      env: { ...process.env, NODE_PATH: dirname(dirname(require.resolve('node-addon-api/package.json'))) },
      timeout: BUILD_TIMEOUT_MS,
      maxBuffer: 1 << 26,
    });
  } catch (error) {
    const { message, stdout = '', stderr = '' } = error as Error & { stdout?: string; stderr?: string };
    throw new ConfigError(`the SRTP addon could not be built in ${work}: ${message}\n${`${stdout}${stderr}`.slice(-4_000)}`);
  }
  for (const name of BUILT) renameSync(join(work, 'build/Release', name), join(directory, name));
  writeFileSync(join(directory, 'sources.sha256'), sourcesHash());
  rmSync(work, { recursive: true, force: true });
}

/** Headers installed with this Node.js; otherwise node-gyp downloads them. */
function nodeDirectory(): string[] {
  const prefix = resolve(process.execPath, '../..');
  return existsSync(join(prefix, 'include/node/node_api.h')) ? [`--nodedir=${prefix}`] : [];
}

function sourcesHash(): string {
  const hash = createHash('sha256');
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((file) => /\.(cc|h|gyp)$/.test(file));
  for (const file of files.sort()) hash.update(`${file}\n`).update(readFileSync(join(SOURCES, file)));
  return hash.digest('hex');
}
