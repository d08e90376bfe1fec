import { SECRET_SETTINGS } from '../config/schema.js';

type Environment = NodeJS.ProcessEnv;

/** What programs that are not ours need: where programs and libraries are (an allocator of the operator's, say), language and time zone. No setting of ours. */
const FOREIGN = /^(?:PATH|LD_LIBRARY_PATH|LD_PRELOAD|HOME|USER|LOGNAME|TMPDIR|TZ|LANG|LC_[A-Z]+)$/;

const REDIS_URL = 'TRUNKLINE_REDIS_URL';

/** Secrets that the SIP server works with: those of its control port and of its metrics. */
const OF_SIP_SERVER = new Set(['drachtio.secret', 'metrics.bearer_token']);

/** For redis-server and rtpengine. */
export function foreignEnvironment(environment: Environment): Environment {
  return filtered(environment, (name) => FOREIGN.test(name));
}

/** For the SIP server, which strangers speak to: everything but the secrets that it has no use for. */
export function sipServerEnvironment(environment: Environment): Environment {
  const variables = SECRET_SETTINGS.filter((path) => !OF_SIP_SERVER.has(path)).map((path) => variableOf(path));
  const withheld = new Set([...variables, 'TRUNKLINE_API_KEY']);
  const kept = filtered(environment, (name) => !withheld.has(name));
  // Other settings of Redis, which stand in a file, are wrong without a URL.
  return REDIS_URL in environment ? { ...kept, [REDIS_URL]: 'redis://withheld' } : kept;
}

function variableOf(path: string): string {
  return `TRUNKLINE_${path.replaceAll('.', '_').toUpperCase()}`;
}

function filtered(environment: Environment, keeps: (name: string) => boolean): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => keeps(name)));
}
