import { describe, expect, it } from 'vitest';
import type { Config } from '../../../src/config/schema.js';
import { ephemeralPorts } from '../../../src/supervisor/doctor.js';

const CONFIG = {
  rtpengine: { address: null, port_min: 30_000, port_max: 39_999 },
  media: { port_min: 40_000, port_max: 40_199 },
} as Config;

const detail = (range: string, reserved: string): string =>
  ephemeralPorts(CONFIG, (file) => (file.endsWith('ip_local_port_range') ? range : reserved)).detail;

describe('trunkline doctor', () => {
  it.each([
    ['32768\t60999\n', '\n'],
    ['32768\t60999\n', '8080,30000-30010\n'],
  ])('names media ports that Linux may give programs: %j, %j reserved', (range, reserved) => {
    expect(detail(range, reserved)).toContain('ip_local_reserved_ports=30000-39999,40000-40199');
  });

  it.each([
    ['32768\t60999\n', '30000-40199\n'],
    ['50000\t60999\n', '\n'],
    ['', ''],
  ])('accepts %j, %j reserved', (range, reserved) => {
    expect(detail(range, reserved)).toBe('not among those that Linux gives programs');
  });
});
