import { describe, expect, it } from 'vitest';
import {
  chooseCrypto,
  readAnswer,
  readOffer,
  readRelaySdp,
  type CarrierMedia,
  commonEvents,
} from '../../../../src/gateway/sdp/sdp-read.js';
import { canonicalSdp, OWN_OFFER, repeatedOffer, sessionSdp } from '../../../../src/gateway/sdp/sdp-write.js';
import { KEY, offerSdp, OTHER_KEY } from '../../../support/sdp.js';

const SUITE = 'AES_CM_128_HMAC_SHA1_80';

function accepted(sdp: string): CarrierMedia {
  const offer = readOffer(sdp, 'required');
  if (!offer.ok) throw new Error(offer.error);
  return offer.value;
}

const RELAY = readRelaySdp(
  offerSdp({ payloads: '0 101', port: 30_000, crypto: [`1 ${SUITE} inline:${OTHER_KEY}`], extra: ['a=rtcp:30001'] }),
)!;

describe('readOffer', () => {
  it('[3264 §6] takes the first of PCMU and PCMA, and telephone-event with its payload type', () => {
    expect(accepted(offerSdp())).toMatchObject({
      codec: { name: 'PCMU', payloadType: 0 },
      telephoneEvent: 101,
      crypto: { tag: '1' },
      port: 9,
      rtcpPort: 10,
    });
    expect(accepted(offerSdp({ payloads: '9 8 0 96', rtpmap: ['9 G722/8000', '96 telephone-event/8000'] }))).toMatchObject({
      codec: { name: 'PCMA', payloadType: 8 },
      telephoneEvent: 96,
    });
  });

  it('[3551 §6] takes static payload types without rtpmap', () => {
    expect(accepted(offerSdp({ rtpmap: [] }))).toMatchObject({ codec: { name: 'PCMU' }, telephoneEvent: null });
  });

  it('[4733 §2.5] ignores telephone-event at another clock rate', () => {
    const rtpmap = ['0 PCMU/8000', '97 telephone-event/48000', '101 telephone-event/8000'];
    expect(accepted(offerSdp({ payloads: '0 97 101', rtpmap })).telephoneEvent).toBe(101);
  });

  it.each([
    ['plain RTP', offerSdp({ profile: 'RTP/AVP', crypto: [] }), 'SRTP_REQUIRED'],
    ['SAVP without a key', offerSdp({ crypto: [] }), 'SRTP_REQUIRED'],
    ['DTLS only', offerSdp({ profile: 'UDP/TLS/RTP/SAVP', crypto: [] }), 'SRTP_REQUIRED'],
    ['another suite only', offerSdp({ crypto: ['1 AES_CM_128_HMAC_SHA1_32 inline:' + KEY] }), 'SRTP_SUITE_UNSUPPORTED'],
    ['G722 only', offerSdp({ payloads: '9', rtpmap: ['9 G722/8000'] }), 'NO_COMMON_CODEC'],
    ['PCMU at another rate', offerSdp({ payloads: '96', rtpmap: ['96 PCMU/16000'] }), 'NO_COMMON_CODEC'],
    ['no audio', offerSdp().replace('m=audio', 'm=video'), 'BAD_SDP'],
    ['a name for an address', offerSdp({ address: 'media.example.com' }), 'BAD_SDP'],
    ['a disabled line', offerSdp({ port: 0 }), 'BAD_SDP'],
    ['text that is not SDP', 'hello', 'BAD_SDP'],
    ['nothing', '', 'BAD_SDP'],
    ['a number for a profile', offerSdp().replace('RTP/SAVP', '0 RTP/SAVP'), 'BAD_SDP'],
    ['a number for a kind of media', offerSdp().replace('m=audio', 'm=5'), 'BAD_SDP'],
    ['a number for an address', offerSdp({ address: '5' }), 'BAD_SDP'],
  ])('refuses %s', (_what, sdp, reason) => {
    expect(readOffer(sdp, 'required')).toEqual({ ok: false, error: reason });
  });

  it('takes plain RTP where the number allows it', () => {
    expect(readOffer(offerSdp({ profile: 'RTP/AVP', crypto: [] }), 'optional')).toMatchObject({ ok: true, value: { crypto: null } });
  });

  it('[8643] takes AVP with a key as secured', () => {
    expect(accepted(offerSdp({ profile: 'RTP/AVP' })).crypto?.inline).toBe(KEY);
  });

  it('prefers the secured line of two, whichever is first', () => {
    const plain = 'm=audio 40002 RTP/AVP 0\r\n';
    expect(accepted(offerSdp() + plain).chosen).toBe(0);
    expect(accepted(offerSdp().replace('m=audio', `${plain}m=audio`)).chosen).toBe(1);
  });

  it.each([
    ['sendonly', '127.0.0.1', true],
    ['inactive', '127.0.0.1', true],
    ['recvonly', '127.0.0.1', false],
    ['sendrecv', '0.0.0.0', true],
  ])('[3264 §8.4] reads hold from %s at %s', (direction, address, isHeld) => {
    expect(accepted(offerSdp({ direction, address })).isHeld).toBe(isHeld);
  });
});

