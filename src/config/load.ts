import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ConfigError, environmentLayer, flagLayer, mergeLayers, parseLayer, type Layer } from './layers.js';
import type { Config } from './schema.js';
import { ownAddress } from './own-address.js';

export interface ConfigSources {
  /** A YAML file; TRUNKLINE_CONFIG names one too. */
  readonly file?: string | undefined;
  /** Each `name=value`. */
  readonly set?: readonly string[] | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Reads defaults < file < environment < flags. Throws a `ConfigError` with a message for the operator. */
export function loadConfig(sources: ConfigSources): Config {
  const defaults = defaultsLayer();
  const layers: Layer[] = [defaults];
  const file = sources.file ?? sources.environment['TRUNKLINE_CONFIG'];
  if (file !== undefined) layers.push(parseLayer(file, readText(file)));
  layers.push(environmentLayer(sources.environment, defaults.settings), flagLayer(sources.set ?? []));
  const config = mergeLayers(layers);
  return config.bind_address === 'auto' ? { ...config, bind_address: ownAddress(config.public_address) } : config;
}

let parsedDefaults: Layer | undefined;

/** Parsed once in a process: it takes 30 ms. */
function defaultsLayer(): Layer {
  parsedDefaults ??= parseLayer('config/default.yaml', readFileSync(new URL('../../config/default.yaml', import.meta.url), 'utf8'));
  return parsedDefaults;
}

/** The root of the installed package, with config/ and native/. */
export const PACKAGE_ROOT = fileURLToPath(new URL('../../', import.meta.url));

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`Cannot read the configuration file ${file}: ${(error as Error).message}. Check its path and permissions.`);
  }
}
