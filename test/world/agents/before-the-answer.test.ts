import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AgentSite, type AgentCall } from '../../support/agent/agent-site.js';
import { TestBot, type BotOptions } from '../../support/agent/test-bot.js';
import { Arrivals } from '../../support/arrivals.js';
import { World } from '../world.js';

// A bot that is there or not, while the caller waits.

const CONNECT_TIMEOUT_MS = 800;
const GRACE_MS = 1_000;
const SECRET = 'hunter2';
let site: AgentSite<World>;
const PORT = 45_678;
let number: string;
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  site = await AgentSite.startOn((all) => World.start(all), {
    TRUNKLINE_AGENTS_CONNECT_TIMEOUT_MS: String(CONNECT_TIMEOUT_MS),
    TRUNKLINE_AGENTS_RECONNECT_GRACE_MS: String(GRACE_MS),
    // A 180 would come if it could.
    TRUNKLINE_SIP_RINGING_AFTER_MS: '100',
  });
  number = await site.numberOf({ stream: { url: `ws://127.0.0.1:${String(PORT)}/call?key=${SECRET}` } });
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});
afterAll(async () => {
  await site.stop();
});

async function startBot(options: BotOptions = {}): Promise<TestBot> {
  const bot = await TestBot.start({ port: PORT, ...options });
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
  await new Promise<void>((resolve) => server.listen(PORT, '127.0.0.1', resolve));
  expect((server.address() as AddressInfo).port).toBe(PORT);
  stops.push(async () => {
    for (const socket of sockets.all) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return sockets;
}

const invite = (): Promise<AgentCall> => site.invite({ number });

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
  it('gets 480 before any 18x when nothing listens at the URL of the bot', async () => {
    await isRefused(await invite(), /wss?:\/\/\S+\?…: connect ECONNREFUSED 127\.0\.0\.1:\d+, after \d+ ms/);
    await site.gateway.logged('gateway', 'ECONNREFUSED');
    expect(await site.gateway.log('gateway')).not.toContain(SECRET);
  });

  it('gets 480 before any 18x when the upgrade gets 403', async () => {
    await startBot({ refuseWith: 403 });
    await isRefused(await invite(), /wss?:\/\/\S+: the upgrade was answered with HTTP 403, after \d+ ms/);
    await site.gateway.logged('gateway', 'HTTP 403');
  });

  it('gets 480 before any 18x when no answer comes within agents.connect_timeout_ms, and the gateway closes the connection', async () => {
    const sockets = await silence();
    const call = await invite();
    const startedMs = performance.now();
    const socket = await sockets.at(0);
    const gone = new Promise((resolve) => socket.once('close', resolve));
    socket.resume();
    await isRefused(call, /wss?:\/\/\S+: no answer, after \d+ ms/);
    expect(performance.now() - startedMs).toBe(CONNECT_TIMEOUT_MS);
    await gone;
  });
});

describe('a bot that goes away between the 200 and the ACK', () => {
  it('gets a new connection from the gateway, as in a call', async () => {
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

  it('loses its call, which gets BYE with AGENT_LOST after the ACK, when it is not back within agents.reconnect_grace_ms', async () => {
    const bot = await startBot();
    const call = await invite();
    await call.answered();
    const lost = await bot.calls.at(0, 0);
    const lostMs = performance.now();
    lost.socket.terminate();
    await bot.stop();
    call.ack();
    expect(await call.ended()).toContain('text="AGENT_LOST"');
    expect(performance.now() - lostMs).toBe(GRACE_MS);
    await site.gateway.logged('gateway', '"msg":"agent.lost"');
    expect(lost.messages.all).toEqual([]);
  });
});

describe('a caller who cancels', () => {
  it('[3261 §9.2] gets 487 while the gateway connects the bot, and the gateway closes that connection', async () => {
    const sockets = await silence();
    const call = await invite();
    const socket = await sockets.at(0);
    const gone = new Promise((resolve) => socket.once('close', resolve));
    socket.resume();
    call.signalling.cancel();
    expect((await call.signalling.final()).status).toBe(487);
    await gone;
    await call.close();
    const record = await site.gateway.record(call.signalling.callId);
    expect(record).toMatchObject({ reason: 'CALLER_CANCELLED', agent_error: null });
    const logged = site.gateway.lines.filter(({ fields }) => fields['call_id'] === record['call_id']);
    expect(logged.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
    const { json } = await site.gateway.api('GET', `/v1/calls/${String(record['call_id'])}/trace`);
    expect(JSON.stringify(json)).not.toContain('AGENT_UNAVAILABLE');
  });
});
