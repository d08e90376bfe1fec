import { mulaw } from 'alawmulaw';
import { describe, expect, it } from 'vitest';
import { digitPhrase } from '../../../src/gateway/agents/languages.js';
import { EspeakSpeech } from '../../../src/gateway/agents/speech.js';
import type { World } from '../world.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { CallEnd } from '../../support/media/call-end.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer, WireMessage } from '../../support/sip-peer.js';
import { addressed } from '../../support/wire-peer.js';
import { withWorld } from '../with-world.js';

const NUMBER = '+15550100100';
const ALLOWED = 'INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK, NOTIFY';

let gateway: World;
let peer: SipPeer;
withWorld((site) => ({ gateway, peer } = site));

/** A request outside any dialog (`tag`: within one that nobody has), and its final answer. */
function alone(method: string, extra: readonly string[] = [], tag?: string, body = ''): Promise<WireMessage> {
  const to = `<sip:${NUMBER}@127.0.0.1>${tag === undefined ? '' : `;tag=${tag}`}`;
  const call = new HandMadeCall(peer, NUMBER);
  return call.request(method, addressed(to), body, extra);
}

const codeOf = (answer: WireMessage): string => /"(\w+):/.exec(answer.header('Warning') ?? '')?.[1] ?? '';

describe('the gateway, outside a dialog,', () => {
  it.each([
    ['REGISTER', []],
    ['MESSAGE', ['Content-Type: text/plain']],
    ['PUBLISH', ['Event: presence']],
    ['SUBSCRIBE', ['Event: presence', 'Expires: 60']],
    ['REFER', ['Refer-To: <sip:+15550100777@127.0.0.1>']],
  ])('[3261 §8.2.1] [6665 §4.2.1.1] answers %s with 405 and Allow', async (method, extra) => {
    const answer = await alone(method, extra);
    expect([answer.status, answer.header('Allow'), codeOf(answer)]).toEqual([405, ALLOWED, 'METHOD_NOT_ALLOWED']);
  });

  it('[3261 §8.2.1] answers an unknown method with 501 and the same Allow', async () => {
    const answer = await alone('FROBNICATE');
    expect([answer.status, answer.header('Allow')]).toEqual([501, ALLOWED]);
  });

  it.each([
    ['BYE', []],
    ['INFO', ['Content-Type: application/dtmf-relay']],
    ['UPDATE', []],
    ['PRACK', ['RAck: 1 1 INVITE']],
    ['NOTIFY', ['Event: refer', 'Subscription-State: active']],
    ['NOTIFY', ['Event: presence', 'Subscription-State: active']],
  ])('[3261 §15.1.2] [6086 §4.2.2] [6665 §4.1.3] answers %s, which it allows within a dialog, with 481', async (method, extra) => {
    const answer = await alone(method, extra);
    expect([answer.status, answer.header('Allow')]).toEqual([481, undefined]);
  });

  it.each(['BYE', 'INFO', 'UPDATE', 'MESSAGE', 'NOTIFY', 'REFER', 'INVITE'])(
    '[3261 §12.2.2] answers %s of a dialog that does not exist with 481',
    async (method) => {
      expect((await alone(method, [], 'gone', method === 'INVITE' ? offerSdp() : '')).status).toBe(481);
    },
  );

  it('[3261 §11.2] answers OPTIONS with 200, Allow, Accept and Supported, also with Max-Forwards 0', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    for (const maxForwards of [70, 0]) {
      peer.send([
        `OPTIONS sip:${NUMBER}@127.0.0.1 SIP/2.0`,
        `Via: SIP/2.0/TLS 127.0.0.1:${String(peer.localPort)};branch=z9hG4bKopt${String(maxForwards)};rport`,
        `Max-Forwards: ${String(maxForwards)}`,
        'From: <sip:carrier@127.0.0.1>;tag=opt',
        `To: <sip:${NUMBER}@127.0.0.1>`,
        `Call-ID: ${call.callId}`,
        `CSeq: ${String(100 - maxForwards)} OPTIONS`,
      ]);
      const answer = await peer.next('answer to OPTIONS', (message) => message.header('Call-ID') === call.callId);
      expect([answer.status, answer.header('Allow'), answer.header('Accept'), answer.header('Supported')]).toEqual([
        200,
        ALLOWED,
        'application/sdp',
        'timer, 100rel',
      ]);
    }
  });
});

