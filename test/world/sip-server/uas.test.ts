import Srf from 'drachtio-srf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SipServer } from '../../../src/sip-server/server.js';
import { testCertificates } from '../../support/certificates.js';
import { SipPeer, type WireMessage } from '../../support/sip-peer.js';
import { startSipServer } from '../../support/sip-server.js';
import { addressed } from '../../support/wire-peer.js';
import { withWorldTime } from '../world-time.js';

withWorldTime();

// drachtio-srf's own types are wrong in places; the tests see it as it is used by plain JavaScript applications.
type AnySrf = ReturnType<typeof makeSrf>;
function makeSrf() {
  return new Srf() as unknown as {
    connect(options: object): void;
    on(event: string, listener: (...args: never[]) => void): void;
    invite(handler: (req: AnyRequest, res: AnyResponse) => void): void;
    options(handler: (req: AnyRequest, res: AnyResponse) => void): void;
    createUAS(
      req: AnyRequest,
      res: AnyResponse,
      options: object,
      callback?: (error: unknown, dialog: AnyDialog) => void,
    ): Promise<AnyDialog>;
    createUAC(uri: string, options: object): Promise<AnyDialog>;
    request(
      uri: string,
      options: object,
      callback: (error: unknown, request: { on(event: string, listener: (res: { status: number }) => void): void }) => void,
    ): void;
    disconnect(): void;
  };
}
interface AnyRequest {
  uri: string;
  body: string;
  protocol: string;
  source_address: string;
  on(event: string, listener: () => void): void;
  get(name: string): string;
}
interface AnyResponse {
  send(status: number, options?: object): void;
}
interface AnyDialog {
  on(event: string, listener: (...args: never[]) => void): void;
  destroy(): void;
  modify(sdp: string): Promise<string>;
  remote: { sdp: string };
  sip: { callId: string; localTag: string; remoteTag: string };
}

const SDP = 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n';

let server: SipServer;
let srf: AnySrf;
let ca: string;
let serial = 0;

function invite(peer: SipPeer, user: string, extra: readonly string[] = []): { lines: string[]; callId: string; branch: string } {
  serial += 1;
  const callId = `call-${String(serial)}@test`;
  const branch = `z9hG4bK-${String(serial)}`;
  const lines = [
    `INVITE sip:${user}@127.0.0.1 SIP/2.0`,
    `Via: SIP/2.0/TLS 127.0.0.1:${String(peer.localPort)};branch=${branch};rport`,
    'Max-Forwards: 70',
    'From: "A" <sip:a@test>;tag=f1',
    `To: <sip:${user}@127.0.0.1>`,
    `Call-ID: ${callId}`,
    'CSeq: 1 INVITE',
    `Contact: <sip:a@127.0.0.1:${String(peer.localPort)};transport=tls>`,
    ...extra,
  ];
  peer.send([...lines, 'Content-Type: application/sdp'], SDP);
  return { lines, callId, branch };
}

function inDialog(peer: SipPeer, method: string, cseq: number, callId: string, ok: WireMessage): void {
  serial += 1;
  peer.send([
    `${method} sip:x@127.0.0.1 SIP/2.0`,
    `Via: SIP/2.0/TLS 127.0.0.1:${String(peer.localPort)};branch=z9hG4bK-${String(serial)}`,
    'Max-Forwards: 70',
    'From: "A" <sip:a@test>;tag=f1',
    `To: ${ok.header('To') ?? ''}`,
    `Call-ID: ${callId}`,
    `CSeq: ${String(cseq)} ${method}`,
  ]);
}

beforeAll(async () => {
  ({ ca } = await testCertificates());
  server = await startSipServer();
  srf = makeSrf();
  srf.on('error', () => undefined);
  await new Promise<void>((resolve, reject) => {
    srf.on('connect', (error?: Error | null) => (error == null ? resolve() : reject(error)));
    srf.invite((req, res) => handlers[/sip:([a-z]+)@/.exec(req.uri)?.[1] ?? '']?.(req, res));
    srf.options((_req, res) => res.send(200));
    srf.connect({ host: '127.0.0.1', port: server.controlPort, secret: 'test-secret' });
  });
});

