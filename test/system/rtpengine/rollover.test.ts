import { afterEach, beforeEach, expect, it } from 'vitest';
import { RtpHeader, SrtpSession } from 'werift-rtp';
import type { RelayCall } from '../../../src/gateway/ports/ports.js';
import { figuresOf } from '../../../src/gateway/relay/figures.js';
import { CallEnd } from '../../support/media/call-end.js';
import { negotiate } from '../../support/relayed-call.js';
import { RunningRtpengine } from '../../support/rtpengine.js';

const CALL: RelayCall = { relayId: 'long', agentSideSrtp: false, carrierSideSrtp: true };
/** A receiver guesses a packet's rollover counter by the sequence numbers before: no step may be larger. */
const STEP = 20_000;

let rtpengine: RunningRtpengine;
let carrier: CallEnd;
let agent: CallEnd;

beforeEach(async () => {
  rtpengine = await RunningRtpengine.start(20);
  [carrier, agent] = await Promise.all([CallEnd.open(), CallEnd.open({ key: null })]);
});

afterEach(() => Promise.all([rtpengine.stop(), carrier.close(), agent.close()]));

/** A carrier's sender that keeps one key and one rollover counter for the whole call. */
class Sender {
  #index = 65_530;

  constructor(
    private readonly srtp: SrtpSession,
    private readonly send: (packet: Buffer) => void,
  ) {}

  packets(count: number): void {
    for (let packet = 0; packet < count; packet += 1) this.#packet(1);
  }

  /** On to where the sequence number starts anew, most packets left out, and ten over it one by one. */
  wrap(): void {
    for (const step of [STEP, STEP, STEP, 65_526 - 3 * STEP]) this.#packet(step);
    this.packets(10);
  }

  #packet(step: number): void {
    this.#index += step;
    const header = new RtpHeader({ payloadType: 0, sequenceNumber: this.#index & 0xffff, timestamp: this.#index * 160, ssrc: 7 });
    this.send(this.srtp.encrypt(Buffer.alloc(160, 0x55), header));
  }
}

// Why SRTP passes through rtpengine once a call has moved (docs/rtpengine.md).
it.each([
  [1, { packets: 10, errors: 0 }],
  [2, { packets: 0, errors: 10 }],
  [3, { packets: 0, errors: 10 }],
])(
  '[3711 §3.3.1] another rtpengine that ends the SRTP of a carrier with a rollover counter of %i understands it: %j',
  async (rollovers, expected) => {
    const [pool, node] = [rtpengine.pool(), rtpengine.node()];
    const figures = async () => figuresOf(await node.command('query', { 'call-id': 'test:long' }))!.fromCarrier;
    const { outside } = await negotiate(pool, 'carrier', CALL, carrier, agent);
    const key = Buffer.from(carrier.key!);
    const keys = { localMasterKey: key.subarray(0, 16), localMasterSalt: key.subarray(16) };
    let port = outside.rtpPort;
    const sender = new Sender(
      new SrtpSession({ keys: { ...keys, remoteMasterKey: keys.localMasterKey, remoteMasterSalt: keys.localMasterSalt }, profile: 1 }),
      (packet) => carrier.peer.rtpSocket.send(packet, port, '127.0.0.1'),
    );
    sender.packets(10);
    for (let rollover = 1; rollover < rollovers; rollover += 1) sender.wrap();
    await expect.poll(figures).toMatchObject({ packets: 10 + 14 * (rollovers - 1), errors: 0 });
    pool.leave('long');
    port = (await negotiate(pool, 'agent', CALL, carrier, agent)).outside.rtpPort;
    sender.packets(10);
    await expect.poll(figures).toMatchObject(expected);
    pool.close();
    node.close();
  },
);
