import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/load.js';
import { installCommand, missingPackages, missingText, packagesOf } from '../../../src/supervisor/debian-packages.js';

const config = (...set: string[]) => loadConfig({ set, environment: {} });

describe('the Debian packages that trunkline up needs', () => {
  it('are those of the parts that it starts, and of the addon when that has to be built', () => {
    expect(packagesOf(config(), false)).toEqual(['redis-server', 'rtpengine-daemon', 'openssl']);
    expect(
      packagesOf(config('redis.url=redis://127.0.0.1', 'rtpengine.address=127.0.0.1:2223', 'drachtio.url=127.0.0.1:9022'), true),
    ).toEqual(['libsrtp2-dev', 'g++', 'make', 'python3', 'pkg-config']);
  });

  it('are missing when their program is not on this machine', async () => {
    expect(await missingPackages(['bash', 'trunkline-has-no-such-program'])).toEqual(['trunkline-has-no-such-program']);
  });

  it('are named with one command that installs them', () => {
    expect(installCommand(['redis-server', 'g++'])).toMatch(/^sudo \/\S+\/scripts\/install-packages redis-server g\+\+$/);
    expect(missingText(['redis-server', 'g++'])).toMatch(
      /^missing on this machine: redis-server, g\+\+ .*\n\n {2}sudo \S+ redis-server g\+\+\n$/,
    );
  });
});
