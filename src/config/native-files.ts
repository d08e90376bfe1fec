import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { PACKAGE_ROOT } from './load.js';
import type { Config } from './schema.js';

/** The SRTP addon, and the media generator of load tests. */
export type NativeName = 'srtp.node' | 'media-generator';

/** Where `npm run build` puts a compiled program of native/. An installed package has none. */
export function packagedNativeFile(name: NativeName): string {
  return join(PACKAGE_ROOT, 'native/build/Release', name);
}

/** What `trunkline up` builds where the package has none. */
export function nativeDirectory(config: Pick<Config, 'data_dir'>): string {
  return join(resolve(config.data_dir), 'native');
}

/** The compiled program: that of the package, otherwise that of the data directory, whether or not it is built yet. */
export function nativeFile(config: Pick<Config, 'data_dir'>, name: NativeName): string {
  const packaged = packagedNativeFile(name);
  return existsSync(packaged) ? packaged : join(nativeDirectory(config), name);
}
