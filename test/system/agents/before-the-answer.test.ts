import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import { TestBot, type BotOptions } from '../../support/agent/test-bot.js';
import { Arrivals } from '../../support/arrivals.js';
import { TestCa } from '../../support/openssl.js';
import { freePorts } from '../../support/ports.js';
import { ProxiedGateway } from '../../support/proxied-gateway.js';

// A bot that is there or not, while the caller waits. Numbers are attached once; the bots behind them come and go.

const CONNECT_TIMEOUT_MS = 800;
const GRACE_MS = 1_000;
const SECRET = 'hunter2';
let ca: TestCa;
let site: AgentSite;
let port: number;
let tlsPort: number;
const numbers = { bot: '', tls: '' };
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  ca = await TestCa.create();
  [port, tlsPort] = (await freePorts(2)) as [number, number];
  site = await AgentSite.start({
    TRUNKLINE_AGENTS_CONNECT_TIMEOUT_MS: String(CONNECT_TIMEOUT_MS),
    TRUNKLINE_AGENTS_RECONNECT_GRACE_MS: String(GRACE_MS),
    TRUNKLINE_AGENTS_CA_FILE: ca.caFile,
    // A 180 would come if it could.
    TRUNKLINE_SIP_RINGING_AFTER_MS: '100',
  });
  numbers.bot = await site.numberOf({ stream: { url: `ws://127.0.0.1:${String(port)}/call?key=${SECRET}` } });
  numbers.tls = await site.numberOf({ stream: { url: `wss://127.0.0.1:${String(tlsPort)}/call` } });
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});
afterAll(async () => {
  await site.stop();
  await ca.remove();
});

async function startBot(options: BotOptions = {}): Promise<TestBot> {
  const bot = await TestBot.start({ port, ...options });
  stops.push(() => bot.stop());
  return bot;
}

