import { EventEmitter } from 'node:events';
import { AppConnection, type ControlSocket } from '../../src/sip-server/applications.js';
import { Broker } from '../../src/sip-server/broker.js';
import { encodeFrame, frameTime } from '../../src/sip-server/control-protocol.js';
import { silentLog } from '../../src/lib/log.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { SipStack } from '../../src/sip/stack.js';
import { DEFAULT_TIMERS } from '../../src/sip/transaction/timers.js';
import type { Endpoint, Flow } from '../../src/sip/transport/flow.js';
import { UserAgent } from '../../src/sip/user-agent.js';

// Our own code without sockets and TLS: a whole call, from the bytes of its messages to the bytes of its answers and frames.
// What the operating system and TLS cost on top is the difference to `run.ts`.

const CALLS = Number(process.argv[2] ?? 200_000);
const SDP =
  'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 41000 RTP/SAVP 0 8 101\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\na=sendrecv\r\n';

let sent = '';
const flow: Flow = {
  transport: 'TLS',
  reliable: true,
  remote: { address: '127.0.0.1', port: 6000 },
  local: { address: '127.0.0.1', port: 5061 },
  isOpen: true,
  send: (text) => {
    sent = text;
  },
  close: () => undefined,
};
const own = (): Endpoint => ({ address: '127.0.0.1', port: 5061 });
const limits = { maxHeaders: 200, maxHeaderBytes: 16_384, maxBodyBytes: 65_536, maxTransactions: 10_000_000 };
const stack = new SipStack({ clock: systemClock, timers: DEFAULT_TIMERS, limits, log: silentLog });
const userAgent = new UserAgent(stack, { open: () => flow, advertised: own }, { key: 'key', isSelf: () => false });
const broker = new Broker(userAgent, {
  log: silentLog,
  timers: stack.timers,
  time: () => frameTime(Date.now()),
  advertised: own,
  isSelf: () => false,
  optionsUserAgents: [],
  silenceTimeoutMs: 20_000,
  tryingAfterMs: 3_500,
  graceMs: 10_000,
  parkMs: 300_000,
  maxApplicationDelayMs: 100,
  clock: systemClock,
});

class FakeSocket extends EventEmitter {
  frames = '';
  readonly writableEnded = false;
  readonly writableLength = 0;
  setNoDelay(): void {}
  setKeepAlive(): void {}
  destroy(): void {}
  write(text: string): void {
    this.frames = text;
  }
}

const socket = new FakeSocket();
const app = new AppConnection(
  socket as unknown as ControlSocket,
  { maxFrameBytes: 1 << 20, maxUnsentFrameBytes: 1 << 30 },
  { onCommand: (from, command) => broker.onCommand(from, command), onGone: () => undefined },
  silentLog,
);
app.isAuthenticated = true;
const fromApp = (payload: string): boolean => socket.emit('data', Buffer.from(encodeFrame(payload), 'latin1'));
fromApp('r|route|invite');

const inDialog = (method: string, cseq: number, id: number, to: string): string =>
  `${method} sip:127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/TLS 127.0.0.1:55061;branch=z9hG4bK${method}${String(id)}\r\nMax-Forwards: 70\r\nFrom: "Caller" <sip:+15550100999@carrier.example>;tag=f${String(id)}\r\nTo: ${to}\r\nCall-ID: c${String(id)}@carrier.example\r\nCSeq: ${String(cseq)} ${method}\r\nContent-Length: 0\r\n\r\n`;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Fifty calls a turn of the event loop, as a loaded server sees them. */
const BATCH = 50;

async function batch(first: number): Promise<void> {
  const tos: string[] = [];
  const transactions: string[] = [];
  for (let id = first; id < first + BATCH; id += 1) {
    stack.onMessage(
      flow,
      `INVITE sip:+15550100100@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/TLS 127.0.0.1:55061;branch=z9hG4bKi${String(id)}\r\nMax-Forwards: 70\r\nFrom: "Caller" <sip:+15550100999@carrier.example>;tag=f${String(id)}\r\nTo: <sip:+15550100100@127.0.0.1>\r\nCall-ID: c${String(id)}@carrier.example\r\nCSeq: 1 INVITE\r\nContact: <sip:carrier@127.0.0.1:55061;transport=tls>\r\nUser-Agent: Carrier SBC 7.2\r\nAllow: INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK\r\nSupported: timer, 100rel\r\nP-Asserted-Identity: <sip:+15550100999@carrier.example>\r\nContent-Type: application/sdp\r\nContent-Length: ${String(SDP.length)}\r\n\r\n${SDP}`,
    );
  }
  await turn();
  for (const frame of socket.frames.split('|sip|network|').slice(1)) transactions.push(frame.split('|', 7)[5] ?? '');
  transactions.forEach((transaction, index) => {
    const id = first + index;
    fromApp(
      `m${String(id)}|sip|${transaction}|\r\nSIP/2.0 200 OK\r\nCall-ID: c${String(id)}@carrier.example\r\ncseq: 1 INVITE\r\nfrom: "Caller" <sip:+15550100999@carrier.example>;tag=f${String(id)}\r\nto: <sip:+15550100100@127.0.0.1>\r\nContent-Type: application/sdp\r\nContent-Length: ${String(SDP.length)}\r\n\r\n${SDP}`,
    );
    tos.push(/^To: (.*)\r$/m.exec(sent)?.[1] ?? '');
  });
  await turn();
  tos.forEach((to, index) => {
    stack.onMessage(flow, inDialog('ACK', 1, first + index, to));
    stack.onMessage(flow, inDialog('BYE', 2, first + index, to));
  });
  await turn();
  const byes = socket.frames
    .split('|sip|network|')
    .slice(1)
    .filter((frame) => frame.includes('\r\nBYE sip:'));
  byes.forEach((frame, index) => {
    fromApp(
      `n${String(first + index)}|sip|${frame.split('|', 7)[5] ?? ''}|\r\nSIP/2.0 200 OK\r\nCall-ID: c${String(first + index)}@carrier.example\r\ncseq: 2 BYE\r\nfrom: "Caller" <sip:+15550100999@carrier.example>;tag=f${String(first + index)}\r\nto: ${tos[index] ?? ''}\r\nContent-Length: 0\r\n\r\n`,
    );
  });
  await turn();
  if (!sent.startsWith('SIP/2.0 200')) throw new Error(`the calls were not answered: ${sent}`);
}

async function main(): Promise<void> {
  for (let id = 0; id < 20_000; id += BATCH) await batch(id);
  const begun = process.cpuUsage();
  for (let id = 20_000; id < 20_000 + CALLS; id += BATCH) await batch(id);
  const { user, system } = process.cpuUsage(begun);
  console.log(`${((user + system) / CALLS).toFixed(1)} µs of CPU a call in our own code (with this driver's), ${String(CALLS)} calls`);
  console.log(`left: ${JSON.stringify({ ...broker.counts, transactions: stack.transactionCount, timers: stack.timers.size })}`);
  process.exit(0);
}

await main();
