import { describe, expect, it } from 'vitest';
import { cpuMsOf, machineTimes, maxOpenFilesOf, memoryFreeMbOf, processName, residentMbOf } from '../../../src/loadtest/proc-files.js';

describe('files of /proc', () => {
  it('CPU time, whatever the name of the process', () => {
    expect(cpuMsOf('42 (a) b (c) S 1 42 42 0 -1 4194560 1 0 0 0 150 25 0 0 20 0 11 0 1 1 1')).toBe(1_750);
    expect([cpuMsOf(''), cpuMsOf('42 (x) S')]).toEqual([null, null]);
  });

  it('memory and open files', () => {
    expect(residentMbOf('Name:\tnode\nVmRSS:\t  204800 kB\n')).toBe(200);
    expect(residentMbOf('')).toBeNull();
    expect(maxOpenFilesOf('Max open files            20000                524288               files     \n')).toBe(20_000);
    expect(maxOpenFilesOf('Max open files            unlimited            unlimited            files     \n')).toBeNull();
    expect(memoryFreeMbOf('MemTotal: 9 kB\nMemAvailable:    1024 kB\n')).toBe(1);
  });

  it('names that a person knows', () => {
    expect(processName('/usr/bin/node\0--enable-source-maps\0/a/dist/cli/main.js\0gateway\0--set\0x=1\0')).toBe('gateway');
    expect(processName('node\0/a/dist/cli/main.js\0up\0')).toBe('supervisor');
    expect(processName('redis-server 127.0.0.1:6380\0')).toBe('redis-server');
    expect(processName('/usr/bin/rtpengine\0--foreground\0')).toBe('rtpengine');
  });

  it('how busy the machine is', () => {
    expect(machineTimes('cpu  100 10 40 800 50 0 0 0 0 0\ncpu0 1 1 1 1\n')).toEqual({ all: 1_000, busy: 150 });
    expect(machineTimes('')).toBeNull();
  });
});
