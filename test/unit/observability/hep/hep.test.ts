import { describe, expect, it } from 'vitest';
import { silentLog } from '../../../../src/lib/log.js';
import { hepPacket, type HepMessage } from '../../../../src/observability/hep/packet.js';
import { rtcpJson } from '../../../../src/observability/hep/rtcp-json.js';
import { HepSender } from '../../../../src/observability/hep/sender.js';
import { until } from '../../../support/carrier-call.js';
import { decodeHep, HepCollector } from '../../../support/hep.js';

const MESSAGE: HepMessage = {
  from: { address: '192.0.2.1', port: 5061 },
  to: { address: '198.51.100.7', port: 49_152 },
  transport: 'tls',
  atMs: 1_790_000_000_123,
  callId: 'a1@carrier',
  protocol: 'sip',
  text: 'INVITE sip:1@gw SIP/2.0\r\nSubject: ünïcode\r\n\r\n',
};

describe('a HEP3 packet', () => {
  it('has addresses, ports, time, call and text where the protocol requires them', () => {
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
  ])('has the IPv6 address %s', (address, spelled) => {
    const packet = decodeHep(
      hepPacket({ ...MESSAGE, from: { address, port: 1 }, to: { address, port: 2 }, transport: 'udp' }, { captureId: 1, password: null }),
    );
    expect(packet).toMatchObject({ family: 10, protocol: 17, source: `${spelled}:1`, destination: `${spelled}:2`, password: undefined });
  });

  it('has the beginning of a message that is too long for a datagram', () => {
    const packet = hepPacket({ ...MESSAGE, text: 'x'.repeat(100_000) }, { captureId: 1, password: null });
    expect(packet.length).toBeLessThan(65_507);
    expect(decodeHep(packet).payload).toHaveLength(60_000);
  });
});

/** Two words of a header, then words (RFC 3550 §6.4). */
function rtcp(count: number, type: number, ...words: readonly number[]): Buffer {
  const packet = Buffer.alloc(4 + 4 * words.length);
  packet.set([0x80 | count, type, 0, words.length]);
  words.forEach((word, i) => packet.writeUInt32BE(word >>> 0, 4 + 4 * i));
  return packet;
}

const SDES = Buffer.concat([rtcp(1, 202, 0xdeadbeef), Buffer.from([1, 5]), Buffer.from('a"b\\c'), Buffer.alloc(1)]);
SDES[3] = 3;
/** 2 of 256 lost since the last report, one more came than was sent in all, sequence number 70,000, jitter 44, LSR, DLSR. */
const BLOCK = [0x11223344, 0x02ffffff, 70_000, 44, 0xaabbccdd, 65_536];

describe('the JSON of RTCP', () => {
  it('[3550 §6.4.1] has for a sender its figures, blocks and name, under the names that Homer reads', () => {
    const packet = Buffer.concat([rtcp(1, 200, 0xdeadbeef, 3_999_999_999, 0x80000000, 160_000, 1_000, 160_000, ...BLOCK), SDES]);
    expect(JSON.parse(rtcpJson(packet) ?? '')).toEqual({
      sender_information: {
        ntp_timestamp_sec: 3_999_999_999,
        ntp_timestamp_usec: 0x80000000,
        octets: 160_000,
        rtp_timestamp: 160_000,
        packets: 1_000,
      },
      ssrc: 0xdeadbeef,
      type: 200,
      report_count: 1,
      report_blocks: [
        {
          source_ssrc: 0x11223344,
          highest_seq_no: 70_000,
          fraction_lost: 2,
          ia_jitter: 44,
          packets_lost: -1,
          lsr: 0xaabbccdd,
          dlsr: 65_536,
        },
      ],
      sdes_report_count: 1,
      sdes_information: [{ sdes_chunk_ssrc: 0xdeadbeef, type: 1, text: 'a"b\\c' }],
    });
  });

  it('[3550 §6.4.2] has for a receiver no sender information; more reports add their blocks, and BYE adds nothing', () => {
    const packet = Buffer.concat([rtcp(1, 201, 7, ...BLOCK), rtcp(1, 201, 7, ...BLOCK), rtcp(1, 203, 7)]);
    const json = JSON.parse(rtcpJson(packet) ?? '') as Record<string, unknown>;
    expect(Object.keys(json)).toEqual(['ssrc', 'type', 'report_count', 'report_blocks', 'sdes_report_count', 'sdes_information']);
    expect(json).toMatchObject({ ssrc: 7, type: 201, report_count: 2, report_blocks: [{ ia_jitter: 44 }, { ia_jitter: 44 }] });
  });

  it.each([Buffer.alloc(0), SDES, rtcp(1, 200, 1), Buffer.from('INVITE sip:1@gw SIP/2.0')])('is null for anything else', (packet) => {
    expect(rtcpJson(packet)).toBeNull();
  });
});