describe('the carrier’s RTCP port', () => {
  it.each([
    ['no a=rtcp', [], 40_001],
    ['a=rtcp alone', ['a=rtcp:40005'], 40_005],
    ['a=rtcp with the address', ['a=rtcp:40005 IN IP4 127.0.0.1'], 40_005],
    ['the discard port of an offer with ICE', ['a=rtcp:9 IN IP4 0.0.0.0', 'a=rtcp-mux'], 40_001],
    ['the discard port alone', ['a=rtcp:9'], 40_001],
    ['a port at no address', ['a=rtcp:40005 IN IP6 ::', 'a=rtcp-mux'], 40_001],
    ['port 0', ['a=rtcp:0'], 40_001],
    ['a port out of range', ['a=rtcp:70000'], 40_001],
  ])('[3605 §2.1] [8829 §5.2.1] is read from %s', (_what, extra, port) => {
    expect(accepted(offerSdp({ port: 40_000, extra })).rtcpPort).toBe(port);
  });

  it('is that of a=rtcp while the call is held by address', () => {
    const held = offerSdp({ port: 40_000, address: '0.0.0.0', extra: ['a=rtcp:40005 IN IP4 0.0.0.0'] });
    expect(accepted(held).rtcpPort).toBe(40_005);
  });
});

describe('hold by address', () => {
  it.each([
    ['sendrecv', '0.0.0.0', 'recvonly'],
    ['sendonly', '0.0.0.0', 'recvonly'],
    ['recvonly', '0.0.0.0', 'inactive'],
    ['inactive', '0.0.0.0', 'inactive'],
    ['sendrecv', '::', 'recvonly'],
  ])('[3264 §8.4] from %s at %s is answered with %s', (direction, address, answered) => {
    const sdp = offerSdp({ direction, address }).replaceAll('IP4 ::', 'IP6 ::');
    expect(sessionSdp(accepted(sdp), RELAY, { sessionId: '7', version: 1 })).toContain(`a=${answered}\r\n`);
  });
});

