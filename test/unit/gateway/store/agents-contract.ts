import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newUuid } from '../../../../src/lib/ids.js';
import { err, ok } from '../../../../src/lib/result.js';
import type { Stores } from '../../../../src/gateway/ports/stores.js';
import type { VirtualClock } from '../../../support/virtual-clock.js';
import { agentOf, freshNumber, inboundSetting } from './store-contract.js';

/** What every implementation of `AgentStore` must do when agents change. */
export function describeAgentChanges(name: string, open: () => { stores: Stores; clock: VirtualClock }): void {
  describe(`agents that change: ${name}`, () => {
    let stores: Stores;
    let clock: VirtualClock;
    const [orgId, otherOrgId] = [newUuid(), newUuid()];
    beforeAll(() => {
      ({ stores, clock } = open());
    });
    let agent: ReturnType<typeof agentOf>;
    beforeEach(async () => {
      const now = new Date(clock.wallMs()).toISOString();
      agent = agentOf(orgId, { created_at: now, updated_at: now });
      await stores.agents.put(agent);
    });

    it('take a decided change, with another updated_at each time, even within one millisecond', async () => {
      const first = await stores.agents.change(orgId, agent.agent_id, (current) => ok({ ...current, name: 'first' }));
      const second = await stores.agents.change(orgId, agent.agent_id, (current) => ok({ ...current, prompt: 'Be kind.' }));
      if (!first.ok || !second.ok) throw new Error('not changed');
      const later = (ms: number): string => new Date(clock.wallMs() + ms).toISOString();
      expect(first.value).toEqual({ ...agent, name: 'first', updated_at: later(1) });
      expect(second.value).toEqual({ ...first.value, prompt: 'Be kind.', updated_at: later(2) });
      expect(await stores.agents.get(orgId, agent.agent_id)).toEqual(second.value);
    });

    it('take no write when the decision is against it, or when the agent does not exist', async () => {
      expect(await stores.agents.change(orgId, agent.agent_id, () => err({ why: 'not today' }))).toEqual(err({ why: 'not today' }));
      const never = () => {
        throw new Error('was asked');
      };
      expect(await stores.agents.change(otherOrgId, agent.agent_id, never)).toEqual(err('not-found'));
      expect(await stores.agents.change(orgId, newUuid(), never)).toEqual(err('not-found'));
      expect(await stores.agents.get(orgId, agent.agent_id)).toEqual(agent);
    });

    it('lose none of several concurrent changes', async () => {
      const add = (word: string) =>
        stores.agents.change(orgId, agent.agent_id, (current) => ok({ ...current, metadata: { ...current.metadata, [word]: true } }));
      const words = ['a', 'b', 'c', 'd', 'e', 'f'];
      const changed = await Promise.all(words.map(add));
      expect(Object.keys((await stores.agents.get(orgId, agent.agent_id))?.metadata ?? {}).sort()).toEqual(words);
      expect(new Set(changed.map((one) => one.ok && one.value.updated_at)).size).toBe(words.length);
    });

    it('ignore a change or a deletion that is meant for another version', async () => {
      const rename = (current: typeof agent) => ok({ ...current, name: 'renamed' });
      expect(await stores.agents.change(orgId, agent.agent_id, rename, ['2000-01-01T00:00:00.000Z'])).toEqual(err('mismatch'));
      expect(await stores.agents.delete(orgId, agent.agent_id, [])).toEqual(err('mismatch'));
      expect(await stores.agents.get(orgId, agent.agent_id)).toEqual(agent);
      const changed = await stores.agents.change(orgId, agent.agent_id, rename, ['x', agent.updated_at]);
      expect(changed.ok && changed.value.name).toBe('renamed');
      // The version that was just written over.
      expect(await stores.agents.delete(orgId, agent.agent_id, [agent.updated_at])).toEqual(err('mismatch'));
      expect((await stores.agents.delete(orgId, agent.agent_id, '*')).ok).toBe(true);
      expect(await stores.agents.delete(orgId, agent.agent_id, '*')).toEqual(err('not-found'));
    });

    it('take exactly one of concurrent changes that are meant for one version', async () => {
      const rename = (name: string) =>
        stores.agents.change(orgId, agent.agent_id, (current) => ok({ ...current, name }), [agent.updated_at]);
      const outcomes = await Promise.all(['a', 'b', 'c', 'd'].map(rename));
      expect(outcomes.filter((outcome) => outcome.ok)).toHaveLength(1);
    });

    it('are named by the numbers whose calls they take', async () => {
      const [first, second] = [freshNumber(), freshNumber()];
      await stores.numbers.attach(orgId, first, { inbound: inboundSetting() });
      expect(await stores.numbers.findByAgent(orgId, agent.agent_id)).toBeNull();
      await stores.numbers.attach(orgId, second, { inbound: inboundSetting({}, agent.agent_id) });
      expect(await stores.numbers.findByAgent(orgId, agent.agent_id)).toBe(second);
      expect(await stores.numbers.findByAgent(otherOrgId, agent.agent_id)).toBeNull();
      await stores.numbers.detach(orgId, second, ['inbound']);
      expect(await stores.numbers.findByAgent(orgId, agent.agent_id)).toBeNull();
    });

    it('let exactly one of concurrent attaches win that are meant for one version of a number', async () => {
      const number = freshNumber();
      const attached = await stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
      if (!attached.ok) throw new Error('not attached');
      const { updated_at: version } = attached.value;
      const again = (most: number) =>
        stores.numbers.attach(orgId, number, { inbound: inboundSetting({ max_concurrent_calls: most }) }, [version]);
      const outcomes = await Promise.all([1, 2, 3, 4].map(again));
      expect(outcomes.filter((outcome) => outcome.ok)).toHaveLength(1);
      expect(outcomes.filter((outcome) => !outcome.ok)).toEqual(Array(3).fill(err('mismatch')));
      expect(await stores.numbers.detach(orgId, number, ['inbound'], [version])).toEqual(err('mismatch'));
      expect((await stores.numbers.detach(orgId, number, ['inbound'], '*')).ok).toBe(true);
      expect(await stores.numbers.attach(orgId, number, { inbound: inboundSetting() }, '*')).toEqual(err('mismatch'));
    });

    it('raise the count when they are created and lower it when they are deleted', async () => {
      const before = await stores.agents.count(orgId);
      await stores.agents.put({ ...agent, name: 'again' });
      await stores.agents.put(agentOf(orgId));
      expect(await stores.agents.count(orgId)).toBe(before + 1);
      await stores.agents.delete(orgId, agent.agent_id);
      expect(await stores.agents.count(orgId)).toBe(before);
    });
  });
}