describe('a HEP sender', () => {
  const SEEN = {
    sipCallId: 'a1@carrier',
    source: { ip: '192.0.2.1', port: 40_000, transport: 'tls', tls_version: null, tls_cipher: null },
    atMs: 1_790_000_000_000,
    text: 'BYE sip:x SIP/2.0\r\n\r\n',
  };

  it('sends messages between the carrier and our Contact; a Contact with a name gets our address', async () => {
    const collector = await HepCollector.open();
    const outcomes: string[] = [];
    const sender = new HepSender({
      collector: { address: '127.0.0.1', port: collector.port },
      captureId: 7,
      password: null,
      ownAddress: '198.51.100.7',
      counts: { count: (_name, labels) => void outcomes.push(Object.values(labels).join()) },
      log: silentLog,
    });
    sender.send({ ...SEEN, direction: 'in', contact: '<sip:203.0.113.9:5071;transport=tls>' });
    sender.send({ ...SEEN, direction: 'out', contact: '<sip:gw.example.com:5071;transport=tls>' });
    await until(() => collector.packets.length === 2 && outcomes.length === 2, 'no packets', { withinMs: 2_000 });
    sender.close();
    collector.close();
    expect(collector.packets.map(({ source, destination }) => `${source} > ${destination}`)).toEqual([
      '192.0.2.1:40000 > 203.0.113.9:5071',
      '198.51.100.7:5071 > 192.0.2.1:40000',
    ]);
    expect(outcomes).toEqual(['sent', 'sent']);
  });

  it('sends RTCP as protocol 5 over UDP, between the addresses of the datagram, under the Call-ID, and nothing else', async () => {
    const collector = await HepCollector.open();
    const sender = new HepSender({
      collector: { address: '127.0.0.1', port: collector.port },
      captureId: 7,
      password: null,
      ownAddress: '198.51.100.7',
      counts: { count: () => undefined },
      log: silentLog,
    });
    const seen = {
      sipCallId: 'a1@carrier',
      from: { address: '192.0.2.1', port: 30_001 },
      to: { address: '198.51.100.7', port: 23_401 },
      atMs: 1_790_000_000_123,
    };
    sender.sendRtcp({ ...seen, packet: Buffer.from('nonsense') });
    sender.sendRtcp({ ...seen, packet: rtcp(0, 201, 9) });
    await until(() => collector.packets.length > 0, 'no packet', { withinMs: 2_000 });
    sender.close();
    collector.close();
    const [{ payload, ...packet } = { payload: '' }] = collector.packets;
    expect(packet).toEqual({
      family: 2,
      protocol: 17,
      source: '192.0.2.1:30001',
      destination: '198.51.100.7:23401',
      atMs: 1_790_000_000_123,
      payloadType: 5,
      captureId: 7,
      password: undefined,
      correlationId: 'a1@carrier',
    });
    expect(JSON.parse(payload)).toMatchObject({ ssrc: 9, type: 201 });
  });
});
