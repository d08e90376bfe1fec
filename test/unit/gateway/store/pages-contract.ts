import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { TraceEntry } from '../../../../src/gateway/model/call-trace.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { ok } from '../../../../src/lib/result.js';
import { MAX_PAGE_BYTES, NO_ORG, type Stores } from '../../../../src/gateway/ports/stores.js';
import { toolOf } from '../../../support/tool.js';
import type { VirtualClock } from '../../../support/virtual-clock.js';
import { agentOf, callOf, endedCall } from './store-contract.js';

const TRACED: TraceEntry = { at: '2026-01-01T00:00:00.000Z', source: 'gateway', direction: null, summary: 's', text: 't' };

/** What every implementation must do where much is listed, and what is listed by another index than its organization's. */
export function describePages(name: string, open: () => { stores: Stores; clock: VirtualClock }): void {
  describe(`lists: ${name}`, () => {
    let stores: Stores;
    let clock: VirtualClock;
    let orgId: string;
    let otherOrgId: string;
    beforeAll(() => {
      ({ stores, clock } = open());
    });
    beforeEach(() => {
      [orgId, otherOrgId] = [newUuid(), newUuid()];
    });

    describe('agents and tools in pages', () => {
      it('continue where the page before ended; a page of large ones ends early', async () => {
        const made = Array.from({ length: 40 }, (_, index) =>
          agentOf(orgId, { created_at: new Date(clock.wallMs() + index).toISOString(), prompt: 'x'.repeat(200_000) }),
        );
        for (const agent of made) await stores.agents.put(agent);
        const two = await stores.agents.list(orgId, { limit: 2 });
        expect(two.records).toEqual(made.slice(0, 2));
        expect((await stores.agents.list(orgId, { limit: 2, before: two.next! })).records).toEqual(made.slice(2, 4));
        const ids: string[] = [];
        let pages = 0;
        for (let before: string | null | undefined; before !== null; pages += 1) {
          const page = await stores.agents.list(orgId, { limit: 50, ...(before === undefined ? {} : { before }) });
          expect(JSON.stringify(page.records).length).toBeLessThan(2 * MAX_PAGE_BYTES);
          ids.push(...page.records.map((agent) => agent.agent_id));
          before = page.next;
        }
        expect(ids).toEqual(made.map((agent) => agent.agent_id));
        expect(pages).toBeGreaterThan(1);
      });

      it('show which agents name a tool, after each change', async () => {
        const tool = toolOf(orgId);
        await stores.tools.put(tool);
        const [first, second] = [agentOf(orgId, { tools: [tool.tool_id] }), agentOf(orgId)];
        for (const agent of [first, second]) await stores.agents.put(agent);
        const users = async () => [...(await stores.agents.findByTool(orgId, tool.tool_id, 10))].sort();
        expect(await users()).toEqual([first.agent_id]);
        const named = await stores.agents.change(orgId, second.agent_id, (current) => ok({ ...current, tools: [tool.tool_id] }));
        expect(named.ok).toBe(true);
        expect(await users()).toEqual([first.agent_id, second.agent_id].sort());
        expect(await stores.agents.findByTool(orgId, tool.tool_id, 1)).toHaveLength(1);
        expect(await stores.agents.findByTool(otherOrgId, tool.tool_id, 10)).toEqual([]);
        await stores.agents.change(orgId, second.agent_id, (current) => ok({ ...current, tools: [] }));
        await stores.agents.delete(orgId, first.agent_id);
        expect(await users()).toEqual([]);
      });
    });

    describe('calls', () => {
      it('are found by SIP Call-ID, within one organization and within all', async () => {
        // Newer than what other tests left of calls without an organization, of which few are kept.
        const at = clock.wallMs() + 3_600_000;
        const id = `${newUuid()}@carrier`;
        const own = [callOf(orgId, at, { sip_call_id: id }), callOf(orgId, at + 1, { sip_call_id: id })];
        const others = [callOf(otherOrgId, at + 2, { sip_call_id: id }), callOf(null, at + 3, { sip_call_id: id })];
        for (const call of [...own, ...others, callOf(orgId, at + 4)]) await stores.calls.write(endedCall(call));
        const found = async (scope: string | null, limit = 10) => (await stores.calls.list(scope, { limit, sipCallId: id })).calls;
        expect(await found(orgId)).toEqual([...own].reverse());
        expect(await found(NO_ORG)).toEqual([others[1]]);
        expect(await found(null)).toEqual([...own, ...others].reverse());
        const first = await stores.calls.list(null, { limit: 2, sipCallId: id });
        expect((await stores.calls.list(null, { limit: 9, sipCallId: id, before: first.next! })).calls).toEqual([...own].reverse());
        expect((await stores.calls.list(orgId, { limit: 10, sipCallId: `${id}x` })).calls).toEqual([]);
      });

      it('of all organizations are listed together, the newest first', async () => {
        const at = clock.wallMs() + 7_200_000;
        const calls = [callOf(orgId, at), callOf(null, at + 1, { reason: 'NUMBER_NOT_ATTACHED' }), callOf(otherOrgId, at + 2)];
        for (const call of calls) await stores.calls.write({ ...endedCall(call), trace: [TRACED] });
        expect((await stores.calls.list(null, { limit: 3 })).calls).toEqual([...calls].reverse());
        expect((await stores.calls.list(null, { limit: 3, reason: 'NUMBER_NOT_ATTACHED' })).calls[0]).toEqual(calls[1]);
        expect(await stores.calls.get(NO_ORG, calls[1]!.call_id)).toEqual(calls[1]);
        expect(await stores.calls.trace(NO_ORG, calls[1]!.call_id)).toEqual([TRACED]);
      });
    });
  });
}
