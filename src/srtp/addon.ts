import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

let addon: unknown;

/** The classes of the native addon: as native/*.cc export them, a type of the caller's. */
export function loadAddon(): unknown {
  addon ??= createRequire(import.meta.url)(addonFile());
  return addon;
}

/** `TRUNKLINE_SRTP_ADDON`, which the CLI sets when the addon is in the data directory; otherwise that of this package. */
function addonFile(): string {
  const named = process.env['TRUNKLINE_SRTP_ADDON'];
  // The package root is two folders up both from src/srtp and from dist/srtp.
  if (named === undefined) return fileURLToPath(new URL('../../native/build/Release/srtp.node', import.meta.url));
  // It runs with all rights of this process.
  const owner = statSync(named).uid;
  if (owner !== 0 && owner !== process.geteuid?.()) throw new Error(`${named} belongs to another user: it is not loaded`);
  return named;
}