describe('telephone-event in an offer', () => {
  it.each([
    [undefined, '0-15'],
    ['0-15', '0-15'],
    ['0-16', '0-15'],
    ['0-11', '0-11'],
    ['0-11,66', '0-11'],
    ['0,1,2,5-7', '0-2,5-7'],
    ['events=0-15', '0-15'],
    ['0-15,32-36', '0-15'],
    [15, '15'],
    ['66-70', ''],
    ['nonsense', '0-15'],
  ])('[4733 §2.5.1.1] with fmtp %j has the common events %j', (format, events) => {
    expect(commonEvents(format)).toBe(events);
  });

  it('[4733 §2.5.1] is answered with the offered payload type and the common events', () => {
    const rtpmap = ['0 PCMU/8000', '96 telephone-event/8000'];
    const offer = accepted(offerSdp({ payloads: '0 96', rtpmap, extra: ['a=fmtp:96 0-11,66'] }));
    const answer = sessionSdp(offer, RELAY, { sessionId: '7', version: 1 })!;
    expect(answer).toContain('RTP/SAVP 0 96\r\n');
    expect(answer).toContain('a=fmtp:96 0-11\r\n');
  });

  it('[3264 §6.1] may have another type in the answer: we send that one, and our own descriptions keep ours', () => {
    const given = readAnswer(offerSdp({ payloads: '0 96', rtpmap: ['0 PCMU/8000', '96 telephone-event/8000'] }), OWN_OFFER);
    if (!given.ok) throw new Error('the answer is refused');
    expect(given.value).toMatchObject({ telephoneEvent: 96, ownTelephoneEvent: 101, events: '0-15' });
    for (const own of [canonicalSdp(given.value), sessionSdp(given.value, RELAY, { sessionId: '7', version: 2 })])
      expect(own).toContain('RTP/SAVP 0 101\r\n');
    expect(repeatedOffer(given.value).telephoneEvent).toBe(101);
  });

  it('is not answered when the m-line does not list it, or there is no common event', () => {
    const rtpmap = ['0 PCMU/8000', '96 telephone-event/8000'];
    expect(accepted(offerSdp({ payloads: '0', rtpmap })).telephoneEvent).toBeNull();
    expect(accepted(offerSdp({ payloads: '0 96', rtpmap, extra: ['a=fmtp:96 66-70'] })).telephoneEvent).toBeNull();
  });
});

describe('chooseCrypto', () => {
  it.each([
    ['a lifetime', [`1 ${SUITE} inline:${KEY}|2^31`], '1'],
    ['a zero tag', [`0 ${SUITE} inline:${KEY}`], '0'],
    ['the order of the offer', [`2 AES_CM_128_HMAC_SHA1_32 inline:${KEY}`, `7 ${SUITE} inline:${KEY}`, `1 ${SUITE} inline:${KEY}`], '7'],
    ['a line with an MKI where there is no other', [`3 ${SUITE} inline:${KEY}|2^31|1:4`], '3'],
    ['an MKI of 128 bytes', [`3 ${SUITE} inline:${KEY}|1:128`], '3'],
    ['session parameters without effect on us', [`4 ${SUITE} inline:${KEY} WSH=64 KDR=0 -X=1`], '4'],
    ['a line without MKI before one with', [`1 ${SUITE} inline:${KEY}|1:4`, `2 ${SUITE} inline:${KEY}`], '2'],
  ])('[4568 §6] accepts %s', (_what, lines, tag) => {
    expect(chooseCrypto(lines)?.tag).toBe(tag);
  });

  it.each([
    ['a key of the wrong length', [`1 ${SUITE} inline:${KEY.slice(0, 36)}`]],
    ['a duplicate tag', [`1 ${SUITE} inline:${KEY}`, `01 ${SUITE} inline:${KEY}`]],
    ['UNENCRYPTED_SRTP', [`1 ${SUITE} inline:${KEY} UNENCRYPTED_SRTP`]],
    ['UNENCRYPTED_SRTCP after another parameter', [`1 ${SUITE} inline:${KEY} WSH=64 UNENCRYPTED_SRTCP`]],
    ['new keys on the way', [`1 ${SUITE} inline:${KEY} KDR=8`]],
    ['a KDR of 2^1', [`1 ${SUITE} inline:${KEY} KDR=1`]],
    ['FEC_ORDER', [`1 ${SUITE} inline:${KEY} FEC_ORDER=FEC_SRTP`]],
    ['FEC_KEY', [`1 ${SUITE} inline:${KEY} FEC_KEY=inline:${KEY}`]],
    ['an unknown parameter', [`1 ${SUITE} inline:${KEY} NEWS=1`]],
    ['UNAUTHENTICATED_SRTP', [`1 ${SUITE} inline:${KEY} UNAUTHENTICATED_SRTP`]],
    ['a tag of ten digits', [`1234567890 ${SUITE} inline:${KEY}`]],
    ['an MKI of no length', [`1 ${SUITE} inline:${KEY}|1:0`]],
    ['an MKI of 129 bytes', [`1 ${SUITE} inline:${KEY}|1:129`]],
    ['an MKI that does not fit its length', [`1 ${SUITE} inline:${KEY}|256:1`]],
    ['two MKIs', [`1 ${SUITE} inline:${KEY}|1:4|2:4`]],
    ['two keys', [`1 ${SUITE} inline:${KEY}|1:4;inline:${KEY}|2:4`]],
    ['a key that is not base64', [`1 ${SUITE} inline:${'*'.repeat(40)}`]],
  ])('[4568 §6] refuses %s', (_what, lines) => {
    expect(chooseCrypto(lines)).toBeUndefined();
  });
});

