import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '../config/load.js';
import type { Config } from '../config/schema.js';

const SCRIPTS = join(PACKAGE_ROOT, 'scripts');
/** For the SRTP addon. */
export const BUILD_PACKAGES: readonly string[] = ['libsrtp2-dev', 'g++', 'make', 'python3', 'pkg-config'];

/** The Debian packages that `trunkline up` needs for these settings. */
export function packagesOf({ redis, rtpengine, drachtio, sip }: Config, mustBuild: boolean): string[] {
  const makesCertificate = drachtio.url === null && sip.tls_port !== null && sip.cert_file === null;
  return [
    ...(redis.url === null ? ['redis-server'] : []),
    ...(rtpengine.address === null ? ['rtpengine-daemon'] : []),
    ...(makesCertificate ? ['openssl'] : []),
    ...(mustBuild ? BUILD_PACKAGES : []),
  ];
}

/** Those whose program or library is missing on this machine, whatever installed the others. */
export async function missingPackages(packages: readonly string[]): Promise<string[]> {
  const library = join(SCRIPTS, 'lib.sh');
  // An image without the scripts has everything it needs.
  if (!existsSync(library)) return [];
  const { stdout } = await promisify(execFile)('bash', ['-c', '. "$0" && missing_packages "$@"', library, ...packages]);
  return stdout.split(' ').filter((name) => name !== '');
}

/** One shell command, which does not enable the packages' services. */
export function installCommand(packages: readonly string[]): string {
  return `sudo ${join(SCRIPTS, 'install-packages')} ${packages.join(' ')}`;
}

/** A message for the operator: what is missing and how to install it. */
export function missingText(packages: readonly string[]): string {
  return `missing on this machine: ${packages.join(', ')} (names of Debian's packages). Install them, then start again:\n\n  ${installCommand(packages)}\n`;
}
