import { parse as parseYaml } from 'yaml';
import type { ZodError } from 'zod';
import { nearestName } from './nearest-name.js';
import { SECRET_SETTINGS, configSchema, type Config } from './schema.js';

/** An invalid setting: its name, value, source and the allowed values. The process does not start. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** One layer: a tree of settings, and its source as messages name it. */
export interface Layer {
  readonly source: string;
  readonly settings: Settings;
}

export type Settings = { readonly [name: string]: unknown };

/** Names that differ from TRUNKLINE_ and the setting's path. */
const ENVIRONMENT_ALIASES: Readonly<Record<string, string>> = {
  TRUNKLINE_RTPENGINE: 'rtpengine.address',
};

/** Variables with this prefix that are not settings. */
const NOT_SETTINGS = new Set(['TRUNKLINE_CONFIG', 'TRUNKLINE_API_URL', 'TRUNKLINE_API_KEY', 'TRUNKLINE_SRTP_ADDON']);

export function parseLayer(source: string, yamlText: string): Layer {
  let settings: unknown;
  try {
    settings = parseYaml(yamlText);
  } catch (error) {
    throw new ConfigError(`Cannot read ${source}: not valid YAML: ${(error as Error).message}`);
  }
  if (settings === null || settings === undefined) return { source, settings: {} };
  if (typeof settings !== 'object' || Array.isArray(settings))
    throw new ConfigError(`Cannot read ${source}: expected settings, such as "log: { level: info }"`);
  return { source, settings: settings as Settings };
}

/** `TRUNKLINE_SIP_TLS_PORT=5071` → sip.tls_port. Values are read as YAML scalars: numbers, true, false, null, text. */
export function environmentLayer(environment: Readonly<Record<string, string | undefined>>, defaults: Settings): Layer {
  const names = new Map<string, string>();
  for (const path of paths(defaults)) names.set(`TRUNKLINE_${path.replaceAll('.', '_').toUpperCase()}`, path);
  for (const [name, path] of Object.entries(ENVIRONMENT_ALIASES)) names.set(name, path);
  const settings = {};
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('TRUNKLINE_') || NOT_SETTINGS.has(name) || value === undefined) continue;
    const path = names.get(name);
    if (path === undefined)
      throw new ConfigError(
        `Unknown environment variable ${name}.${suggestion(name, names.keys())} config/default.yaml lists every setting.`,
      );
    setPath(settings, path, scalar(value));
  }
  return { source: 'the environment', settings };
}

/** `sip.tls_port=5071`, the argument of `--set`. */
export function flagLayer(assignments: readonly string[]): Layer {
  const settings = {};
  for (const assignment of assignments) {
    const equals = assignment.indexOf('=');
    if (equals <= 0)
      throw new ConfigError(`Invalid --set ${JSON.stringify(assignment)}: expected name=value, for example sip.tls_port=5071`);
    setPath(settings, assignment.slice(0, equals).trim(), scalar(assignment.slice(equals + 1)));
  }
  return { source: 'a flag', settings };
}

/** Merges the layers, the later ones winning, and checks the result. Throws a `ConfigError` that names every invalid setting. */
export function mergeLayers(layers: readonly Layer[]): Config {
  let merged: Settings = {};
  const origin = new Map<string, string>();
  for (const { source, settings } of layers) {
    merged = deepMerge(merged, settings);
    for (const path of paths(settings)) origin.set(path, source);
  }
  const parsed = configSchema.safeParse(merged);
  if (!parsed.success) throw new ConfigError(explain(parsed.error, merged, origin));
  return parsed.data;
}

/** The configuration without its secrets, for output. */
export function redactConfig(config: Config): Settings {
  const copy = structuredClone(config) as unknown as Settings;
  for (const path of SECRET_SETTINGS) if (getPath(copy, path) !== null) setPath(copy, path, '(hidden)');
  return copy;
}

function explain(error: ZodError, merged: Settings, origin: ReadonlyMap<string, string>): string {
  const lines = error.issues.flatMap((issue) => {
    const path = issue.path.join('.');
    if (issue.code === 'unrecognized_keys') {
      const known = paths(merged).filter((one) => !issue.keys.some((key) => one.startsWith(path === '' ? key : `${path}.${key}`)));
      return issue.keys.map((key) => {
        const name = path === '' ? key : `${path}.${key}`;
        return `  ${name} (from ${sourceOf(origin, name)}): unknown setting.${suggestion(name, known)}`;
      });
    }
    const value = SECRET_SETTINGS.includes(path) ? '(hidden)' : JSON.stringify(getPath(merged, path));
    return [`  ${path} = ${value} (from ${sourceOf(origin, path)}): ${issue.message.replace('Invalid input: ', '')}`];
  });
  return `Invalid configuration:\n${lines.join('\n')}\nconfig/default.yaml describes every setting.`;
}

function suggestion(unknown: string, known: Iterable<string>): string {
  const nearest = nearestName(unknown, known);
  return nearest === null ? '' : ` Did you mean ${nearest}?`;
}

function sourceOf(origin: ReadonlyMap<string, string>, path: string): string {
  const exact = origin.get(path);
  if (exact !== undefined) return exact;
  for (const [known, source] of origin) if (known.startsWith(`${path}.`) || path.startsWith(`${known}.`)) return source;
  return 'config/default.yaml';
}

function scalar(text: string): unknown {
  // Only a plain YAML scalar: text such as `a: b` stays text.
  if (/^(true|false|null|-?\d{1,15}(\.\d+)?)$/.test(text)) return parseYaml(text);
  if (/^\[.*\]$/s.test(text)) return list(text);
  return text === '' ? null : text;
}

/** A YAML list in one line: `[a, b]`, `[{cert_file: a.pem, key_file: b.pem}]`. */
function list(text: string): unknown {
  try {
    return parseYaml(text);
  } catch (error) {
    throw new ConfigError(`Invalid list ${JSON.stringify(text)}: expected YAML, such as [a, b]: ${(error as Error).message}`);
  }
}

function isTree(value: unknown): value is Settings {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function deepMerge(base: Settings, over: Settings): Settings {
  const merged: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(over)) {
    const present = merged[name];
    merged[name] = isTree(value) && isTree(present) ? deepMerge(present, value) : value;
  }
  return merged;
}

function paths(settings: Settings, prefix = ''): string[] {
  return Object.entries(settings).flatMap(([name, value]) => (isTree(value) ? paths(value, `${prefix}${name}.`) : [`${prefix}${name}`]));
}

function getPath(settings: Settings, path: string): unknown {
  return path.split('.').reduce<unknown>((tree, name) => (isTree(tree) && Object.hasOwn(tree, name) ? tree[name] : undefined), settings);
}

function setPath(settings: Settings, path: string, value: unknown): void {
  const names = path.split('.');
  const last = names.pop() ?? '';
  let tree = settings as Record<string, unknown>;
  for (const name of names) {
    const present = Object.hasOwn(tree, name) ? tree[name] : undefined;
    if (isTree(present)) tree = present;
    else {
      const next: Record<string, unknown> = {};
      Object.defineProperty(tree, name, { value: next, enumerable: true, writable: true, configurable: true });
      tree = next;
    }
  }
  Object.defineProperty(tree, last, { value, enumerable: true, writable: true, configurable: true });
}
