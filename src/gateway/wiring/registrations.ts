import type { Config } from '../../config/schema.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import type { Inbound } from '../drachtio/inbound.js';
import { trunkUri } from '../drachtio/outbound.js';
import { TrunkWatch } from '../drachtio/trunk-watch.js';
import { TrunkRegistrar } from '../drachtio/trunk-registrar.js';
import type { SrfApp } from '../ports/signalling.js';
import type { RedisStores } from '../store/redis/redis-stores.js';
import { trunkHosts } from './place-call.js';

/** Why an organization does not use a trunk at this endpoint; `null`: it may. */
function trunkUse(config: Config, stores: Pick<RedisStores, 'orgs'>) {
  const { isAllowed } = trunkHosts(config.trunks);
  return async (orgId: string, endpoint: string): Promise<string | null> => {
    const org = await stores.orgs.get(orgId);
    if (org === null || org.disabled || !org.sip_enabled || org.dialling === null) return 'the organization may not dial';
    return isAllowed(trunkUri(endpoint, '').host) ? null : 'the trunk is at a private address';
  };
}

/** This gateway's part of watching trunks. */
export function trunkWatch(config: Config, clock: Clock, log: Log, { stores, srf }: { stores: RedisStores; srf: SrfApp }): TrunkWatch {
  const refusal = trunkUse(config, stores);
  return new TrunkWatch({
    trunks: stores.registrations,
    srf,
    refusal: ({ org_id: orgId, outbound }) => refusal(orgId, outbound?.sip_endpoint ?? ''),
    trunksArePublic: !config.trunks.allow_private,
    clock,
    log,
  });
}

/** This gateway's part of the registrations of trunks; begins at once. */
export function openRegistrations(
  config: Config,
  clock: Clock,
  log: Log,
  { stores, inbound, srf }: { readonly stores: RedisStores; readonly inbound: Inbound; readonly srf: SrfApp },
): TrunkRegistrar {
  const refusal = trunkUse(config, stores);
  const registrar = new TrunkRegistrar({
    registrations: stores.registrations,
    srf,
    refusal: ({ org_id: orgId, outbound }) => refusal(orgId, outbound?.registrar ?? ''),
    contact: (user) => inbound.contactOf(user),
    trunksArePublic: !config.trunks.allow_private,
    clock,
    log,
  });
  srf.onConnect(() => registrar.refresh());
  registrar.start();
  return registrar;
}
