import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { PACKAGE_ROOT } from './load.js';
import type { Config } from './schema.js';

/** The SRTP addon, the media generator of load tests, and what keeps the SIP server's sockets. */
export type NativeName = 'srtp.node' | 'media-generator' | 'socket-holder';

/** Where `npm run build` puts a compiled program of native/. An installed package has none. */
export function packagedNativeFile(name: NativeName): string {
  return join(PACKAGE_ROOT, 'native/build/Release', name);
}

/** Where `trunkline up` builds what the package lacks. */
export function nativeDirectory(config: Pick<Config, 'data_dir'>): string {
  return join(resolve(config.data_dir), 'native');
}

/** Path of the compiled program: the package's, else the data directory's, which may not be built yet. */
export function nativeFile(config: Pick<Config, 'data_dir'>, name: NativeName): string {
  const packaged = packagedNativeFile(name);
  return existsSync(packaged) ? packaged : join(nativeDirectory(config), name);
}
