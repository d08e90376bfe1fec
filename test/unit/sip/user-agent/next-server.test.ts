import { beforeEach, describe, expect, it } from 'vitest';
import type { Flow } from '../../../../src/sip/transport/flow.js';
import type { OutgoingRequest } from '../../../../src/sip/user-agent/user-agent-context.js';
import { PeerFlow, turn, UserAgentBench, valueOf } from '../../../support/user-agent-bench.js';

// A trunk of several servers (RFC 3263 §4.3): where a request goes when the first does not take it.

interface Asked {
  readonly host: string;
  readonly tried: readonly string[];
  readonly from: string;
  readonly restMs: number;
}

let bench: UserAgentBench;
let servers: [PeerFlow, PeerFlow];
/** What is left of the trunk when the next server is wanted. */
let others: () => Promise<Flow | undefined>;
let asked: Asked[];

beforeEach(() => {
  servers = [new PeerFlow('10.0.0.2'), new PeerFlow('10.0.0.3')];
  others = () => Promise.resolve(servers[1]);
  asked = [];
  bench = new UserAgentBench({
    open: () => servers[0],
    openNext: ({ host }, tried, from, restMs) => {
      asked.push({ host, tried: tried.map(({ address }) => address), from: from.remote.address, restMs });
      return others();
    },
  });
});

const send = (method: string, uri = 'sips:+15550100100@trunk.example'): Promise<OutgoingRequest> => bench.send(method, uri);
const withoutVia = (text = ''): string => text.replace(/^Via: .*\r\n/m, '');
const branch = (text: string | undefined): string | undefined => valueOf(text, 'Via')?.split('branch=')[1];

describe('the next server', () => {
  it('[3263 §4.3] gets the same request under another branch after a 503, without a response to the user', async () => {
    await send('INVITE');
    const [first, second] = servers;
    await bench.answer(first, '503 Service Unavailable');
    expect(first.methods).toEqual(['INVITE', 'ACK']);
    expect(second.methods).toEqual(['INVITE']);
    expect(withoutVia(second.sent[0])).toBe(withoutVia(first.sent[0]));
    expect(branch(second.sent[0])).not.toBe(branch(first.sent[0]));
    expect(asked).toEqual([{ host: 'trunk.example', tried: ['10.0.0.2'], from: '10.0.0.2', restMs: 0 }]);
    expect(bench.heard).toEqual([]);
    await bench.answer(second, '486 Busy Here');
    expect(bench.heard).toEqual([{ status: 486, isOurs: false }]);
  });

  it.each([
    ['Retry-After: 30', 30_000],
    ['Retry-After:  7 (maintenance);duration=60', 7_000],
    ['Retry-After: 301', 300_000],
    ['Retry-After: 999999999', 300_000],
    ['Retry-After: soon', 0],
    ['Retry-After: -5', 0],
  ])('[3261 §21.5.4] leaves the first one alone for as long as that says, 5 minutes at most: %s', async (line, restMs) => {
    await send('OPTIONS');
    await bench.answer(servers[0], '503 Service Unavailable', [line]);
    expect(asked).toMatchObject([{ restMs }]);
    expect(servers[1].methods).toEqual(['OPTIONS']);
  });

  it.each([
    ['cannot be connected', { wasConnected: false }],
    ['refuses our certificate after the handshake', { wasConnected: false, wasRefused: true }],
  ])('gets the request after a 503 of the first also when it %s, and then the user gets the 503', async (_what, how) => {
    await send('INVITE');
    await bench.answer(servers[0], '503 Service Unavailable', ['Retry-After: 30']);
    others = () => Promise.resolve(undefined);
    await bench.breaks(servers[1], how);
    expect(asked.at(-1)).toEqual({ host: 'trunk.example', tried: ['10.0.0.2', '10.0.0.3'], from: '10.0.0.3', restMs: 0 });
    expect(bench.heard).toEqual([{ status: 503, isOurs: false }]);
  });

  it('gets a request of which the first read nothing, since it refused our certificate', async () => {
    await send('INVITE');
    await bench.breaks(servers[0], { wasConnected: false, wasRefused: true });
    expect(servers[1].methods).toEqual(['INVITE']);
    expect(asked).toMatchObject([{ restMs: 0 }]);
  });
});

describe('a request that goes to no other server', () => {
  it.each([
    ['is none left', () => Promise.resolve(undefined)],
    ['are none to be found', () => Promise.reject(new Error('no such name'))],
  ])('ends when there %s: the user gets the refusal, our own after a refused certificate', async (_what, left) => {
    others = left;
    await send('INVITE');
    await bench.answer(servers[0], '503 Service Unavailable');
    expect(bench.heard).toEqual([{ status: 503, isOurs: false }]);
    await send('INVITE');
    await bench.breaks(servers[0], { wasConnected: false, wasRefused: true });
    expect(bench.heard.slice(1)).toEqual([{ status: 503, isOurs: true }]);
  });

  it.each([
    ['that rings already', 'INVITE', '180 Ringing'],
    ['other than 503', 'OPTIONS', '500 Server Internal Error'],
  ])('has an answer %s', async (_what, method, status) => {
    await send(method);
    await bench.answer(servers[0], status);
    await bench.answer(servers[0], '503 Service Unavailable');
    expect([asked, servers[1].sent]).toEqual([[], []]);
    expect(bench.heard.at(-1)).toMatchObject({ isOurs: false });
  });

  it('does not include one with a 100 only', async () => {
    await send('INVITE');
    await bench.answer(servers[0], '100 Trying');
    await bench.answer(servers[0], '503 Service Unavailable');
    expect(servers[1].methods).toEqual(['INVITE']);
  });

  it('has a server with one name each, goes by UDP, or lost its connection after it was written', async () => {
    await send('INVITE');
    await bench.breaks(servers[0], { wasConnected: true });
    expect(bench.heard).toEqual([{ status: 408, isOurs: true }]);
    servers[0] = new PeerFlow('10.0.0.2', 'UDP');
    await send('INVITE', 'sip:+15550100100@trunk.example;transport=udp');
    await bench.answer(servers[0], '503 Service Unavailable');
    expect(bench.heard.map(({ status }) => status)).toEqual([408, 503]);
    servers[0] = new PeerFlow('10.0.0.2');
    bench = new UserAgentBench({ open: () => servers[0] });
    await send('INVITE');
    await bench.answer(servers[0], '503 Service Unavailable');
    expect([asked, servers[1].sent]).toEqual([[], []]);
    expect(bench.heard).toEqual([{ status: 503, isOurs: false }]);
  });
});

describe('a user who cancels', () => {
  it('before the 503 gets that, and no other server gets the request', async () => {
    const request = await send('INVITE');
    bench.agent.cancel(request);
    await bench.answer(servers[0], '503 Service Unavailable');
    expect([asked, servers[1].sent]).toEqual([[], []]);
    expect(bench.heard.at(-1)).toEqual({ status: 503, isOurs: false });
  });

  it('while the next server is located gets the 503, and that server gets nothing', async () => {
    let found: (flow: Flow) => void = () => undefined;
    others = () => new Promise((resolve) => (found = resolve));
    const request = await send('INVITE');
    await bench.answer(servers[0], '503 Service Unavailable');
    expect(bench.agent.cancel(request)).toBeDefined();
    found(servers[1]);
    await turn();
    expect(servers[1].sent).toEqual([]);
    expect(bench.heard.at(-1)).toEqual({ status: 503, isOurs: false });
    expect(bench.stack.open()).toEqual({ client: 0, server: 0 });
  });
});
