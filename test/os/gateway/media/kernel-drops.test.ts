import { createSocket } from 'node:dgram';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { silentLog } from '../../../../src/lib/log.js';
import { KernelDropWatch, readKernelDrops } from '../../../../src/gateway/media/kernel-drops.js';
import { droppedDatagrams, socketKey, waitingBytes } from '../../../../src/lib/udp-table.js';
import { freeRange } from '../../../support/ports.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const TABLE = [
  '   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops            ',
  '  298: 0100007F:4E20 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 24133 2 0000000000000000 17       ',
  '  299: 0100007F:4E21 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 24134 2 0000000000000000 3        ',
  '  300: 0200007F:4E20 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 24135 2 0000000000000000 500      ',
  '  301: 0100007F:4E22 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 24136 2 0000000000000000 900      ',
  '',
].join('\n');

const TABLE_6 = [
  '  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops',
  ' 7364: 00000000000000000000000001000000:4E20 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 24137 2 0000000000000000 8',
  ' 7365: B80D0120000000000000000005000A00:4E20 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 24138 2 0000000000000000 2',
].join('\n');

const at = (address: string, ...ports: number[]) => ports.map((port) => ({ address, port }));

describe('the kernel’s table of UDP sockets', () => {
  it('counts drops by address and port, and those of other sockets not', () => {
    expect(droppedDatagrams(TABLE, at('127.0.0.1', 20_000, 20_001))).toBe(20);
    expect(droppedDatagrams(TABLE, at('127.0.0.2', 20_000, 20_001))).toBe(500);
    expect(droppedDatagrams(TABLE, at('127.0.0.3', 20_000))).toBe(0);
    expect(droppedDatagrams(TABLE, [])).toBe(0);
  });

  it('has IPv6 addresses in words too', () => {
    expect(droppedDatagrams(TABLE_6, at('::1', 20_000))).toBe(8);
    expect(droppedDatagrams(TABLE_6, at('2001:db8::a:5', 20_000))).toBe(2);
    expect(droppedDatagrams(TABLE_6, at('2001:db8:0:0:0:0:a:5', 20_000))).toBe(2);
  });

  it.each(['', 'no such file', '<html>', TABLE.replace('local_address', 'x')])('gives null when it is %j', (text) => {
    expect(droppedDatagrams(text, at('127.0.0.1', 20_000))).toBeNull();
  });

  it('may have lines that are cut off or hold no number', () => {
    const spoiled = `${TABLE}  302: 0100007F:4E20 00000000:0000 07\n  303: 0100007F:4E20 a b c d e f g h i j many\n`;
    expect(droppedDatagrams(spoiled, at('127.0.0.1', 20_000))).toBe(17);
  });
});

describe('receive queues in that table', () => {
  it('are listed by address and port when they hold bytes', () => {
    const full = TABLE.replace('07 00000000:00000000', '07 00000000:00034D00');
    expect([...waitingBytes(full)]).toEqual([[socketKey({ address: '127.0.0.1', port: 20_000 }), 216_320]]);
    const full6 = TABLE_6.replace('07 00000000:00000000', '07 00000000:00000300');
    expect([...waitingBytes(full6)]).toEqual([[socketKey({ address: '::1', port: 20_000 }), 768]]);
  });

  it.each(['', '<html>', TABLE, TABLE_6])('are empty when the table is %j', (table) => {
    expect(waitingBytes(table).size).toBe(0);
  });
});

describe('datagrams that the kernel drops', () => {
  it('are counted for a socket that nobody reads, and for no other', async () => {
    const port = await freeRange(4);
    // A thread that binds and then sleeps in a lock: nothing of what comes is read.
    const lock = new Int32Array(new SharedArrayBuffer(4));
    const sleeper = new Worker(
      `const { workerData, parentPort } = require('node:worker_threads');
       const socket = require('node:dgram').createSocket({ type: 'udp4', recvBufferSize: 4096 });
       socket.bind(${port}, '127.0.0.1', () => {
         parentPort.postMessage('bound');
         setImmediate(() => { Atomics.wait(workerData, 0, 0); socket.close(); });
       });`,
      { eval: true, workerData: lock },
    );
    await new Promise((resolve) => sleeper.once('message', resolve));
    const sender = createSocket('udp4');
    for (let i = 0; i < 300; i += 1) await new Promise((resolve) => sender.send(Buffer.alloc(1_000), port, '127.0.0.1', resolve));
    sender.close();
    const drops = await readKernelDrops('127.0.0.1', [port]);
    const others = await readKernelDrops('127.0.0.1', [port + 2]);
    Atomics.store(lock, 0, 1);
    Atomics.notify(lock, 0);
    await new Promise((resolve) => sleeper.once('exit', resolve));
    // 4 kB hold a few of them.
    expect(drops).toBeGreaterThan(250);
    expect(drops).toBeLessThanOrEqual(300);
    expect(others).toBe(0);
  });

  it('are logged when there are more of them, at a check each 10 s', async () => {
    const clock = new VirtualClock();
    const warnings: object[] = [];
    const answers: (number | null)[] = [0, 5, 5, null, 5, 12, 3, 4];
    const watch = new KernelDropWatch(() => Promise.resolve(answers.shift() ?? null), clock, {
      ...silentLog,
      warn: (fields) => warnings.push(fields),
    });
    await clock.advanceAsync(9_999);
    expect(answers).toHaveLength(8);
    await clock.advanceAsync(80_000);
    expect(warnings).toEqual([
      { dropped: 5, kernel_drops: 5, hint: expect.stringContaining('net.core.rmem_max') as string },
      { dropped: 7, kernel_drops: 12, hint: expect.anything() as string },
      { dropped: 1, kernel_drops: 4, hint: expect.anything() as string },
    ]);
    watch.stop();
    expect(clock.pendingTimers).toBe(0);
  });
});
