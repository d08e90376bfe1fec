import { describe, expect, it } from 'vitest';
import type { E164 } from '../../../../../../src/gateway/model/e164.js';
import type { Route } from '../../../../../../src/gateway/model/records.js';
import { agentKey, numberKey, numberLeasesKey, numberOfKey, orgKey } from '../../../../../../src/gateway/store/redis/keys.js';
import { RecordCache, RouteCache, routeOf } from '../../../../../../src/gateway/store/redis/routes/route-cache.js';
import { NUMBER, ROUTE } from '../../../../../support/route.js';
import { agentOf } from '../../store-contract.js';

const AGENT = agentOf('o', { agent_id: 'a' });
const OTHER = '+15550100101' as E164;

function routeTo(number: E164, agent: Route['agent']): Route {
  const inbound = ROUTE.number.inbound === null ? null : { ...ROUTE.number.inbound, agent_id: agent?.agent_id ?? null };
  return { ...ROUTE, number: { ...ROUTE.number, phone_number: number, inbound }, agent };
}

const textsOf = ({ number, org, agent }: Route) => ({
  number: JSON.stringify(number),
  org: JSON.stringify(org),
  agent: agent === null ? null : JSON.stringify(agent),
});

describe('RouteCache', () => {
  const WITH_AGENT = routeTo(NUMBER, AGENT);
  const WITHOUT = routeTo(OTHER, null);

  function remembering(): RouteCache {
    const remembered = new RouteCache(10);
    for (const route of [WITH_AGENT, WITHOUT]) remembered.keep(route, textsOf(route), 7, remembered.watch());
    return remembered;
  }
  const known = (remembered: RouteCache) => [NUMBER, OTHER].map((number) => remembered.get(number) !== undefined);

  it('returns the route that was kept, and what to read next', () => {
    const kept = remembering().get(NUMBER);
    expect(kept).toMatchObject({ orgId: 'o', agentId: 'a', atMs: 7 });
    expect(kept === undefined || routeOf(kept.texts, new RecordCache(10))).toEqual(WITH_AGENT);
  });

  it.each([
    ['its number', numberKey(NUMBER), [false, true]],
    ['its agent', agentKey('a'), [false, true]],
    ['its organization', orgKey('o'), [false, false]],
    ['something else', agentKey('b'), [true, true]],
  ])('drops what a change of %s outdates', (_what, key, left) => {
    const remembered = remembering();
    remembered.onChange(key);
    expect(known(remembered)).toEqual(left);
  });

  it.each([numberKey(NUMBER), agentKey('a'), orgKey('o')])('keeps nothing of a look-up that a change of %s overtook', (key) => {
    const remembered = new RouteCache(10);
    const watch = remembered.watch();
    remembered.onChange(key);
    remembered.keep(WITH_AGENT, textsOf(WITH_AGENT), 7, watch);
    expect(remembered.get(NUMBER)).toBeUndefined();
    remembered.endWatch(watch);
    remembered.keep(WITH_AGENT, textsOf(WITH_AGENT), 7, remembered.watch());
    expect(remembered.get(NUMBER)).toBeDefined();
  });

  it('tells numbers from other keys', () => {
    expect([numberKey(NUMBER), numberLeasesKey(NUMBER), orgKey('o')].map(numberOfKey)).toEqual([NUMBER, null, null]);
  });
});