describe('the SDP for rtpengine and the carrier', () => {
  it('has one line and one key for rtpengine', () => {
    const offer = accepted(
      offerSdp({
        crypto: [`3 ${SUITE} inline:${KEY}|2^48`],
        extra: ['a=rtcp-mux', 'a=fingerprint:sha-256 AA', 'a=candidate:1 1 UDP 1 192.0.2.1 1 typ host'],
      }),
    );
    expect(canonicalSdp(offer).split('\r\n')).toEqual([
      'v=0',
      'o=- 1 1 IN IP4 127.0.0.1',
      's=-',
      'c=IN IP4 127.0.0.1',
      't=0 0',
      'm=audio 9 RTP/SAVP 0 101',
      'a=rtpmap:0 PCMU/8000',
      'a=rtpmap:101 telephone-event/8000',
      'a=fmtp:101 0-15',
      `a=crypto:3 ${SUITE} inline:${KEY}`,
      'a=rtcp:10',
      'a=ptime:20',
      'a=sendrecv',
      '',
    ]);
  });

  it('[3264 §6] answers every line in order, in its own profile, with the offered tag', () => {
    const offer = accepted(offerSdp({ profile: 'RTP/SAVPF' }).replace('m=audio', 'm=video 5000 RTP/AVP 96\r\nm=audio'));
    const answer = sessionSdp(offer, RELAY, { sessionId: '7', version: 1 })!;
    expect(answer).toContain('\r\nm=video 0 RTP/AVP 96\r\nm=audio 30000 RTP/SAVPF 0 101\r\n');
    expect(answer.match(/a=crypto/g)).toHaveLength(1);
    expect(answer).toContain(`a=crypto:1 ${SUITE} inline:${OTHER_KEY}`);
    expect(answer).toContain('a=rtcp:30001');
    expect(answer).not.toContain('rtcp-mux');
  });

  it('never has a key that rtpengine did not give, or another tag', () => {
    const offer = accepted(offerSdp({ crypto: [`2 ${SUITE} inline:${KEY}`] }));
    expect(sessionSdp(offer, RELAY, { sessionId: '7', version: 1 })).toBeUndefined();
    expect(sessionSdp(offer, { ...RELAY, crypto: null }, { sessionId: '7', version: 1 })).toBeUndefined();
  });

  it.each([
    ['sendonly', 'recvonly'],
    ['recvonly', 'sendonly'],
    ['inactive', 'inactive'],
  ])('[3264 §6.1] answers %s with %s', (offered, answered) => {
    expect(sessionSdp(accepted(offerSdp({ direction: offered })), RELAY, { sessionId: '7', version: 1 })).toContain(`a=${answered}\r\n`);
  });
});
