import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { LONGEST_BYTES, UdpSocket } from '../../../src/srtp/udp-socket.js';
import { freeRange } from '../../support/ports.js';

// Real sockets on loopback; the far side is Node's own.

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

async function far(address = '127.0.0.1'): Promise<Socket> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  socket.bind(0, address);
  await once(socket, 'listening');
  cleanups.push(() => socket.close());
  return socket;
}

interface Opened {
  readonly socket: UdpSocket;
  readonly received: [peer: number, text: string][];
}

async function open(address = '127.0.0.1'): Promise<Opened> {
  const received: Opened['received'] = [];
  const socket = new UdpSocket(address, await freeRange(2), (peer, datagram) => received.push([peer, Buffer.from(datagram).toString()]));
  cleanups.push(() => socket.close());
  return { socket, received };
}

const send = (from: Socket, to: UdpSocket, text: string | Buffer, address = '127.0.0.1'): Promise<unknown> =>
  new Promise((resolve) => from.send(text, to.port, address, resolve));

describe('a UDP socket of the endpoint', () => {
  it.each(['127.0.0.1', '::1'])(
    'delivers the datagrams of its peers with their numbers, and only counts those of others, on %s',
    async (address) => {
      const { socket, received } = await open(address);
      const [one, other, stranger] = [await far(address), await far(address), await far(address)];
      const peers = [one, other].map((peer) => socket.addPeer(address, peer.address().port));
      expect(new Set(peers).size).toBe(2);
      await send(stranger, socket, 'hello?', address);
      for (const [index, peer] of [one, other, one].entries()) await send(peer, socket, `datagram ${String(index)}`, address);
      await expect
        .poll(() => received)
        .toEqual([
          [peers[0], 'datagram 0'],
          [peers[1], 'datagram 1'],
          [peers[0], 'datagram 2'],
        ]);
      expect(socket.strangers).toBe(1);
    },
  );

  it('delivers 500 datagrams that wait at once, in order, each in memory of its own', async () => {
    const { socket, received } = await open();
    socket.growReceiveBuffer(4 << 20);
    const peer = await far();
    const number = socket.addPeer('127.0.0.1', peer.address().port);
    const sent = Array.from({ length: 500 }, (_, serial) => String(serial).padStart(160, 'x'));
    await Promise.all(sent.map((text) => send(peer, socket, text)));
    await expect.poll(() => received.length).toBe(500);
    expect(received).toEqual(sent.map((text) => [number, text]));
  });

  it('sends what it got in one turn, in order, to each peer', async () => {
    const { socket } = await open();
    const ends = [await far(), await far()];
    const heard = ends.map((end) => {
      const texts: string[] = [];
      end.on('message', (datagram) => texts.push(datagram.toString()));
      return texts;
    });
    const peers = ends.map((end) => socket.addPeer('127.0.0.1', end.address().port));
    const buffer = Buffer.alloc(200);
    for (let serial = 0; serial < 400; serial += 1) {
      // The buffer is free again at once.
      const lengthBytes = buffer.write(`packet ${String(serial)}`);
      socket.send(peers[serial % 2]!, buffer, lengthBytes);
    }
    const of = (rest: number): string[] =>
      Array.from({ length: 400 }, (_, serial) => serial).flatMap((serial) => (serial % 2 === rest ? [`packet ${String(serial)}`] : []));
    await expect.poll(() => heard).toEqual([of(0), of(1)]);
    expect(socket.sendErrors).toBe(0);
  });

  it('exchanges datagrams of up to 65,507 bytes when opened for them, beside one for packets', async () => {
    const [long, short] = [await open(), await open()];
    const received: string[] = [];
    const port = await freeRange(2);
    const socket = new UdpSocket('127.0.0.1', port, (_peer, datagram) => received.push(Buffer.from(datagram).toString()), LONGEST_BYTES);
    cleanups.push(() => socket.close());
    const text = 'x'.repeat(65_507);
    short.socket.addPeer('127.0.0.1', port);
    socket.send(socket.addPeer('127.0.0.1', short.socket.port), Buffer.from('short'), 5);
    expect(() => long.socket.send(long.socket.addPeer('127.0.0.1', port), Buffer.from(text), text.length)).toThrow(TypeError);
    const end = await far();
    const peer = socket.addPeer('127.0.0.1', end.address().port);
    socket.send(peer, Buffer.from(text), text.length);
    expect(((await once(end, 'message')) as [Buffer])[0].toString()).toBe(text);
    await send(end, socket, text);
    await expect.poll(() => received).toEqual([text]);
    await expect.poll(() => short.received).toEqual([[0, 'short']]);
  });

  it('sends what is queued before it closes, and nothing afterwards', async () => {
    const { socket } = await open();
    const end = await far();
    const peer = socket.addPeer('127.0.0.1', end.address().port);
    socket.send(peer, Buffer.from('bye'), 3);
    socket.close();
    socket.send(peer, Buffer.from('too late'), 8);
    const [datagram] = (await once(end, 'message')) as [Buffer];
    expect(datagram.toString()).toBe('bye');
    // The port is free.
    const again = new UdpSocket('127.0.0.1', socket.port, () => undefined);
    again.close();
    again.close();
  });

  it('has one peer at an address and port, until it is removed', async () => {
    const { socket, received } = await open();
    const end = await far();
    const { port } = end.address();
    const peer = socket.addPeer('127.0.0.1', port);
    expect([socket.addPeer('127.0.0.1', port), socket.findPeer('127.0.0.1', port), socket.findPeer('127.0.0.2', port)]).toEqual([
      -1,
      peer,
      -1,
    ]);
    socket.removePeer(peer);
    expect(socket.findPeer('127.0.0.1', port)).toBe(-1);
    expect(() => socket.removePeer(peer)).toThrow(RangeError);
    expect(() => socket.send(peer, Buffer.from('x'), 1)).toThrow(RangeError);
    await send(end, socket, 'gone');
    await expect.poll(() => socket.strangers).toBe(1);
    expect(received).toEqual([]);
  });

  it('drops and counts a packet that the system refuses, and sends those behind it', async () => {
    const { socket } = await open();
    const end = await far();
    const nowhere = socket.addPeer('127.0.0.1', 0);
    const peer = socket.addPeer('127.0.0.1', end.address().port);
    for (const [to, text] of [
      [nowhere, 'first'],
      [peer, 'second'],
      [nowhere, 'third'],
      [peer, 'fourth'],
    ] as const)
      socket.send(to, Buffer.from(text), text.length);
    const texts: string[] = [];
    end.on('message', (datagram) => texts.push(datagram.toString()));
    await expect.poll(() => texts).toEqual(['second', 'fourth']);
    expect(socket.sendErrors).toBe(2);
  });

  it('delivers an empty datagram for one that is too long, and refuses to send one', async () => {
    const { socket, received } = await open();
    const end = await far();
    const peer = socket.addPeer('127.0.0.1', end.address().port);
    await send(end, socket, Buffer.alloc(2_049));
    await expect.poll(() => received).toEqual([[peer, '']]);
    expect(() => socket.send(peer, Buffer.alloc(2_049), 2_049)).toThrow(TypeError);
    expect(() => socket.send(peer, Buffer.alloc(10), 11)).toThrow(TypeError);
  });

  it('throws the system’s error when the port is taken, and a TypeError for an invalid address', async () => {
    const { socket } = await open();
    expect(() => new UdpSocket('127.0.0.1', socket.port, () => undefined)).toThrow(expect.objectContaining({ code: 'EADDRINUSE' }));
    expect(() => new UdpSocket('localhost', 0, () => undefined)).toThrow(TypeError);
    expect(() => socket.addPeer('localhost', 1)).toThrow(TypeError);
  });

  it('lets a thread end under its traffic, many times, with nothing left behind', async () => {
    const addon = fileURLToPath(new URL('../../../native/build/Release/srtp.node', import.meta.url));
    const program = fileURLToPath(new URL('../../support/media/udp-thread.mjs', import.meta.url));
    const end = await far();
    const port = await freeRange(2);
    let answers = 0;
    end.on('message', () => {
      answers += 1;
      for (let copy = 0; copy < 8; copy += 1) end.send('ping', port, '127.0.0.1');
    });
    for (let round = 0; round < 20; round += 1) {
      const thread = new Worker(program, { workerData: { addon, port, peerPort: end.address().port } });
      await once(thread, 'message');
      const before = answers;
      end.send('ping', port, '127.0.0.1');
      await expect.poll(() => answers, { interval: 2 }).toBeGreaterThan(before + 50);
      await thread.terminate();
    }
  });

  it('lets a thread end that only calls it, and the process continues', async () => {
    const addon = fileURLToPath(new URL('../../../native/build/Release/srtp.node', import.meta.url));
    const program = `const { parentPort, workerData } = require('node:worker_threads');
      const { UdpSocket } = require(workerData);
      const socket = new UdpSocket('127.0.0.1', 0, Buffer.alloc(32 * 2_048), new Int32Array(3 * 32), () => undefined);
      parentPort.postMessage('open');
      for (;;) socket.findPeer('127.0.0.1', 1);`;
    for (let round = 0; round < 10; round += 1) {
      const thread = new Worker(program, { eval: true, workerData: addon });
      await once(thread, 'message');
      expect(await thread.terminate()).toBe(1);
    }
  });
});
