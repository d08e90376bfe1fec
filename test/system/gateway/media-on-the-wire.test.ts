import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { RunningGateway } from '../../support/gateway.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { CallEnd } from '../../support/media/call-end.js';
import { rtpPacket } from '../../support/media/packets.js';
import type { SipPeer, WireMessage } from '../../support/sip-peer.js';
import { withGateway } from '../../support/with-gateway.js';

const NUMBER = '+15550100100';

let gateway: RunningGateway;
let peer: SipPeer;
withGateway((site) => ({ gateway, peer } = site));

async function called(end: CallEnd): Promise<{ call: HandMadeCall; ok: WireMessage }> {
  const call = new HandMadeCall(peer, NUMBER);
  const ok = await call.answered(end.sdp());
  end.connect(ok.body);
  return { call, ok };
}

const portOf = ({ body }: WireMessage): number => Number(/^m=audio (\d+)/m.exec(body)?.[1]);

describe('the audio of a carrier', () => {
  it.each([10, 20, 30, 40, 60])('[3551 §4.2] in packets of %i ms reaches the agent', async (packetMs) => {
    const end = await CallEnd.open();
    const { call, ok } = await called(end);
    await end.hearsEcho(6_000, packetMs);
    await call.hangUp(ok);
    await end.close();
  });

  it.each(['PCMU', 'PCMA'] as const)(
    '[3264 §5.1] [3551 §6] in %s under the dynamic type 97 flows both ways, and so do digits',
    async (codec) => {
      const end = await CallEnd.open({ codec, payloadType: 97, telephoneEventPayloadType: 98 });
      const { call, ok } = await called(end);
      expect(ok.body).toMatch(/^m=audio \d+ RTP\/SAVP 97 98\r$/m);
      // A key ends the greeting.
      await end.hearsEcho(6_000);
      expect(new Set(end.peer.received.map(({ packet }) => packet.header.payloadType))).toEqual(new Set([97]));
      await call.hangUp(ok);
      await end.close();
    },
  );

  it('reaches the agent from the first word; the agent sends nothing before the ACK, and greets right after it', async () => {
    const end = await CallEnd.open();
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(end.sdp());
    const ok = await call.final();
    end.connect(ok.body);
    // The carrier's own audio comes before its ACK, as it may.
    await end.peer.speak(new Int16Array(160 * 10));
    expect(end.peer.received).toHaveLength(0);
    call.ack(ok);
    await end.hearsAgent();
    const first = end.peer.received[0]!.packet.header;
    expect(first.marker).toBe(true);
    expect(end.peer.received.slice(0, 5).map(({ packet }) => packet.header.sequenceNumber - first.sequenceNumber)).toEqual([0, 1, 2, 3, 4]);
    await call.hangUp(ok);
    await end.close();
  });
});

describe('packets that another sender forges', () => {
  it.each([
    ['before the carrier has sent anything', true],
    ['in the middle of the call', false],
  ])('[3711 §3.3] neither reach the agent nor redirect the audio of the carrier when they come %s', async (_when, isFirst) => {
    const [end, other] = [await CallEnd.open(), createSocket('udp4')];
    let stolen = 0;
    other.on('message', () => (stolen += 1));
    other.bind(0, '127.0.0.1');
    await once(other, 'listening');
    const { call, ok } = await called(end);
    const forge = (): void => {
      for (let sequenceNumber = 1; sequenceNumber <= 50; sequenceNumber += 1)
        other.send(Buffer.concat([rtpPacket({ sequenceNumber }), Buffer.alloc(10, 1)]), portOf(ok), '127.0.0.1');
    };
    if (isFirst) forge();
    else await end.hearsAgent();
    forge();
    await end.hearsEcho(5_500);
    expect(stolen).toBe(0);
    await call.hangUp(ok);
    other.close();
    await end.close();
  });

  it('[3711 §3.3] with another key reach neither the agent, nor the watchdog, nor the figures', async () => {
    const end = await CallEnd.open();
    const { call, ok } = await called(end);
    await end.hearsEcho(2_500);
    const forger = await CallEnd.open();
    forger.connect(ok.body);
    await forger.peer.speak(new Int16Array(160 * 20).fill(9_000));
    await end.hearsEcho(-2_500);
    expect(forger.peer.received).toHaveLength(0);
    await call.hangUp(ok);
    await Promise.all([end.close(), forger.close()]);
    expect(await gateway.record(call.callId)).toMatchObject({ quality: { relay: { from_agent: { errors: 0 } } } });
  });
});
