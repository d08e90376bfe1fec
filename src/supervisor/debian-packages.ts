import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '../config/load.js';
import type { Config } from '../config/schema.js';

const SCRIPTS = join(PACKAGE_ROOT, 'scripts');
/** For the SRTP addon. */
export const BUILD_PACKAGES: readonly string[] = ['libsrtp2-dev', 'g++', 'make', 'python3', 'pkg-config'];

/** The Debian packages without which `trunkline up` cannot start with these settings. */
export function packagesOf({ redis, rtpengine, drachtio, sip }: Config, mustBuild: boolean): string[] {
  const makesCertificate = drachtio.url === null && sip.tls_port !== null && sip.cert_file === null;
  return [
    ...(redis.url === null ? ['redis-server'] : []),
    ...(rtpengine.address === null ? ['rtpengine-daemon'] : []),
    ...(makesCertificate ? ['openssl'] : []),
    ...(mustBuild ? BUILD_PACKAGES : []),
  ];
}

/** Those whose program or library is not on this machine, whoever would have installed it. */
export async function missingPackages(packages: readonly string[]): Promise<string[]> {
  const library = join(SCRIPTS, 'lib.sh');
  // An image that leaves the scripts out holds what it needs.
  if (!existsSync(library)) return [];
  const { stdout } = await promisify(execFile)('bash', ['-c', '. "$0" && missing_packages "$@"', library, ...packages]);
  return stdout.split(' ').filter((name) => name !== '');
}

/** One command for a shell. It leaves the services of the packages off. */
export function installCommand(packages: readonly string[]): string {
  return `sudo ${join(SCRIPTS, 'install-packages')} ${packages.join(' ')}`;
}

/** For a person: what is missing and how to install it. */
export function missingText(packages: readonly string[]): string {
  return `missing on this machine: ${packages.join(', ')} (names of Debian's packages). Install them, then start again:\n\n  ${installCommand(packages)}\n`;
}
