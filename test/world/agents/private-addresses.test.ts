import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AgentSite } from '../../support/agent/agent-site.js';
import { startFakeOpenAi } from '../../support/provider/openai-server.js';
import { World } from '../world.js';

// Where only agents on the public internet may be reached, nothing connects to another address.

const SECRET = 'hunter2';
let site: AgentSite<World>;

beforeAll(async () => {
  // The operator's own may not be here either; nobody calls it.
  site = await AgentSite.startOn((all) => World.start(all), {
    TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'false',
    TRUNKLINE_AGENTS_URL: 'wss://bot.example.com/stream',
  });
});
afterAll(() => site.stop());

describe('agents.allow_private: false', () => {
  it.each(['ws', 'wss'])(
    'keeps a bot at %s:// loopback unconnected: the call gets 480, and the log has the reason without the secrets of the URL',
    async (scheme) => {
      const { gateway, bot } = site;
      const number = await site.numberOf({ stream: { url: `${scheme}://127.0.0.1:${String(bot.port)}/call?key=${SECRET}` } });
      const call = await site.invite({ number });
      expect((await call.signalling.final()).status).toBe(480);
      await call.close();
      expect(bot.calls.all).toEqual([]);
      // The dry run knows it too.
      const { json } = await gateway.api('POST', '/sip/check', { phone_number: number });
      expect(json['data']).toMatchObject({
        sip_status: 480,
        reason: 'AGENT_UNAVAILABLE',
        explanation: expect.stringContaining(
          '127.0.0.1 is not an address of the public internet, which needs agents.allow_private',
        ) as unknown,
      });
      await gateway.logged('gateway', '127.0.0.1 is not an address of the public internet');
      expect(await gateway.log('gateway')).not.toContain(SECRET);
    },
  );

  it('warns of a provider at loopback when the agent is saved, and its calls get 480 with nothing sent', async () => {
    const fake = await startFakeOpenAi();
    const url = `ws://127.0.0.1:${String(fake.port)}/v1/realtime`;
    const settings = { prompt: 'x', provider: { name: 'openai-realtime', url, api_key: 'sk-own' } };
    const warned = (await site.gateway.api('POST', '/v1/agents', settings)).json as { warnings: { path: string }[] };
    expect(warned.warnings.map(({ path }) => path)).toEqual(['provider.url']);
    const number = await site.numberOf(settings);
    const call = await site.invite({ number });
    expect((await call.signalling.final()).status).toBe(480);
    await call.close();
    const checked = await site.gateway.api('POST', '/sip/check', { phone_number: number });
    expect(checked.json).toMatchObject({ data: { sip_status: 480, reason: 'AGENT_UNAVAILABLE' } });
    expect(fake.upgrades).toEqual([]);
    await fake.stop();
  });
});
