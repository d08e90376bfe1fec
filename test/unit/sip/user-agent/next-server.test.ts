import { beforeEach, describe, expect, it } from 'vitest';
import { silentLog } from '../../../../src/lib/log.js';
import { header } from '../../../../src/sip/message/message.js';
import { SipStack } from '../../../../src/sip/stack.js';
import { DEFAULT_TIMERS } from '../../../../src/sip/transaction/timers.js';
import type { Endpoint, Flow, Target } from '../../../../src/sip/transport/flow.js';
import { UserAgent } from '../../../../src/sip/user-agent.js';
import type { OutgoingRequest } from '../../../../src/sip/user-agent/user-agent-context.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

// A trunk of several servers (RFC 3263 §4.3): where a request goes when the first does not take it.

const LIMITS = { maxHeaders: 100, maxHeaderBytes: 8_000, maxHeadBytes: 65_536, maxBodyBytes: 65_536, maxTransactions: 100 };
const OWN = { address: '10.0.0.1', port: 5_061 };

/** A connection to one server of the trunk, and what went over it. */
class Server implements Flow {
  readonly reliable = true;
  readonly local = OWN;
  readonly remote: Endpoint;
  readonly sent: string[] = [];
  isOpen = true;
  wasConnected = true;
  wasRefused = false;

  constructor(
    address: string,
    readonly transport: Flow['transport'] = 'TLS',
  ) {
    this.remote = { address, port: 5_061 };
  }

  send(text: string): void {
    this.sent.push(text);
  }

  close(): void {
    this.isOpen = false;
  }
}

interface Asked {
  readonly host: string;
  readonly tried: readonly string[];
  readonly from: string;
  readonly restMs: number;
}

let stack: SipStack;
let agent: UserAgent;
let servers: [Server, Server];
/** What is left of the trunk when the next server is wanted. */
let others: () => Promise<Flow | undefined>;
let asked: Asked[];
let heard: { readonly status: number; readonly isOurs: boolean }[];

beforeEach(() => {
  servers = [new Server('10.0.0.2'), new Server('10.0.0.3')];
  others = () => Promise.resolve(servers[1]);
  [asked, heard] = [[], []];
  start();
});