afterAll(async () => {
  srf.disconnect();
  await server.close();
});

const destroyed = new Map<string, () => void>();
const handlers: Record<string, (req: AnyRequest, res: AnyResponse) => void> = {
  answer: (req, res) => {
    void srf.createUAS(req, res, { localSdp: SDP }, (_error, dialog) => {
      dialog.on('destroy', () => destroyed.get(dialog.sip.callId)?.());
      dialog.on('modify', (_request: AnyRequest, response: AnyResponse) => response.send(200, { body: SDP }));
    });
  },
  hangup: (req, res) => {
    void srf.createUAS(req, res, { localSdp: SDP }, (_error, dialog) => {
      dialog.on('ack', () => dialog.destroy());
    });
  },
  busy: (_req, res) => res.send(486, { headers: { 'X-Reason': 'busy' } }),
  ring: (_req, res) => res.send(180),
};

describe('an unchanged drachtio-srf application as UAS', () => {
  it('[3261 §13] answers over TLS, and gets ACK and the caller’s BYE', async () => {
    const peer = await SipPeer.connect(server.portOf('TLS')!, ca);
    const { callId } = invite(peer, 'answer');
    await peer.status(100);
    const ok = await peer.status(200);
    expect(ok.header('Contact')).toMatch(/^<sips:127\.0\.0\.1:\d+;transport=tls>$/);
    expect(ok.header('To')).toMatch(/;tag=\w{13}$/);
    expect(ok.header('Via')).toContain(`rport=${String(peer.localPort)}`);
    expect(ok.body).toBe(SDP);
    inDialog(peer, 'ACK', 1, callId, ok);
    const gone = new Promise<void>((resolve) => destroyed.set(callId, resolve));
    inDialog(peer, 'BYE', 2, callId, ok);
    await peer.next('200 to BYE', (message) => message.status === 200 && message.header('CSeq') === '2 BYE');
    await gone;
    peer.close();
  });

  it('[3261 §15] sends the application’s BYE on the caller’s connection', async () => {
    const peer = await SipPeer.connect(server.portOf('TLS')!, ca);
    const { callId } = invite(peer, 'hangup');
    const ok = await peer.status(200);
    inDialog(peer, 'ACK', 1, callId, ok);
    const bye = await peer.request('BYE');
    expect(bye.startLine).toBe(`BYE sip:a@127.0.0.1:${String(peer.localPort)};transport=tls SIP/2.0`);
    expect(bye.header('CSeq')).toBe('2 BYE');
    const copied = ['Via', 'From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${bye.header(name) ?? ''}`);
    peer.send(['SIP/2.0 200 OK', ...copied]);
    peer.close();
  });

  it('[3261 §17.2.1] passes a refusal with its headers and takes the ACK', async () => {
    const peer = await SipPeer.connect(server.portOf('TLS')!, ca);
    const { lines } = invite(peer, 'busy');
    const refusal = await peer.status(486);
    expect(refusal.header('X-Reason')).toBe('busy');
    peer.send(lines.map((line) => line.replace(/^INVITE /, 'ACK ').replace('1 INVITE', '1 ACK')));
    peer.close();
  });

  it('[3261 §9.2] answers CANCEL 200 and the INVITE 487 with one To-tag', async () => {
    const peer = await SipPeer.connect(server.portOf('TLS')!, ca);
    const { lines } = invite(peer, 'ring');
    const ringing = await peer.status(180);
    peer.send(
      lines
        .filter((line) => !line.startsWith('Contact'))
        .map((line) => line.replace(/^INVITE /, 'CANCEL ').replace('1 INVITE', '1 CANCEL')),
    );
    const cancelled = await peer.status(200);
    const terminated = await peer.status(487);
    const tag = /tag=(.*)$/.exec(ringing.header('To') ?? '')?.[1];
    expect(cancelled.header('To')).toContain(`tag=${tag ?? ''}`);
    expect(terminated.header('To')).toContain(`tag=${tag ?? ''}`);
    peer.send(lines.map((line) => line.replace(/^INVITE /, 'ACK ').replace('1 INVITE', '1 ACK')));
    peer.close();
  });

  it('[3261 §14] takes a re-INVITE to the application that has the dialog', async () => {
    const peer = await SipPeer.connect(server.portOf('TLS')!, ca);
    const { callId } = invite(peer, 'answer');
    const ok = await peer.status(200);
    inDialog(peer, 'ACK', 1, callId, ok);
    inDialog(peer, 'INVITE', 2, callId, ok);
    const again = await peer.next('200 to re-INVITE', (message) => message.status === 200 && message.header('CSeq') === '2 INVITE');
    expect(again.header('Contact')).toBeDefined();
    inDialog(peer, 'ACK', 2, callId, again);
    inDialog(peer, 'BYE', 3, callId, ok);
    await peer.next('200 to BYE', (message) => message.header('CSeq') === '3 BYE');
    peer.close();
  });

  it('[3261 §12.2.2] answers 481 in a dialog that is not there', async () => {
    const peer = await SipPeer.connect(server.portOf('TLS')!, ca);
    inDialog(peer, 'BYE', 2, 'nowhere@test', addressed('<sip:x@y>;tag=zzz'));
    expect((await peer.final()).status).toBe(481);
    peer.close();
  });

  it('[3261 §11] passes OPTIONS, answers 405 with Allow to a method without a route, and 501 to an unknown one', async () => {
    const peer = await SipPeer.connect(server.portOf('TLS')!, ca);
    for (const [method, status] of [
      ['OPTIONS', 200],
      ['REGISTER', 405],
      ['FOOBAR', 501],
    ] as const) {
      serial += 1;
      peer.send([
        `${method} sip:x@127.0.0.1 SIP/2.0`,
        `Via: SIP/2.0/TLS 127.0.0.1;branch=z9hG4bK-${String(serial)}`,
        'From: <sip:a@test>;tag=f1',
        'To: <sip:x@127.0.0.1>',
        `Call-ID: other-${String(serial)}`,
        `CSeq: 1 ${method}`,
      ]);
      const answer = await peer.final();
      expect([method, answer.status]).toEqual([method, status]);
      if (status === 405) expect(answer.header('Allow')).toContain('INVITE');
    }
    peer.close();
  });

  it('leaves nothing behind but the lingering transactions of RFC 6026', () => {
    const { pending, calls, outgoing } = server.counts;
    expect({ pending, calls, outgoing }).toEqual({ pending: 0, calls: 0, outgoing: 0 });
  });
});

describe('an unchanged drachtio-srf application as UAC', () => {
  it('[3261 §13.2] places a call to itself by another server, and hangs up', async () => {
    const other = await startSipServer();
    const far = makeSrf();
    far.on('error', () => undefined);
    const ended = new Promise<void>((resolve) => {
      far.invite((req, res) => {
        void far.createUAS(req, res, { localSdp: SDP }, (_error, dialog) => dialog.on('destroy', () => resolve()));
      });
    });
    await new Promise<void>((resolve) => {
      far.on('connect', () => resolve());
      far.connect({ host: '127.0.0.1', port: other.controlPort, secret: 'test-secret' });
    });
    const dialog = await srf.createUAC(`sips:answer@localhost:${String(other.portOf('TLS')!)};transport=tls`, { localSdp: SDP });
    expect(dialog.remote.sdp).toBe(SDP);
    dialog.destroy();
    await ended;
    far.disconnect();
    await other.close();
  });
});
