import type { Config } from '../../config/schema.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import type { Inbound } from '../drachtio/inbound.js';
import { trunkUri } from '../drachtio/outbound.js';
import { TrunkRegistrar } from '../drachtio/trunk-registrar.js';
import type { NumberRecord } from '../model/records.js';
import type { SrfApp } from '../ports/signalling.js';
import type { RedisStores } from '../store/redis/redis-stores.js';
import { trunkHosts } from './place-call.js';

/** This gateway's part of the registrations of trunks; begins at once. */
export function openRegistrations(
  config: Config,
  clock: Clock,
  log: Log,
  { stores, inbound, srf }: { readonly stores: RedisStores; readonly inbound: Inbound; readonly srf: SrfApp },
): TrunkRegistrar {
  const { isAllowed } = trunkHosts(config.trunks);
  const registrar = new TrunkRegistrar({
    registrations: stores.registrations,
    srf,
    refusal: async ({ org_id: orgId, outbound }: NumberRecord) => {
      const org = await stores.orgs.get(orgId);
      if (org === null || org.disabled || !org.sip_enabled || org.dialling === null) return 'the organization may not dial';
      return isAllowed(trunkUri(outbound?.registrar ?? '', '').host) ? null : 'the registrar is at a private address';
    },
    contact: (user) => inbound.contactOf(user),
    trunksArePublic: !config.trunks.allow_private,
    clock,
    log,
  });
  srf.onConnect(() => registrar.refresh());
  registrar.start();
  return registrar;
}
