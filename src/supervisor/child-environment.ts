import { SECRET_SETTINGS } from '../config/schema.js';

type Environment = NodeJS.ProcessEnv;

/** Variables for third-party programs: paths of programs and libraries (an operator's allocator, for example), language and time zone. */
const FOREIGN = /^(?:PATH|LD_LIBRARY_PATH|LD_PRELOAD|HOME|USER|LOGNAME|TMPDIR|TZ|LANG|LC_[A-Z]+)$/;

const REDIS_URL = 'TRUNKLINE_REDIS_URL';

/**
 * glibc's malloc and GLib's slices take a third of what rtpengine uses for a call. Debian's redis-server brings jemalloc; where it is not,
 * the loader says so and goes on.
 */
const OF_RTPENGINE = { LD_PRELOAD: 'libjemalloc.so.2', G_SLICE: 'always-malloc' };

/** Secrets that the SIP server needs: those of its control port and of its metrics. */
const OF_SIP_SERVER = new Set(['drachtio.secret', 'metrics.bearer_token']);

/** For redis-server and the holder of the sockets. */
export function foreignEnvironment(environment: Environment): Environment {
  return filtered(environment, (name) => FOREIGN.test(name));
}

/** An operator's allocator goes before ours. */
export function rtpengineEnvironment(environment: Environment): Environment {
  return { ...OF_RTPENGINE, ...foreignEnvironment(environment) };
}

/** Those that it needs besides where dialogs outlive their host. */
const OF_CELL = new Set(['redis.url', 'redis.sentinel_password']);

/** For the SIP server, which strangers can reach: everything except the secrets that it does not need. @param takesOver sip.take_over */
export function sipServerEnvironment(environment: Environment, takesOver: boolean): Environment {
  const isNeeded = (path: string): boolean => OF_SIP_SERVER.has(path) || (takesOver && OF_CELL.has(path));
  const variables = SECRET_SETTINGS.filter((path) => !isNeeded(path)).map((path) => variableOf(path));
  const withheld = new Set([...variables, 'TRUNKLINE_API_KEY']);
  const kept = filtered(environment, (name) => !withheld.has(name));
  // Without a URL, other Redis settings from a file would be invalid.
  return REDIS_URL in environment && !takesOver ? { ...kept, [REDIS_URL]: 'redis://withheld' } : kept;
}

function variableOf(path: string): string {
  return `TRUNKLINE_${path.replaceAll('.', '_').toUpperCase()}`;
}

function filtered(environment: Environment, keeps: (name: string) => boolean): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => keeps(name)));
}
