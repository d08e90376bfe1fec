import { fork } from 'node:child_process';
import { createServer } from 'node:net';
import { resolve } from 'node:path';
import { encodeFrame, FrameDecoder } from '../../src/sip-server/control-protocol.js';
import { freePorts } from '../../test/support/ports.js';
import { cpuMs } from '../support/process-figures.js';

const AT_ONCE = 50;
const BODY =
  'v=0\r\no=user1 53655765 2353687637 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 6000 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n';

const headers = (id: number, to: string, cseq: string): string =>
  `Via: SIP/2.0/TLS 127.0.0.1:55061;branch=z9hG4bK${cseq.slice(2)}${String(id)}\r\nFrom: "Caller" <sip:a@carrier.example>;tag=f${String(id)}\r\nTo: ${to}\r\nCall-ID: c${String(id)}@carrier.example\r\nCSeq: ${cseq}\r\nContact: <sip:carrier@127.0.0.1:55061;transport=tls>\r\nMax-Forwards: 70\r\n`;
const TO = '<sip:b@127.0.0.1>';
const TAGGED = `${TO};tag=server`;
const meta = (transaction: string, dialog: string, tail: string): string =>
  `x|sip|network|500|tls|127.0.0.1|55061|09:00:00.000000|${transaction}|${dialog}|${tail}\r\n`;

/**
 * CPU of the application a call, in milliseconds, when the frames of whole calls come from a stub that does nothing else: no SIP server,
 * however fast, can serve more calls through one such application. It also tells how fast the machine is.
 */
export async function applicationAlone(calls: number): Promise<number> {
  const [port = 0] = await freePorts(1);
  let started = 0;
  let ended = 0;
  return new Promise<number>((finished) => {
    const server = createServer((socket) => {
      const decoder = new FrameDecoder(1 << 20);
      const send = (payload: string): boolean => socket.write(encodeFrame(payload), 'latin1');
      const invite = (): void => {
        const id = started;
        started += 1;
        const text = `INVITE sip:b@127.0.0.1 SIP/2.0\r\n${headers(id, TO, '1 INVITE')}Content-Type: application/sdp\r\nContent-Length: ${String(BODY.length)}\r\n\r\n${BODY}`;
        send(`${meta(`i${String(id)}`, '', '127.0.0.1|5061|')}${text}`);
      };
      let cpuBefore = 0;
      const onFrame = (payload: string): void => {
        const [frameId = '', verb, transaction = ''] = payload.split('\r\n', 1)[0]?.split('|') ?? [];
        if (verb === 'authenticate') return void send(`x|response|${frameId}|OK|tls/127.0.0.1:5061|v0.9.10|tls/127.0.0.1:5061`);
        if (verb === 'route') {
          send(`x|response|${frameId}|OK`);
          cpuBefore = cpuMs(application.pid ?? 0);
          for (let index = 0; index < AT_ONCE; index += 1) invite();
          return;
        }
        const id = Number(transaction.slice(1));
        const dialog = `c${String(id)}@carrier.example;from-tag=f${String(id)}`;
        const isInvite = transaction.startsWith('i');
        const echoed = `SIP/2.0 200 OK\r\n${headers(id, TAGGED, isInvite ? '1 INVITE' : '2 BYE')}Content-Length: ${String(isInvite ? BODY.length : 0)}\r\n\r\n${isInvite ? BODY : ''}`;
        send(
          `x|response|${frameId}|OK|application|400|tls|127.0.0.1|55061|09:00:00.000000|${transaction}|${isInvite ? dialog : ''}||Msg sent:|\r\n${echoed}`,
        );
        if (isInvite) {
          send(`${meta(transaction, dialog, '')}ACK sip:127.0.0.1 SIP/2.0\r\n${headers(id, TAGGED, '1 ACK')}Content-Length: 0\r\n\r\n`);
          send(
            `${meta(`b${String(id)}`, dialog, '')}BYE sip:127.0.0.1 SIP/2.0\r\n${headers(id, TAGGED, '2 BYE')}Content-Length: 0\r\n\r\n`,
          );
          return;
        }
        ended += 1;
        if (started < calls) invite();
        if (ended < calls) return;
        const ms = (cpuMs(application.pid ?? 0) - cpuBefore) / calls;
        application.kill();
        server.close();
        finished(ms);
      };
      socket.on('data', (chunk: Buffer) => {
        for (const item of decoder.push(chunk.toString('latin1'))) if (item.type === 'frame') onFrame(item.payload);
      });
      socket.on('error', () => undefined);
    });
    server.listen(port, '127.0.0.1');
    const application = fork(resolve('bench/sip-server/application.ts'), [String(port), 'bench'], { execArgv: ['--import', 'tsx'] });
  });
}
