import { expect, it } from 'vitest';
import { AgentSite } from '../../support/agent/agent-site.js';
import { World } from '../world.js';

it('agent.not_connected in the log names the call, the organization and the agent', async () => {
  const site = await AgentSite.startOn((settings) => World.start(settings));
  try {
    const number = await site.numberOf({ name: 'Away', stream: { url: 'ws://127.0.0.1:9/' } });
    await expect((await site.invite({ number })).answered()).rejects.toThrow('AGENT_UNAVAILABLE');
    const { json } = await site.gateway.api('GET', '/v1/agents');
    const agents = json['agents'] as readonly { readonly agent_id: string; readonly name: string }[];
    const agent = agents.find(({ name }) => name === 'Away');
    const lines = (await site.gateway.log('gateway')).split('\n').filter((line) => line.includes('"agent.not_connected"'));
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { call_id: expect.any(String) as string, org_id: site.gateway.ready.org_id, agent_id: agent?.agent_id },
    ]);
  } finally {
    await site.stop();
  }
});