/** Takes connections and answers nothing. */
async function silence(): Promise<Arrivals<Socket>> {
  const sockets = new Arrivals<Socket>();
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined);
    sockets.add(socket);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  expect((server.address() as AddressInfo).port).toBe(port);
  stops.push(async () => {
    for (const socket of sockets.all) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return sockets;
}

async function withCertificate(sans: string): Promise<TestBot> {
  const { certFile, keyFile } = await ca.issue('bot', sans);
  return startBot({ port: tlsPort, tls: { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') } });
}

const invite = (number = numbers.bot): Promise<AgentCall> => site.invite({ number });

/** 480 with the reason, and no 18x before it. */
async function isRefused(call: AgentCall, agentError: RegExp): Promise<void> {
  const final = await call.signalling.final();
  expect([final.status, final.header('Warning')]).toEqual([480, expect.stringContaining('AGENT_UNAVAILABLE')]);
  expect(call.peer.received.map(({ status }) => status).filter((status) => status > 0)).toEqual([100, 480]);
  await call.close();
  expect(await site.gateway.record(call.signalling.callId)).toMatchObject({
    reason: 'AGENT_UNAVAILABLE',
    sip_status: 480,
    answered_at: null,
    agent_error: expect.stringMatching(agentError) as unknown,
  });
  const record = (await site.gateway.record(call.signalling.callId)) as { call_id: string };
  const { json } = await site.gateway.api('GET', `/v1/calls/${record.call_id}/trace`);
  const summaries = (json['trace'] as { source: string; summary: string }[]).map(({ source, summary }) => `${source}: ${summary}`);
  expect(summaries).toContainEqual(expect.stringMatching(new RegExp(`^agent: ${agentError.source}`)));
  expect(summaries.join()).not.toContain(SECRET);
}

describe('a caller whose bot is not there', () => {
  it('is refused with 480, before any 18x: nobody listens', async () => {
    await isRefused(await invite(), /wss?:\/\/\S+\?…: connect ECONNREFUSED 127\.0\.0\.1:\d+, after \d+ ms/);
    await site.gateway.logged('gateway', 'ECONNREFUSED');
    expect(await site.gateway.log('gateway')).not.toContain(SECRET);
  });

  it('is refused with 480, before any 18x: the upgrade gets 403', async () => {
    await startBot({ refuseWith: 403 });
    await isRefused(await invite(), /wss?:\/\/\S+: the upgrade was answered with HTTP 403, after \d+ ms/);
    await site.gateway.logged('gateway', 'HTTP 403');
  });

  it('is refused with 480, before any 18x: no answer within agents.connect_timeout_ms, and the connection is given up', async () => {
    const sockets = await silence();
    const call = await invite();
    const startedMs = performance.now();
    const socket = await sockets.at(0);
    const gone = new Promise((resolve) => socket.once('close', resolve));
    socket.resume();
    await isRefused(call, /wss?:\/\/\S+: no answer, after \d+ ms/);
    expect(performance.now() - startedMs).toBeGreaterThan(CONNECT_TIMEOUT_MS - 100);
    await gone;
  });
});

describe('a bot that goes away between the 200 and the ACK', () => {
  it('is connected again, as in a call', async () => {
    const bot = await startBot();
    const call = await invite();
    await call.answered();
    const lost = await bot.calls.at(0, 0);
    lost.socket.terminate();
    call.bot = await bot.calls.at(1);
    call.ack();
    const { start } = await call.bot.message('start');
    expect((start as { customParameters: object }).customParameters).not.toHaveProperty('reconnects');
    await call.bot.message('media');
    await call.hangUp();
    expect(lost.messages.all).toEqual([]);
    const record = await site.gateway.record(call.signalling.callId);
    expect([record['reason'], record['agent_error']]).toEqual(['CALLER_HANGUP', expect.stringContaining('closed with 1006')]);
  });

  it('and does not come back within agents.reconnect_grace_ms: BYE with AGENT_LOST after the ACK', async () => {
    const bot = await startBot();
    const call = await invite();
    await call.answered();
    const lost = await bot.calls.at(0, 0);
    const lostMs = performance.now();
    lost.socket.terminate();
    await bot.stop();
    call.ack();
    expect(await call.ended()).toContain('text="AGENT_LOST"');
    expect(performance.now() - lostMs).toBeGreaterThan(GRACE_MS - 100);
    await site.gateway.logged('gateway', '"msg":"agent.lost"');
    expect(lost.messages.all).toEqual([]);
  });
});

describe('a caller who gives up', () => {
  it('[3261 §9.2] while the bot is being connected gets 487, and the attempt is given up', async () => {
    const sockets = await silence();
    const call = await invite();
    const socket = await sockets.at(0);
    const gone = new Promise((resolve) => socket.once('close', resolve));
    socket.resume();
    call.signalling.cancel();
    expect((await call.signalling.final()).status).toBe(487);
    await gone;
    await call.close();
    expect(await site.gateway.record(call.signalling.callId)).toMatchObject({ reason: 'CALLER_CANCELLED' });
  });
});

describe('a bot behind TLS', () => {
  it('is trusted by a CA of agents.ca_file', async () => {
    const bot = await withCertificate('IP:127.0.0.1');
    const call = await site.talking({ number: numbers.tls }, bot);
    await call.bot.message('media');
    await call.hangUp();
  });

  it('of another name is refused', async () => {
    const bot = await withCertificate('DNS:bot.example.com');
    await isRefused(await invite(numbers.tls), /wss:\/\/\S+: Hostname\/IP does not match certificate's altnames: .*, after \d+ ms/);
    expect(bot.calls.all).toEqual([]);
    await site.gateway.logged('gateway', 'altnames');
  });
});

describe('agents.on_failure: test-line', () => {
  let proxied: ProxiedGateway;
  let other: AgentSite;
  let number: string;

  beforeAll(async () => {
    proxied = await ProxiedGateway.start(100, {
      TRUNKLINE_AGENTS_ON_FAILURE: 'test-line',
      TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true',
    });
    other = new AgentSite(proxied.gateway, await TestBot.start());
    number = await other.numberOf({ stream: { url: `ws://127.0.0.1:${String(port)}/` } });
  });
  afterAll(async () => {
    await other.bot.stop();
    await proxied.stop();
  });

  /** What the call in progress has in its trace. */
  async function traced(sipCallId: string): Promise<string> {
    const { json } = await proxied.gateway.api('GET', '/v1/calls?state=live');
    const call = (json['calls'] as { call_id: string; sip_call_id: string }[]).find(({ sip_call_id: id }) => id === sipCallId);
    return call === undefined ? '' : JSON.stringify((await proxied.gateway.api('GET', `/v1/calls/${call.call_id}/trace`)).json);
  }

  it('has the test line greet the caller whose bot is not there, and the bot is used when it is back', async () => {
    const call = await other.invite({ number });
    await call.answered();
    call.ack();
    await call.end.hearsAgent();
    await call.hangUp();
    const bot = await startBot();
    const next = await other.talking({ number }, bot);
    await next.bot.message('media');
    await next.hangUp();
  });

  it('[3261 §9.2] a caller who gives up when the bot is connected gets 487, and the bot is left without a word', async () => {
    const bot = await startBot();
    proxied.proxy.holding = 'answer';
    const call = await other.invite({ number });
    const left = await bot.calls.at(0);
    // The bot's side of the connection is open before the gateway's, which gives an attempt up without a close frame.
    await expect.poll(() => traced(call.signalling.callId)).toContain(`connected to ws://127.0.0.1:${String(port)}/`);
    await expect.poll(() => proxied.proxy.heldCount).toBe(1);
    call.signalling.cancel();
    expect((await call.signalling.final()).status).toBe(487);
    proxied.proxy.release();
    expect(await left.closed.at(0)).toBe(1_000);
    expect(left.messages.all).toEqual([]);
    await call.close();
    expect(await other.gateway.record(call.signalling.callId)).toMatchObject({ reason: 'CALLER_CANCELLED' });
  });
});

describe('agents.allow_private: false', () => {
  let other: AgentSite;

  beforeAll(async () => {
    // The operator's own may not be here either; nobody calls it.
    other = await AgentSite.start({ TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'false', TRUNKLINE_AGENTS_URL: 'wss://bot.example.com/stream' });
  });
  afterAll(() => other.stop());

  it.each(['ws', 'wss'])(
    'a bot at %s:// loopback is not connected to: 480, and the log says why without the secrets of the URL',
    async (scheme) => {
      const bot = await startBot();
      const number = await other.numberOf({ stream: { url: `${scheme}://127.0.0.1:${String(port)}/call?key=${SECRET}` } });
      const call = await other.invite({ number });
      expect((await call.signalling.final()).status).toBe(480);
      await call.close();
      expect(bot.calls.all).toEqual([]);
      // The dry run knows it too.
      const { json } = await other.gateway.api('POST', '/sip/check', { phone_number: number });
      expect(json['data']).toMatchObject({
        sip_status: 480,
        reason: 'AGENT_UNAVAILABLE',
        explanation: expect.stringContaining(
          '127.0.0.1 is not an address of the public internet, which needs agents.allow_private',
        ) as unknown,
      });
      await other.gateway.logged('gateway', '127.0.0.1 is not an address of the public internet');
      const log = await other.gateway.log('gateway');
      expect(log).not.toContain(SECRET);
    },
  );
});