function start(isOneServer = false): void {
  const openNext = (target: Target, tried: readonly Endpoint[], from: Flow, restMs: number): Promise<Flow | undefined> => {
    asked.push({ host: target.host, tried: tried.map(({ address }) => address), from: from.remote.address, restMs });
    return others();
  };
  stack = new SipStack({ clock: new VirtualClock(), timers: DEFAULT_TIMERS, limits: LIMITS, log: silentLog });
  agent = new UserAgent(stack, { open: () => servers[0], advertised: () => OWN, ...(isOneServer ? {} : { openNext }) });
  agent.attach({
    onRequest: () => undefined,
    onAck: () => undefined,
    onDialogEnded: () => undefined,
    onResponse: (_request, { status }, isOurs) => heard.push({ status, isOurs }),
  });
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function send(method: string, uri = 'sips:+15550100100@trunk.example'): Promise<OutgoingRequest> {
  const sent = agent.send(uri, { method, headers: [header('Subject', 'hello')], body: '' }, null);
  if (typeof sent === 'string') throw new Error(sent);
  await turn();
  return sent;
}

async function answer(server: Server, status: string, ...more: string[]): Promise<void> {
  const copied = (server.sent[0] ?? '').split('\r\n').filter((line) => /^(?:Via|From|To|Call-ID|CSeq):/i.test(line));
  const lines = copied.map((line) => (line.startsWith('To:') && status !== '100 Trying' ? `${line};tag=theirs` : line));
  stack.onMessage(server, [`SIP/2.0 ${status}`, ...lines, ...more, 'Content-Length: 0', '', ''].join('\r\n'));
  await turn();
}

async function breaks(server: Server, how: Partial<Pick<Server, 'wasConnected' | 'wasRefused'>>): Promise<void> {
  Object.assign(server, how, { isOpen: false });
  stack.onClose(server);
  await turn();
}

const methods = ({ sent }: Server): (string | undefined)[] => sent.map((text) => /^\S+/.exec(text)?.[0]);
const withoutVia = (text = ''): string => text.replace(/^Via: .*\r\n/m, '');
const branch = (text = ''): string | undefined => /^Via: .*branch=([^;\r]+)/m.exec(text)?.[1];

describe('the next server', () => {
  it('[3263 §4.3] gets the same request under another branch after a 503, of which the user hears nothing', async () => {
    await send('INVITE');
    const [first, second] = servers;
    await answer(first, '503 Service Unavailable');
    expect(methods(first)).toEqual(['INVITE', 'ACK']);
    expect(methods(second)).toEqual(['INVITE']);
    expect(withoutVia(second.sent[0])).toBe(withoutVia(first.sent[0]));
    expect(branch(second.sent[0])).not.toBe(branch(first.sent[0]));
    expect(asked).toEqual([{ host: 'trunk.example', tried: ['10.0.0.2'], from: '10.0.0.2', restMs: 0 }]);
    expect(heard).toEqual([]);
    await answer(second, '486 Busy Here');
    expect(heard).toEqual([{ status: 486, isOurs: false }]);
  });

  it.each([
    ['Retry-After: 30', 30_000],
    ['Retry-After:  7 (maintenance);duration=60', 7_000],
    ['Retry-After: 301', 300_000],
    ['Retry-After: 999999999', 300_000],
    ['Retry-After: soon', 0],
    ['Retry-After: -5', 0],
  ])('[3261 §21.5.4] leaves the first alone for as long as it says, 5 minutes at most: %s', async (line, restMs) => {
    await send('OPTIONS');
    await answer(servers[0], '503 Service Unavailable', line);
    expect(asked).toMatchObject([{ restMs }]);
    expect(methods(servers[1])).toEqual(['OPTIONS']);
  });

  it.each([
    ['cannot be connected', { wasConnected: false }],
    ['refuses our certificate after the handshake', { wasConnected: false, wasRefused: true }],
  ])('is asked after a 503 of the first, too, when it %s, and then the user has the 503', async (_what, how) => {
    await send('INVITE');
    await answer(servers[0], '503 Service Unavailable', 'Retry-After: 30');
    others = () => Promise.resolve(undefined);
    await breaks(servers[1], how);
    expect(asked.at(-1)).toEqual({ host: 'trunk.example', tried: ['10.0.0.2', '10.0.0.3'], from: '10.0.0.3', restMs: 0 });
    expect(heard).toEqual([{ status: 503, isOurs: false }]);
  });

  it('gets a request that the first read nothing of: it refused our certificate', async () => {
    await send('INVITE');
    await breaks(servers[0], { wasConnected: false, wasRefused: true });
    expect(methods(servers[1])).toEqual(['INVITE']);
    expect(asked).toMatchObject([{ restMs: 0 }]);
  });
});

describe('a request stays where it is', () => {
  it.each([
    ['is none left', () => Promise.resolve(undefined)],
    ['are none to be found', () => Promise.reject(new Error('no such name'))],
  ])('when there %s: the user has the refusal, ours after a refused certificate', async (_what, left) => {
    others = left;
    await send('INVITE');
    await answer(servers[0], '503 Service Unavailable');
    expect(heard).toEqual([{ status: 503, isOurs: false }]);
    await send('INVITE');
    await breaks(servers[0], { wasConnected: false, wasRefused: true });
    expect(heard.slice(1)).toEqual([{ status: 503, isOurs: true }]);
  });

  it.each([
    ['that rings already', 'INVITE', '180 Ringing'],
    ['that is no 503', 'OPTIONS', '500 Server Internal Error'],
  ])('with an answer %s', async (_what, method, status) => {
    await send(method);
    await answer(servers[0], status);
    await answer(servers[0], '503 Service Unavailable');
    expect([asked, servers[1].sent]).toEqual([[], []]);
    expect(heard.at(-1)).toMatchObject({ isOurs: false });
  });

  it('but a 100 does not count as taking it', async () => {
    await send('INVITE');
    await answer(servers[0], '100 Trying');
    await answer(servers[0], '503 Service Unavailable');
    expect(methods(servers[1])).toEqual(['INVITE']);
  });

  it('when each name is one server, when it goes by UDP, and when its connection broke after it was written', async () => {
    await send('INVITE');
    await breaks(servers[0], { wasConnected: true });
    expect(heard).toEqual([{ status: 408, isOurs: true }]);
    servers[0] = new Server('10.0.0.2', 'UDP');
    await send('INVITE', 'sip:+15550100100@trunk.example;transport=udp');
    await answer(servers[0], '503 Service Unavailable');
    servers[0] = new Server('10.0.0.2');
    start(true);
    await send('INVITE');
    await answer(servers[0], '503 Service Unavailable');
    expect([asked, servers[1].sent]).toEqual([[], []]);
    expect(heard.map(({ status }) => status)).toEqual([408, 503, 503]);
  });
});

describe('a user who gives up', () => {
  it('before the 503 has it, and no other server gets the request', async () => {
    const request = await send('INVITE');
    agent.cancel(request);
    await answer(servers[0], '503 Service Unavailable');
    expect([asked, servers[1].sent]).toEqual([[], []]);
    expect(heard.at(-1)).toEqual({ status: 503, isOurs: false });
  });

  it('while the next server is looked for has the 503, and that server gets nothing', async () => {
    let found: (flow: Flow) => void = () => undefined;
    others = () => new Promise((resolve) => (found = resolve));
    const request = await send('INVITE');
    await answer(servers[0], '503 Service Unavailable');
    expect(agent.cancel(request)).toBeDefined();
    found(servers[1]);
    await turn();
    expect(servers[1].sent).toEqual([]);
    expect(heard.at(-1)).toEqual({ status: 503, isOurs: false });
    expect(stack.open()).toEqual({ client: 0, server: 0 });
  });
});
