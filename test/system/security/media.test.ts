import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { RtpHeader, SrtpSession } from 'werift-rtp';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { silentLog } from '../../../src/lib/log.js';
import { generateSrtpKey } from '../../../src/srtp/srtp.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { RtpengineNode } from '../../../src/gateway/relay/node.js';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import { rtpPacket } from '../../support/media/packets.js';

// Packets that are not the caller's, or not new, against a call of the whole product with a bot that notes every sample it is given.

const ATTACKER = '127.0.0.2';
/** rtpengine 10.5 never reads a port again after five reads in a row that found 50 packets or more: an attack stays well below. */
const MOST_QUEUED = 20;
const FRAME = 160;
/** µ-law bytes that tell who said them. */
const CALLER = 0x11;
const FORGED = 0x22;
const PLAIN = 0x33;

let site: AgentSite;
let call: AgentCall;
/** A stranger's socket, and what comes back to it. */
let stranger: Socket;
let reflected: number;
let ports: { readonly relay: readonly number[]; readonly endpoint: readonly number[] };

const start = (leg: 'rtp' | 'srtp') => async (): Promise<void> => {
  site = await AgentSite.start({ TRUNKLINE_MEDIA_AGENT_LEG: leg });
  const { environment } = site.gateway;
  const range = (name: string): number[] => {
    const [first, last] = ['MIN', 'MAX'].map((end) => Number(environment[`TRUNKLINE_${name}_PORT_${end}`]));
    return Array.from({ length: last! - first! + 1 }, (_, index) => first! + index);
  };
  ports = { relay: range('RTPENGINE'), endpoint: range('MEDIA') };
};

beforeEach(async () => {
  reflected = 0;
  stranger = createSocket('udp4');
  stranger.on('message', () => (reflected += 1));
  stranger.bind(0, ATTACKER);
  await once(stranger, 'listening');
});

afterEach(() => stranger.close());

const figure = (text: string): void => console.log(`  figure: ${text}`);

interface RelayedTags {
  readonly tags: { readonly agent: { readonly medias: readonly { readonly streams: readonly { readonly 'local port': number }[] }[] } };
}

/** Packets of a key, as its owner would make them. */
class Packets {
  readonly #srtp: SrtpSession;
  #sequenceNumber = 1_000;

  constructor(
    key: Uint8Array,
    private readonly ssrc: number,
  ) {
    const [master, salt] = [Buffer.from(key).subarray(0, 16), Buffer.from(key).subarray(16)];
    const keys = { localMasterKey: master, localMasterSalt: salt, remoteMasterKey: master, remoteMasterSalt: salt };
    this.#srtp = new SrtpSession({ keys, profile: 1 });
  }

  next(said: number): Buffer {
    this.#sequenceNumber += 1;
    const plain = rtpPacket({ sequenceNumber: this.#sequenceNumber, ssrc: this.ssrc, payload: Buffer.alloc(FRAME, said) });
    return this.#srtp.encrypt(plain.subarray(12), RtpHeader.deSerialize(plain));
  }
}

const relayPort = (): number => Number(/^m=audio (\d+)/m.exec(call.ok.body)?.[1]);
const framesHeard = (said: number): number => call.bot.heard.filter((byte) => byte === said).length / FRAME;
const framesToCarrier = (said: number): number =>
  call.end.peer.received.filter(({ packet }) => packet.payload.filter((byte) => byte === said).length > FRAME / 2).length;

function send(socket: Socket, packet: Uint8Array, port: number): Promise<void> {
  return new Promise((resolve) => socket.send(packet, port, '127.0.0.1', () => resolve()));
}

/** The relay's ports towards the gateway, which a stranger's packets cannot come to where the two sides have addresses of their own. */
async function insidePorts(): Promise<number[]> {
  const port = Number(site.gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']);
  const node = new RtpengineNode({ address: '127.0.0.1', port, timeoutMs: 1_000, clock: systemClock, log: silentLog });
  const { calls } = (await node.command('list', { limit: 10 })) as { calls: string[] };
  const { tags } = (await node.command('query', { 'call-id': calls[0] })) as unknown as RelayedTags;
  node.close();
  return tags.agent.medias.flatMap(({ streams }) => streams.map((stream) => stream['local port']));
}

/** Plain RTP to every port of both ranges but the inside ones: what rtpbleed does. Resolves with how many packets there were. */
async function sweep(inside: readonly number[]): Promise<number> {
  const all = [...ports.relay, ...ports.endpoint].filter((port) => !inside.includes(port));
  for (const sequenceNumber of [1, 2, 3])
    for (const port of all) await send(stranger, rtpPacket({ sequenceNumber, payload: Buffer.alloc(FRAME, PLAIN) }), port);
  return 3 * all.length;
}

/** Resolves when rtpengine has read all that was sent to the carrier's port. */
async function readByRelay(): Promise<void> {
  const port = `:${relayPort().toString(16).toUpperCase().padStart(4, '0')}`;
  const queues = async (): Promise<(string | undefined)[]> =>
    (await readFile('/proc/net/udp', 'utf8'))
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local]) => local?.endsWith(port))
      .map(([, , , , queued]) => queued?.split(':')[1]);
  await expect.poll(queues, { interval: 1 }).toEqual(['00000000']);
}