describe('an INVITE', () => {
  const invited = async (...extra: string[]): Promise<WireMessage> => {
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp(), extra);
    const answer = await call.final();
    if (answer.status === 200) {
      call.ack(answer);
      await call.hangUp(answer);
    }
    return answer;
  };

  it.each([
    ['Require: precondition', 'precondition'],
    ['Require: timer, replaces, 100rel', 'replaces'],
    ['Require: 199, precondition', '199, precondition'],
  ])('[3261 §8.2.2.3] [3312 §11] with %s gets 420 with Unsupported: %s', async (line, unsupported) => {
    const answer = await invited(line);
    expect([answer.status, answer.header('Unsupported'), codeOf(answer)]).toEqual([420, unsupported, 'BAD_EXTENSION']);
  });

  it('[3262 §3] with Require: 100rel is answered, without a provisional response that would need PRACK', async () => {
    const from = peer.received.length;
    expect((await invited('Require: 100rel')).status).toBe(200);
    expect(peer.received.slice(from).filter(({ status }) => status > 100 && status < 200)).toEqual([]);
  });

  it.each([
    ['Accept: text/plain', 406],
    ['Accept: application/sdp;q=0', 406],
    ['Accept: application/isup, application/sdp', 200],
    ['Accept: */*', 200],
  ])('[3261 §21.4.7] with %s gets %i', async (line, status) => {
    expect((await invited(line)).status).toBe(status);
  });

  it('[3261 §8.2.2.2] [3261 §16.3] with Max-Forwards 0 is answered, since only a proxy counts them', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    const text = [
      `INVITE sip:${NUMBER}@127.0.0.1 SIP/2.0`,
      `Via: SIP/2.0/TLS 127.0.0.1:${String(peer.localPort)};branch=z9hG4bKmf0;rport`,
      'Max-Forwards: 0',
      'From: <sip:carrier@127.0.0.1>;tag=mf0',
      `To: <sip:${NUMBER}@127.0.0.1>`,
      `Call-ID: ${call.callId}`,
      'CSeq: 1 INVITE',
      `Contact: <sip:carrier@127.0.0.1:${String(peer.localPort)};transport=tls>`,
      'Content-Type: application/sdp',
    ];
    peer.send(text, offerSdp());
    const ok = await peer.next('200', (message) => message.status >= 200 && message.header('Call-ID') === call.callId);
    expect(ok.status).toBe(200);
    const within = (method: string, cseq: number): string[] => [
      `${method} sip:${NUMBER}@127.0.0.1 SIP/2.0`,
      `Via: SIP/2.0/TLS 127.0.0.1:${String(peer.localPort)};branch=z9hG4bKmf${method};rport`,
      'Max-Forwards: 0',
      'From: <sip:carrier@127.0.0.1>;tag=mf0',
      `To: ${ok.header('To') ?? ''}`,
      `Call-ID: ${call.callId}`,
      `CSeq: ${String(cseq)} ${method}`,
    ];
    peer.send(within('ACK', 1));
    peer.send(within('BYE', 2));
    const bye = await peer.next(
      'answer to BYE',
      (message) => message.header('CSeq') === '2 BYE' && message.header('Call-ID') === call.callId,
    );
    expect(bye.status).toBe(200);
  });
});

describe('a call', () => {
  it('[3261 §11.2] [3515 §2.4.2] survives OPTIONS with 200, REFER with 603, MESSAGE with 405 and an unknown method with 501', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(offerSdp());
    const options = await call.request('OPTIONS', ok);
    expect([options.status, options.header('Allow'), options.header('Accept')]).toEqual([200, ALLOWED, 'application/sdp']);
    const refer = await call.request('REFER', ok, '', ['Refer-To: <sip:+15550100777@127.0.0.1>']);
    expect([refer.status, codeOf(refer)]).toEqual([603, 'DECLINED']);
    for (const method of ['MESSAGE', 'PUBLISH']) {
      const answer = await call.request(method, ok);
      expect([answer.status, answer.header('Allow')]).toEqual([405, ALLOWED]);
    }
    expect((await call.request('FROBNICATE', ok)).status).toBe(501);
    expect((await call.request('INFO', ok)).status).toBe(200);
    const info = await call.request('INFO', ok, 'x', ['Content-Type: application/x-unknown']);
    expect([info.status, info.header('Accept')]).toEqual([415, 'application/dtmf-relay, application/dtmf']);
    await call.hangUp(ok);
    expect((await call.request('OPTIONS', ok)).status).toBe(481);
  });
});

describe('INFO with a DTMF digit', () => {
  const relay = (digit: string): [string, string[]] => [`Signal=${digit}\r\nDuration=160\r\n`, ['Content-Type: application/dtmf-relay']];

  /** Resolves when the test line has said the digit's phrase. */
  async function hearsDigit(end: CallEnd, event: number): Promise<void> {
    const phrase = await new EspeakSpeech().synthesize(digitPhrase(event, 'ENG'), []);
    await end.heard(Buffer.from(mulaw.encode(phrase)));
  }

  async function digitsOf(call: HandMadeCall): Promise<unknown> {
    const { quality } = (await gateway.record(call.callId)) as { quality: { endpoint: { digits_received: number } } };
    return quality.endpoint.digits_received;
  }

  it.each([
    ['application/dtmf-relay', 'Signal=5\r\nDuration=160\r\n'],
    ['application/dtmf', '5'],
  ])('[6086 §8.4] reaches the agent when its type is %s', async (type, body) => {
    const end = await CallEnd.open();
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(end.sdp());
    end.connect(ok.body);
    await end.hearsAgent();
    expect((await call.request('INFO', ok, body, [`Content-Type: ${type}`])).status).toBe(200);
    await hearsDigit(end, 5);
    await call.hangUp(ok);
    await end.close();
    expect(await digitsOf(call)).toBe(1);
  });

  it('[4733 §2.5.1.2] counts once with a telephone-event of the same digit, and twice with one of another digit', async () => {
    const end = await CallEnd.open();
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(end.sdp());
    end.connect(ok.body);
    await end.hearsAgent();
    // One press within a second of the other, whatever this process waits for.
    end.peer.pressAtOnce(7);
    await call.request('INFO', ok, ...relay('7'));
    await hearsDigit(end, 7);
    await end.peer.press(8);
    expect((await call.request('INFO', ok, ...relay('9'))).status).toBe(200);
    await hearsDigit(end, 9);
    await call.hangUp(ok);
    await end.close();
    expect(await digitsOf(call)).toBe(3);
  });

  it('gets 400 when its body names no digit', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(offerSdp());
    const answer = await call.request('INFO', ok, ...relay('Z'));
    expect([answer.status, codeOf(answer)]).toEqual([400, 'MALFORMED_REQUEST']);
    await call.hangUp(ok);
  });
});
