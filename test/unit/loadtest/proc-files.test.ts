import { describe, expect, it } from 'vitest';
import { cpuMsOf, machineTimes, maxOpenFilesOf, memoryFreeMbOf, processName, residentMbOf } from '../../../src/loadtest/proc-files.js';

describe('the reader of /proc', () => {
  it('reads the CPU time, whatever the name of the process', () => {
    expect(cpuMsOf('42 (a) b (c) S 1 42 42 0 -1 4194560 1 0 0 0 150 25 0 0 20 0 11 0 1 1 1')).toBe(1_750);
    expect(cpuMsOf('42 (x) S 1 42 42 0 -1 4194560 1 0 0 0 150 25')).toBe(1_750);
    for (const none of ['', '42 (x) S', '42 (x) S 1 42 42 0 -1 4194560 1 0 0 0 150', '42 (x) S 1 42 42 0 -1 4194560 1 0 0 0 150 x'])
      expect(cpuMsOf(none)).toBeNull();
  });

  it.each([
    ['Name:\tnode\nVmRSS:\t  204800 kB\nRssAnon:\t 1 kB\n', 200],
    ['VmRSS:\t1024 kB', 1],
    ['XVmRSS:\t1024 kB\n', null],
    ['VmRSS:\t1024 kBytes\n', null],
    ['', null],
  ])('reads the resident memory from %j: %d MB', (status, megabytes) => {
    expect(residentMbOf(status)).toBe(megabytes);
  });

  it.each([
    ['Limit   Soft\nMax open files            20000                524288               files     \n', 20_000],
    ['Max open files            unlimited            unlimited            files     \n', null],
    ['XMax open files  1 2 files\n', null],
    ['', null],
  ])('reads the limit of open files from %j: %d', (limits, most) => {
    expect(maxOpenFilesOf(limits)).toBe(most);
  });

  it.each([
    ['MemTotal: 9 kB\nMemAvailable:    2048 kB\nBuffers: 1 kB\n', 2],
    ['XMemAvailable: 2048 kB\n', Infinity],
    ['MemAvailable: 2048 kBytes\n', Infinity],
    ['', Infinity],
  ])('reads the free memory from %j: %d MB', (meminfo, megabytes) => {
    expect(memoryFreeMbOf(meminfo)).toBe(megabytes);
  });

  it.each([
    ['/usr/bin/node\0--enable-source-maps\0/a/dist/cli/main.js\0gateway\0--set\0x=1\0', 'gateway'],
    ['node\0/a/dist/cli/main.js\0up\0', 'supervisor'],
    ['/usr/bin/node\0/a/dist/cli/main.js\0', 'node'],
    ['/usr/bin/node\0/a/dist/cli/main.js', 'node'],
    ['/usr/bin/node\0/a/cli/main.js.map\0gateway', 'node'],
    ['/a/dist/cli/main.js\0load\0', 'load'],
    ['redis-server 127.0.0.1:6380\0', 'redis-server'],
    ['/usr/bin/rtpengine\0--foreground\0', 'rtpengine'],
    ['', ''],
  ])('makes of %j the name %s', (cmdline, name) => {
    expect(processName(cmdline)).toBe(name);
  });

  it('reads how busy the machine is', () => {
    expect(machineTimes('cpu  100 10 40 800 50 0 0 0 0 0\ncpu0 1 1 1 1\n')).toEqual({ all: 1_000, busy: 150 });
    expect(machineTimes('intr 1\ncpu 100 10 40 800 50 3 2 5 70 30')).toEqual({ all: 1_010, busy: 160 });
    expect(machineTimes('cpu 100 10 40 800\n')).toEqual({ all: 950, busy: 150 });
    expect(machineTimes('cpu 100 10 40\n')).toEqual({ all: 150, busy: 150 });
    for (const none of ['', 'cpu0 1 1 1 1\n', 'xcpu 1 1 1 1\n', 'cpu  1 1 1 1 x\n']) expect(machineTimes(none)).toBeNull();
  });
});
