import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AgentSite } from '../../support/agent/agent-site.js';
import { TestBot } from '../../support/agent/test-bot.js';
import { TestCa } from '../../support/openssl.js';
import { freePorts } from '../../support/ports.js';

// A bot whose certificate is real: test/world has no TLS.

let ca: TestCa;
let site: AgentSite;
let port: number;
let number: string;
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  ca = await TestCa.create();
  [port] = (await freePorts(1)) as [number];
  site = await AgentSite.start({ TRUNKLINE_CA_FILE: ca.caFile });
  number = await site.numberOf({ stream: { url: `wss://127.0.0.1:${String(port)}/call` } });
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});
afterAll(async () => {
  await site.stop();
  await ca.remove();
});

async function withCertificate(sans: string): Promise<TestBot> {
  const { certFile, keyFile } = await ca.issue('bot', sans);
  const bot = await TestBot.start({ port, tls: { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') } });
  stops.push(() => bot.stop());
  return bot;
}

describe('a bot behind TLS', () => {
  it('is trusted by a CA of ca_file', async () => {
    const bot = await withCertificate('IP:127.0.0.1');
    const call = await site.talking({ number: number }, bot);
    await call.bot.message('media');
    await call.hangUp();
  });

  it('is refused when its certificate has another name', async () => {
    const bot = await withCertificate('DNS:bot.example.com');
    const call = await site.invite({ number });
    const final = await call.signalling.final();
    expect([final.status, final.header('Warning')]).toEqual([480, expect.stringContaining('AGENT_UNAVAILABLE')]);
    expect(call.peer.received.map(({ status }) => status).filter((status) => status > 0)).toEqual([100, 480]);
    await call.close();
    const cause = /wss:\/\/\S+: Hostname\/IP does not match certificate's altnames: .*, after \d+ ms/;
    const record = await site.gateway.record(call.signalling.callId);
    expect(record).toMatchObject({ reason: 'AGENT_UNAVAILABLE', sip_status: 480, answered_at: null });
    expect(record['agent_error']).toMatch(cause);
    const { json } = await site.gateway.api('GET', `/v1/calls/${String(record['call_id'])}/trace`);
    const summaries = (json['trace'] as { source: string; summary: string }[]).map(({ source, summary }) => `${source}: ${summary}`);
    expect(summaries).toContainEqual(expect.stringMatching(new RegExp(`^agent: ${cause.source}`)));
    expect(bot.calls.all).toEqual([]);
    await site.gateway.logged('gateway', 'altnames');
  });
});
