import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { nativeFile } from '../config/native-files.js';
import { httpAddress, type Config } from '../config/schema.js';
import { formatHostPort } from '../lib/address.js';
import { errorText } from '../lib/result.js';
import { resolveHostPort } from '../lib/resolve.js';
import { BUILD_PACKAGES, installCommand, missingPackages, packagesOf } from './debian-packages.js';
import { mustBuildNative } from './native-build.js';
import { readText } from './read-text.js';

const run = promisify(execFile);

/** The result of one check. */
export interface Finding {
  readonly name: string;
  readonly isFine: boolean;
  /** A version if it passed, else the fault. */
  readonly detail: string;
  /** The remedy. */
  readonly remedy: string | null;
}

/** What was seen of Redis. */
export interface RedisSeen {
  /** Bytes of call records and traces. */
  readonly storedBytes: number;
  /** Why it takes no writes, in its own words; `null`: it does. */
  readonly refusal: string | null;
  /** What an operator should see to. */
  readonly warnings: readonly string[];
  /** How long a write took. */
  readonly tookMs: number;
}

/**
 * Checks everything that the gateway needs on this machine. Changes nothing.
 * @param seeRedis rejects if Redis is unreachable
 */
export async function examine(config: Config, seeRedis: () => Promise<RedisSeen>): Promise<Finding[]> {
  const mustBuild = mustBuildNative(config);
  const missing = await missingPackages([...new Set(['openssl', 'espeak-ng', ...packagesOf(config, mustBuild)])]);
  const install = `run: ${installCommand(missing)}`;
  const canBuild = !missing.some((name) => BUILD_PACKAGES.includes(name));
  const findings: Finding[] = [nodeVersion(), nativeAddon(config, mustBuild, canBuild ? null : install), openFiles(config)];
  findings.push(ephemeralPorts(config, readText));
  findings.push(await program('openssl', ['version'], 'openssl', install));
  findings.push(await program('espeak-ng', ['--version'], 'espeak-ng (speech of the test line)', install));
  if (config.redis.url === null) findings.push(await program('redis-server', ['--version'], 'redis-server', install));
  if (config.rtpengine.address === null) findings.push(await program('rtpengine', ['--version'], 'rtpengine', install));
  if (config.drachtio.url !== null) findings.push(await sipServer(config.drachtio.url));
  findings.push(await running(config));
  return [...findings, ...(await redis(config, seeRedis))];
}

function fine(name: string, detail: string): Finding {
  return { name, isFine: true, detail, remedy: null };
}

function wrong(name: string, detail: string, remedy: string): Finding {
  return { name, isFine: false, detail, remedy };
}

function nodeVersion(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isFine = major === 20 ? minor >= 20 : major > 20 && major < 27;
  return isFine ? fine('Node.js', process.version) : wrong('Node.js', process.version, 'install Node.js 20.20, 22, 24 or 26');
}

function nativeAddon(config: Config, mustBuild: boolean, install: string | null): Finding {
  if (!mustBuild) return fine('native SRTP addon', `built: ${nativeFile(config, 'srtp.node')}`);
  return wrong('native SRTP addon', 'not built', install ?? 'run: trunkline up (it builds the addon in data_dir)');
}

/** rtpengine opens four sockets per call. */
function openFiles(config: Config): Finding {
  const calls = Math.floor((config.rtpengine.port_max - config.rtpengine.port_min + 1) / 4);
  const hard = Number(/Max open files\s+\d+\s+(\d+)/.exec(readText('/proc/self/limits'))?.[1] ?? Number.NaN);
  if (Number.isNaN(hard)) return fine('open files', 'unknown limit');
  const wanted = calls * 4 + 200;
  if (hard >= wanted) return fine('open files', `limit ${String(hard)}`);
  return wrong(
    'open files',
    `limit ${String(hard)}, ${String(calls)} calls need ${String(wanted)}`,
    'raise the limit (ulimit -Hn), or narrow rtpengine.port_min to port_max',
  );
}

