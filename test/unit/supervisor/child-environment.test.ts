import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/load.js';
import { SECRET_SETTINGS } from '../../../src/config/schema.js';
import { foreignEnvironment, rtpengineEnvironment, sipServerEnvironment } from '../../../src/supervisor/child-environment.js';

const variable = (path: string): string => `TRUNKLINE_${path.replaceAll('.', '_').toUpperCase()}`;
const secrets = Object.fromEntries(SECRET_SETTINGS.map((path) => [variable(path), 'secret-of-a-test']));
const environment = {
  ...secrets,
  PATH: '/usr/bin',
  TZ: 'UTC',
  LC_ALL: 'C',
  CLOUD_TOKEN: 'secret-of-a-test',
  TRUNKLINE_API_KEY: 'secret-of-a-test',
  TRUNKLINE_SIP_TLS_PORT: '5071',
};

describe('the environment of a child', () => {
  it('of redis-server and rtpengine has no setting of ours, and nothing that they do not need', () => {
    expect(foreignEnvironment(environment)).toEqual({ PATH: '/usr/bin', TZ: 'UTC', LC_ALL: 'C' });
  });

  it("of rtpengine has a faster allocator, unless the operator's has one", () => {
    const allocator = { LD_PRELOAD: 'libjemalloc.so.2', G_SLICE: 'always-malloc' };
    expect(rtpengineEnvironment(environment)).toEqual({ ...allocator, PATH: '/usr/bin', TZ: 'UTC', LC_ALL: 'C' });
    expect(rtpengineEnvironment({ LD_PRELOAD: '/opt/theirs.so' })).toEqual({ ...allocator, LD_PRELOAD: '/opt/theirs.so' });
  });

  it('of the SIP server has the settings, and only the secrets of its control port and its metrics', () => {
    const given = sipServerEnvironment(environment, false);
    expect(given).toMatchObject({ PATH: '/usr/bin', TRUNKLINE_SIP_TLS_PORT: '5071' });
    const ours = Object.keys(given).filter((name) => name.startsWith('TRUNKLINE_') && given[name] === 'secret-of-a-test');
    expect(ours).toEqual(['TRUNKLINE_DRACHTIO_SECRET', 'TRUNKLINE_METRICS_BEARER_TOKEN']);
  });

  it('of the SIP server makes a valid configuration, also where the settings of Redis need a URL', () => {
    const set = ['redis.cluster=true'];
    const settings = { TRUNKLINE_REDIS_URL: 'redis://:password@redis.example:6379' };
    expect(loadConfig({ set, environment: sipServerEnvironment(settings, false) }).redis.url).toBe('redis://withheld');
    expect(sipServerEnvironment({}, false)).toEqual({});
  });

  it('of the SIP server has the address of Redis when dialogs outlive their host there', () => {
    const settings = { TRUNKLINE_REDIS_URL: 'redis://:password@redis.example:6379', TRUNKLINE_REDIS_SENTINEL_PASSWORD: 'secret-of-a-test' };
    expect(sipServerEnvironment(settings, true)).toEqual(settings);
  });
});
