import { describe, expect, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { CallEnd } from '../../support/media/call-end.js';
import { KEY, offerSdp, OTHER_KEY } from '../../support/sdp.js';
import type { SipPeer, WireMessage } from '../../support/sip-peer.js';
import { withWorld } from '../with-world.js';

const NUMBER = '+15550100100';
const SAVP_KEY = `a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${KEY}`;

let peer: SipPeer;
withWorld((site) => ({ peer } = site));

/** The final answer; a call that was answered is hung up again. */
async function answerTo(sdp: string, extra: readonly string[] = []): Promise<WireMessage> {
  const call = new HandMadeCall(peer, NUMBER);
  call.invite(sdp, extra);
  const answer = await call.final();
  if (answer.status === 200) {
    call.ack(answer);
    await call.hangUp(answer);
  }
  return answer;
}

const mediaLines = (answer: WireMessage): string[] => answer.body.match(/^m=.*(?=\r$)/gm) ?? [];
const codeOf = (answer: WireMessage): string => /"(\w+):/.exec(answer.header('Warning') ?? '')?.[1] ?? '';

/** A description of the lines given, ended by CRLF, after the usual head. */
const description = (...lines: readonly string[]): string =>
  ['v=0', 'o=carrier 1 1 IN IP4 127.0.0.1', 's=-', 'c=IN IP4 127.0.0.1', 't=0 0', ...lines, ''].join('\r\n');

describe('the answer to an offer of codecs and telephone-events', () => {
  it.each([
    ['PCMU first', { payloads: '0 8 101' }, '0 101', 'a=rtpmap:0 PCMU/8000'],
    ['PCMA first', { payloads: '8 0 101' }, '8 101', 'a=rtpmap:8 PCMA/8000'],
    ['G722 before PCMA', { payloads: '9 8 101', rtpmap: ['9 G722/8000', '8 PCMA/8000', '101 telephone-event/8000'] }, '8 101', 'PCMA'],
    ['static types without rtpmap', { payloads: '8 0', rtpmap: [] }, '8', 'a=rtpmap:8 PCMA/8000'],
    ['PCMU at a dynamic type', { payloads: '118', rtpmap: ['118 PCMU/8000'] }, '118', 'a=rtpmap:118 PCMU/8000'],
  ])('[3264 §6.1] has the first of the two codecs that the offer lists: %s', async (_what, parts, payloads, mapping) => {
    const answer = await answerTo(offerSdp(parts));
    expect(mediaLines(answer)).toEqual([expect.stringMatching(new RegExp(`^m=audio \\d+ RTP/SAVP ${payloads}$`))]);
    expect(answer.body).toContain(mapping);
  });

  it.each([
    [96, undefined, '0-15'],
    [101, '0-11', '0-11'],
    [101, '0-16', '0-15'],
    [127, '0-15,66,70', '0-15'],
    [127, '0-9', '0-9'],
  ])('[4733 §2.5.1.1] has telephone-event at the offered type %i: fmtp %s gets %s', async (payloadType, format, events) => {
    const type = String(payloadType);
    const extra = format === undefined ? [] : [`a=fmtp:${type} ${format}`];
    const answer = await answerTo(offerSdp({ payloads: `0 ${type}`, rtpmap: ['0 PCMU/8000', `${type} telephone-event/8000`], extra }));
    expect(mediaLines(answer)[0]).toMatch(new RegExp(` 0 ${type}$`));
    expect(answer.body).toContain(`a=fmtp:${type} ${events}\r\n`);
  });

  it('[4733 §2.5.1] has the telephone-event with the clock of PCMU when several are offered', async () => {
    const rtpmap = ['0 PCMU/8000', '96 telephone-event/16000', '97 telephone-event/8000'];
    expect(mediaLines(await answerTo(offerSdp({ payloads: '0 96 97', rtpmap })))[0]).toMatch(/ 0 97$/);
  });

  it.each(['a=ptime:10', 'a=ptime:30', 'a=ptime:40', 'a=ptime:60', 'a=maxptime:20', 'a=maxptime:150'])(
    '[3264 §6.1] has packets of 20 ms when the offer has %s',
    async (line) => {
      const answer = await answerTo(offerSdp({ extra: [line] }));
      expect(answer.body.match(/^a=(?:max)?ptime:.*(?=\r$)/gm)).toEqual(['a=ptime:20']);
    },
  );
});

describe('the answer to an offer of m-lines and profiles', () => {
  const audio = `m=audio 9 RTP/SAVP 0 101\r\na=rtpmap:101 telephone-event/8000\r\n${SAVP_KEY}`;
  const second = `m=audio 11 RTP/SAVP 8\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${OTHER_KEY}`;
  const video = 'm=video 40010 RTP/SAVP 96\r\na=rtpmap:96 H264/90000';
  const twins = { plain: 'm=audio 13 RTP/AVP 0', secured: `m=audio 9 RTP/SAVP 0\r\n${SAVP_KEY}` };

  it.each([
    ['video, audio', [video, audio], ['video 0 RTP/SAVP 96', 'audio \\d\\d+ RTP/SAVP 0 101']],
    ['audio, video, audio', [audio, video, second], ['audio \\d\\d+ RTP/SAVP 0 101', 'video 0 RTP/SAVP 96', 'audio 0 RTP/SAVP 8']],
    ['fax, audio', ['m=image 40030 udptl t38', audio], ['image 0 udptl t38', 'audio \\d\\d+ RTP/SAVP 0 101']],
    ['audio that is switched off, audio', ['m=audio 0 RTP/SAVP 8', audio], ['audio 0 RTP/SAVP 8', 'audio \\d\\d+ RTP/SAVP 0 101']],
    ['plain before its secured twin', [twins.plain, twins.secured], ['audio 0 RTP/AVP 0', 'audio \\d\\d+ RTP/SAVP 0']],
    ['secured before its plain twin', [twins.secured, twins.plain], ['audio \\d\\d+ RTP/SAVP 0', 'audio 0 RTP/AVP 0']],
  ])('[3264 §6] takes one audio line and refuses the others in their places: %s', async (_what, lines, expected) => {
    const answer = await answerTo(description(...lines));
    expect(mediaLines(answer)).toEqual(expected.map((line) => expect.stringMatching(new RegExp(`^m=${line}$`)) as string));
    expect(answer.body.match(/^a=crypto/gm)).toHaveLength(1);
  });

  it.each([
    ['RTP/SAVPF', 'RTP/SAVPF'],
    ['RTP/AVP', 'RTP/AVP'],
    ['RTP/AVPF', 'RTP/AVPF'],
  ])('[8643 §2] encrypts %s with a=crypto in its own profile', async (profile, answered) => {
    const answer = await answerTo(offerSdp({ profile }));
    expect(mediaLines(answer)[0]).toMatch(new RegExp(` ${answered} 0 101$`));
    expect(answer.body).toContain('a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:');
  });

  it.each([
    ['plain RTP', offerSdp({ profile: 'RTP/AVP', crypto: [] }), 'SRTP_REQUIRED'],
    ['SAVP without a key', offerSdp({ crypto: [] }), 'SRTP_REQUIRED'],
    [
      'DTLS alone',
      offerSdp({ profile: 'UDP/TLS/RTP/SAVP', crypto: [], extra: ['a=setup:actpass', 'a=fingerprint:sha-256 AA:BB'] }),
      'SRTP_REQUIRED',
    ],
    ['fax alone', description('m=image 40030 udptl t38'), 'BAD_SDP'],
    ['video alone', description(video), 'BAD_SDP'],
    ['G.729 alone', offerSdp({ payloads: '18', rtpmap: ['18 G729/8000'] }), 'NO_COMMON_CODEC'],
    ['PCMU of two channels', offerSdp({ payloads: '97', rtpmap: ['97 PCMU/8000/2'] }), 'NO_COMMON_CODEC'],
    ['no line at all', description(), 'BAD_SDP'],
  ])('[3261 §21.4.26] refuses %s with 488 and its reason', async (_what, sdp, reason) => {
    const answer = await answerTo(sdp);
    expect([answer.status, codeOf(answer)]).toEqual([488, reason]);
  });

  it('[5761 §5.1.1] [3605 §2.1] keeps RTCP on RTP + 1 whether the offer has a=rtcp-mux or a=rtcp', async () => {
    for (const line of ['a=rtcp-mux', 'a=rtcp:40077']) {
      const { body } = await answerTo(offerSdp({ extra: [line] }));
      const port = Number(/^m=audio (\d+)/m.exec(body)?.[1]);
      expect(body.match(/^a=rtcp.*(?=\r$)/gm)).toEqual([`a=rtcp:${String(port + 1)}`]);
    }
  });

  it('[8839 §4.4.1] has no ICE, bundle or group', async () => {
    const extra = ['a=mid:0', 'a=ice-ufrag:abcd', 'a=ice-pwd:abcdefghijklmnopqrstuv', 'a=candidate:1 1 UDP 1 127.0.0.1 9 typ host'];
    const { body } = await answerTo(offerSdp({ extra }).replace('t=0 0', 't=0 0\r\na=group:BUNDLE 0'));
    // The names of the attributes alone: a key in base64 may spell anything.
    expect(body.match(/^a=[a-z-]+/gm)).not.toContainEqual(expect.stringMatching(/ice|candidate|group|mid/));
    expect(body).toMatch(/^a=crypto:/m);
  });
});

describe('the answer to an offer with a direction or an address', () => {
  it.each([
    ['sendonly', 'recvonly', offerSdp({ direction: 'sendonly' })],
    ['inactive', 'inactive', offerSdp({ direction: 'inactive' })],
    ['recvonly', 'sendonly', offerSdp({ direction: 'recvonly' })],
    ['c=0.0.0.0', 'recvonly', offerSdp({ address: '0.0.0.0' })],
    ['sendonly for the whole session', 'recvonly', offerSdp().replace('a=sendrecv\r\n', '').replace('t=0 0', 't=0 0\r\na=sendonly')],
    ['sendrecv of the line before sendonly of the session', 'sendrecv', offerSdp().replace('t=0 0', 't=0 0\r\na=sendonly')],
  ])('[3264 §6.1] has, for %s, the direction %s', async (_what, direction, sdp) => {
    const { body } = await answerTo(sdp);
    expect(body.match(/^a=(?:sendrecv|sendonly|recvonly|inactive)(?=\r$)/gm)).toEqual([`a=${direction}`]);
  });

  it('[3264 §8.4] on hold sends no audio until the call is taken off hold', async () => {
    const end = await CallEnd.open();
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(end.sdp({ direction: 'sendonly' }));
    end.connect(ok.body);
    // Three times the time of a packet that would have come: the peer's own silence is what opens the relay's way back.
    await end.peer.speak(new Int16Array(160 * 15));
    expect(end.peer.received).toHaveLength(0);
    const resumed = await call.request('INVITE', ok, end.sdp());
    call.ack(resumed);
    await end.hearsAgent();
    await call.hangUp(ok);
    await end.close();
  });

  it('[3264 §5.1] refuses an IPv6 address with ADDRESS_FAMILY_UNSUPPORTED when the relay has none', async () => {
    const sdp = offerSdp().replaceAll('IN IP4 127.0.0.1', 'IN IP6 ::1');
    const answer = await answerTo(sdp);
    expect([answer.status, codeOf(answer)]).toEqual([488, 'ADDRESS_FAMILY_UNSUPPORTED']);
  });

  it.each(['IN IP7 127.0.0.1', 'IN IP6 127.0.0.1'])(
    '[8866 §5.7] refuses an address that is not of the family that it names (%s)',
    async (connection) => {
      const answer = await answerTo(offerSdp().replace('c=IN IP4 127.0.0.1', `c=${connection}`));
      expect([answer.status, codeOf(answer)]).toEqual([488, 'BAD_SDP']);
    },
  );

  it('[8866 §5.7] refuses a host name in c=', async () => {
    const answer = await answerTo(offerSdp().replace('c=IN IP4 127.0.0.1', 'c=IN IP4 media.example.com'));
    expect([answer.status, codeOf(answer)]).toEqual([488, 'BAD_SDP']);
  });
});

describe('the body of an INVITE', () => {
  const sdp = offerSdp();
  const part = (type: string, text: string, more = ''): string => `--gate\r\nContent-Type: ${type}\r\n${more}\r\n${text}\r\n`;

  it.each([
    ['SDP, then metadata', part('application/sdp', sdp) + part('application/rs-metadata+xml', '<x/>')],
    [
      'ISUP before SDP',
      part('application/ISUP;version=itu-t92+', '\x01\x11\x00', 'Content-Disposition: signal;handling=optional\r\n') +
        part('application/sdp', sdp),
    ],
    ['a preamble', `as is said\r\n${part('Application/SDP', sdp)}`],
  ])('[3261 §7.4.1] [5621 §3.1] gives its SDP part when it is multipart/mixed: %s', async (_what, parts) => {
    const answer = await answerTo(`${parts}--gate--\r\n`, ['Content-Type: multipart/mixed;boundary=gate']);
    expect(answer.status).toBe(200);
  });

  it.each([
    [
      'a part of an unknown type that must be understood',
      part('application/x-secret', 'x', 'Content-Disposition: session;handling=required\r\n') + part('application/sdp', sdp),
    ],
    ['no SDP among the parts', part('application/ISUP', 'x')],
  ])('[5621 §3.3] [3261 §21.4.13] gets 415 with Accept when it has %s', async (_what, parts) => {
    const answer = await answerTo(`${parts}--gate--\r\n`, ['Content-Type: multipart/mixed;boundary=gate']);
    expect([answer.status, codeOf(answer), answer.header('Accept')]).toEqual([415, 'BAD_BODY', expect.stringContaining('application/sdp')]);
  });

  it('[3261 §20.15] is no offer when it is empty, whatever its Content-Type says', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    call.invite('', ['Content-Type: application/sdp']);
    const ok = await call.final();
    expect(mediaLines(ok)[0]).toMatch(/RTP\/SAVP 0 8 101$/);
    call.ack(ok, offerSdp());
    await call.hangUp(ok);
  });
});
