import { describe, expect, it } from 'vitest';
import { SrtpSession } from '../../../src/srtp/srtp.js';
import { aesCmKeystream, deriveKey, referenceProtectRtcp, referenceProtectRtp } from '../../support/media/aes-cm.js';
import { rtcpReceiverReport, rtpPacket } from '../../support/media/packets.js';

const hex = (text: string): Buffer => Buffer.from(text.replace(/\s/g, ''), 'hex');

// RFC 3711 Appendix B.3
const MASTER = hex('E1F97A0D3E018BE0D64FA32C06DE4139 0EC675AD498AFEEBB6960B3AABE6');

describe('the SRTP code', () => {
  it('[3711 B.2] makes the keystream of the appendix in the reference, at its start and across the 16-bit carry', () => {
    const key = hex('2B7E151628AED2A6ABF7158809CF4F3C');
    const start = aesCmKeystream(key, hex('F0F1F2F3F4F5F6F7F8F9FAFBFCFD0000'), 48);
    expect(start.toString('hex').toUpperCase()).toBe(
      'E03EAD0935C95E80E166B16DD92B4EB4D23513162B02D0F72A43A2FE4A5F97AB41E95B3BB0A2E8DD477901E4FCA894C0',
    );
    const late = aesCmKeystream(key, hex('F0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF'), 48);
    expect(late.toString('hex').toUpperCase()).toBe(
      'EC8CDF7398607CB0F2D21675EA9EA1E4362B7C3C6773516318A077D7FC5073AE6A2CC3787889374FBEB4C81B17BA6C44',
    );
  });

  it('[3711 B.3] derives the cipher key, salt and authentication key of the appendix in the reference', () => {
    expect(deriveKey(MASTER, 0, 16)).toEqual(hex('C61E7A93744F39EE10734AFE3FF7A087'));
    expect(deriveKey(MASTER, 2, 14)).toEqual(hex('30CBBC08863D8C85D49DB34A9AE1'));
    expect(deriveKey(MASTER, 1, 94)).toEqual(
      hex(`CEBE321F6FF7716B6FD4AB49AF256A156D38BAA48F0A0ACF3C34E2359E6CDBCEE049646C43D9327AD175578EF722709863
           71C10C9A369AC2F94A8C5FBCDDDC256D6E919A48B610EF17C2041E474035766B68642C59BBFC2F34DB60DBDFB2`),
    );
  });

  it('[3711 §3.1 B.3] protects an RTP packet to the bytes that the derived keys give', () => {
    const session = new SrtpSession(MASTER, 'send');
    const packet = rtpPacket({ sequenceNumber: 0x1234, rtpTimestamp: 0xdecafbad, ssrc: 0xcafebabe, payload: Buffer.alloc(160, 0xab) });
    const buffer = Buffer.alloc(packet.length + 10);
    buffer.set(packet);
    expect(session.protectRtp(buffer, packet.length)).toBe(182);
    expect(buffer).toEqual(referenceProtectRtp(MASTER, packet, 0));
  });

  it('[3711 §3.4 B.3] protects RTCP packets to the bytes that the derived keys give, and counts the index up', () => {
    const session = new SrtpSession(MASTER, 'send');
    const packet = rtcpReceiverReport(0xcafebabe);
    const produced = [1, 2, 3].map(() => {
      const buffer = Buffer.alloc(packet.length + 14);
      buffer.set(packet);
      return buffer.subarray(0, session.protectRtcp(buffer, packet.length));
    });
    expect(produced).toEqual([1, 2, 3].map((index) => referenceProtectRtcp(MASTER, packet, index)));
  });
});
