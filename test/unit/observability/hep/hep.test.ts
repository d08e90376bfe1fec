import { describe, expect, it } from 'vitest';
import { silentLog } from '../../../../src/lib/log.js';
import { hepPacket, type HepMessage } from '../../../../src/observability/hep/packet.js';
import { HepSender } from '../../../../src/observability/hep/sender.js';
import { until } from '../../../support/carrier-call.js';
import { decodeHep, HepCollector } from '../../../support/hep.js';

const MESSAGE: HepMessage = {
  from: { address: '192.0.2.1', port: 5061 },
  to: { address: '198.51.100.7', port: 49_152 },
  transport: 'tls',
  atMs: 1_790_000_000_123,
  callId: 'a1@carrier',
  text: 'INVITE sip:1@gw SIP/2.0\r\nSubject: ünïcode\r\n\r\n',
};

describe('a HEP3 packet', () => {
  it('has addresses, ports, time, call and text, each where the protocol says', () => {
    expect(decodeHep(hepPacket(MESSAGE, { captureId: 2_001, password: 'homer' }))).toEqual({
      family: 2,
      protocol: 6,
      source: '192.0.2.1:5061',
      destination: '198.51.100.7:49152',
      atMs: 1_790_000_000_123,
      payloadType: 1,
      captureId: 2_001,
      password: 'homer',
      payload: MESSAGE.text,
      correlationId: 'a1@carrier',
    });
  });

  it.each([
    ['2001:db8::1', '[2001:0db8:0000:0000:0000:0000:0000:0001]'],
    ['::1', '[0000:0000:0000:0000:0000:0000:0000:0001]'],
    ['2001:db8:1:2:3:4:5:6', '[2001:0db8:0001:0002:0003:0004:0005:0006]'],
    ['64:ff9b::192.0.2.33', '[0064:ff9b:0000:0000:0000:0000:c000:0221]'],
    ['fe80::', '[fe80:0000:0000:0000:0000:0000:0000:0000]'],
    ['fe80::1%eth0', '[fe80:0000:0000:0000:0000:0000:0000:0001]'],
  ])('of IPv6: %s', (address, spelled) => {
    const packet = decodeHep(
      hepPacket({ ...MESSAGE, from: { address, port: 1 }, to: { address, port: 2 }, transport: 'udp' }, { captureId: 1, password: null }),
    );
    expect(packet).toMatchObject({ family: 10, protocol: 17, source: `${spelled}:1`, destination: `${spelled}:2`, password: undefined });
  });

  it('of a message that is too long for a datagram has its beginning', () => {
    const packet = hepPacket({ ...MESSAGE, text: 'x'.repeat(100_000) }, { captureId: 1, password: null });
    expect(packet.length).toBeLessThan(65_507);
    expect(decodeHep(packet).payload).toHaveLength(60_000);
  });
});

describe('what is sent', () => {
  const SEEN = {
    sipCallId: 'a1@carrier',
    source: { ip: '192.0.2.1', port: 40_000, transport: 'tls', tls_version: null, tls_cipher: null },
    atMs: 1_790_000_000_000,
    text: 'BYE sip:x SIP/2.0\r\n\r\n',
  };

  it('goes from the carrier to our Contact and back; a Contact with a name stands for our address', async () => {
    const collector = await HepCollector.open();
    const outcomes: string[] = [];
    const sender = new HepSender({
      collector: { address: '127.0.0.1', port: collector.port },
      captureId: 7,
      password: null,
      ownAddress: '198.51.100.7',
      counts: { count: (_name, labels) => void outcomes.push(Object.values(labels).join()), observe: () => undefined },
      log: silentLog,
    });
    sender.send({ ...SEEN, direction: 'in', contact: '<sip:203.0.113.9:5071;transport=tls>' });
    sender.send({ ...SEEN, direction: 'out', contact: '<sip:gw.example.com:5071;transport=tls>' });
    await until(() => collector.packets.length === 2 && outcomes.length === 2, 2_000, 'no packets');
    sender.close();
    collector.close();
    expect(collector.packets.map(({ source, destination }) => `${source} > ${destination}`)).toEqual([
      '192.0.2.1:40000 > 203.0.113.9:5071',
      '198.51.100.7:5071 > 192.0.2.1:40000',
    ]);
    expect(outcomes).toEqual(['sent', 'sent']);
  });
});