/** Linux gives programs that name no port one of its ephemeral ones. */
export function ephemeralPorts({ rtpengine, media }: Pick<Config, 'rtpengine' | 'media'>, read: (file: string) => string): Finding {
  const name = 'media ports';
  const [from = NaN, to = NaN] = read('/proc/sys/net/ipv4/ip_local_port_range').trim().split(/\s+/).map(Number);
  const reserved = read('/proc/sys/net/ipv4/ip_local_reserved_ports').trim();
  const isReserved = (port: number): boolean =>
    reserved.split(',').some((part) => {
      const [first = NaN, last = first] = part.split('-').map(Number);
      return port >= first && port <= last;
    });
  const ranges = [...(rtpengine.address === null ? [rtpengine] : []), media].map(({ port_min: min, port_max: max }) => ({ min, max }));
  const open = ranges.filter(({ min, max }) => max >= from && min <= to && !(isReserved(min) && isReserved(max)));
  if (open.length === 0) return fine(name, 'not among those that Linux gives programs');
  const text = open.map(({ min, max }) => `${String(min)}-${String(max)}`).join(',');
  return fine(name, `Linux may give some to programs: reserve them, sysctl -w net.ipv4.ip_local_reserved_ports=${text}`);
}

async function program(command: string, args: readonly string[], name: string, remedy: string): Promise<Finding> {
  try {
    const { stdout, stderr } = await run(command, args, { timeout: 10_000 });
    return fine(name, (stdout || stderr).split('\n')[0]?.trim() ?? '');
  } catch (error) {
    const { code, message } = error as { code?: unknown; message: string };
    return wrong(name, code === 'ENOENT' ? 'not installed' : message, remedy);
  }
}

/** For an external SIP server: whether it accepts connections where the gateway would connect. */
export async function sipServer(url: string): Promise<Finding> {
  const name = 'SIP server (drachtio.url)';
  let socket: Socket | undefined;
  try {
    const { address, port } = await resolveHostPort(url);
    socket = connect({ host: address, port });
    await once(socket, 'connect', { signal: AbortSignal.timeout(3_000) });
    return fine(name, `accepts connections at ${formatHostPort(address, port)}`);
  } catch (error) {
    const what = (error as Error).name === 'AbortError' ? 'no answer within 3 s' : (error as Error).message;
    return wrong(name, `cannot be reached at ${url}: ${what}`, 'start drachtio-server there, or correct drachtio.url');
  } finally {
    socket?.destroy();
  }
}

async function running(config: Config): Promise<Finding> {
  const url = `http://${formatHostPort(httpAddress(config), config.http.port)}/readyz`;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(3_000) });
    if (response.ok) return fine('gateway', `ready at ${url}`);
    return wrong(
      'gateway',
      `runs, but is not ready: ${(await response.text()).slice(0, 300)}`,
      'check the part that is not ready, and logs/ in data_dir',
    );
  } catch {
    return wrong('gateway', 'is not running', 'start it: trunkline up');
  }
}

/** Our own Redis runs with the gateway: where that does not run, it is no finding. */
async function redis(config: Config, see: () => Promise<RedisSeen>): Promise<readonly Finding[]> {
  let seen: RedisSeen;
  try {
    seen = await see();
  } catch (error) {
    const { url } = config.redis;
    return url === null ? [] : [wrong('Redis', errorText(error), 'start Redis, or correct redis.url')];
  }
  return [writable(seen), storedCalls(config, seen)];
}

function writable({ refusal, warnings, tookMs }: RedisSeen): Finding {
  if (refusal !== null)
    return wrong(
      'Redis',
      `takes no writes: ${refusal}`,
      'full: raise maxmemory; read-only: point redis.url at the primary (docs/failures.md)',
    );
  if (warnings.length === 0) return fine('Redis', `takes writes, the last in ${tookMs.toFixed(1)} ms`);
  return { ...fine('Redis', `takes writes. ${warnings.join('. ')}`), remedy: 'see docs/failures.md, "The machine"' };
}

function storedCalls(config: Config, { storedBytes }: RedisSeen): Finding {
  const maxMb = config.calls.max_stored_mb;
  const mb = storedBytes / (1 << 20);
  const isFull = mb > 0.99 * maxMb;
  const detail = `${mb.toFixed(1)} of ${String(maxMb)} MB in Redis`;
  return fine('records and traces of calls', isFull ? `${detail}: the gateway deletes the oldest (calls.max_stored_mb)` : detail);
}