/** The caller's own audio in real time, until it was heard and 100 ms without it: all that was sent before it has been looked at. */
async function callerSays(packets: Packets, frames: number, said = CALLER): Promise<Buffer[]> {
  const sent: Buffer[] = [];
  const before = framesHeard(said);
  const startedMs = performance.now();
  for (let frame = 0; frame < frames; frame += 1) {
    const delayMs = startedMs + 20 * frame - performance.now();
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    const packet = packets.next(said);
    sent.push(packet);
    await send(call.end.peer.rtpSocket, packet, relayPort());
  }
  await expect.poll(() => framesHeard(said) - before).toBeGreaterThanOrEqual(frames - 2);
  await expect.poll(() => call.bot.heard.subarray(-5 * FRAME).includes(said)).toBe(false);
  return sent;
}

describe.each(['srtp', 'rtp'] as const)('the gateway with media.agent_leg: %s', (leg) => {
  beforeAll(start(leg));
  afterAll(() => site.stop());

  it('[3711 §3.3.2] plays replayed packets once, and packets of another key never', async () => {
    call = await site.talking();
    const [own, forger] = [new Packets(call.end.key!, 0x1111_0000), new Packets(generateSrtpKey(), 0x1111_0000)];
    const recorded = await callerSays(own, 50);
    const heard = framesHeard(CALLER);
    let replayed = 0;
    let forged = 0;
    for (let round = 0; round < 4; round += 1)
      for (const packet of recorded) {
        await send(round % 2 === 0 ? stranger : call.end.peer.rtpSocket, packet, relayPort());
        await send(round % 2 === 0 ? stranger : call.end.peer.rtpSocket, forger.next(FORGED), relayPort());
        replayed += 1;
        forged += 1;
        if ((replayed + forged) % MOST_QUEUED === 0) await readByRelay();
      }
    // What the caller says next is heard: the attack has turned nothing away, and it has been dealt with.
    await callerSays(own, 25, CALLER + 1);
    figure(
      `${String(replayed)} packets replayed, ${String(forged)} of another key: of 50 said ${String(framesHeard(CALLER))} and ${String(framesHeard(FORGED))} frames at the agent, ${String(reflected)} reflected`,
    );
    expect(framesHeard(FORGED)).toBe(0);
    expect(framesHeard(CALLER)).toBe(heard);
    await call.hangUp();
  });

  if (leg === 'srtp') return;
  it('reflects and plays no plain RTP (rtpbleed) to any port before, in and after the call', async () => {
    call = await site.invite();
    await call.answered();
    const inside = await insidePorts();
    expect(inside).toHaveLength(2);
    let sent = await sweep(inside);
    call.bot = await site.bot.calls.at(site.bot.calls.all.length - 1);
    call.ack();
    await call.bot.message('start');
    const own = new Packets(call.end.key!, 0x1111_0001);
    await callerSays(own, 25);
    sent += await sweep(inside);
    await callerSays(own, 25);
    const heard = [framesHeard(PLAIN), framesToCarrier(PLAIN)];
    await call.hangUp();
    sent += await sweep([]);
    figure(
      `${String(sent)} packets to ${String(ports.relay.length + ports.endpoint.length)} ports: ${String(reflected)} reflected, ${String(heard[0])} frames at the agent, ${String(heard[1])} at the carrier`,
    );
    expect([reflected, ...heard]).toEqual([0, 0, 0]);
  });
});
