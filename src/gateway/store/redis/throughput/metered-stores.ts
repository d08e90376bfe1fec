import type { CallStore, RouteStore } from '../../../ports/ports.js';
import type { Counted } from './throughput-counts.js';

// Where calls are counted for the throughput: at the look-up of their number and at the writing of their record.

export type CountCall = (orgId: string, kind: Counted) => void;

export function meteredRoutes(routes: RouteStore, count: CountCall): RouteStore {
  return {
    lookup: async (number, call) => {
      const found = await routes.lookup(number, call);
      if (call !== null && found.route !== null) count(found.route.org.org_id, 'begun');
      return found;
    },
    release: (callId, wasRefused) => routes.release(callId, wasRefused),
  };
}

export function meteredCalls(calls: CallStore, count: CountCall): CallStore {
  return {
    write: (call) => {
      const { org_id: orgId, answered_at: answeredAt } = call.record;
      if (orgId !== null) count(orgId, answeredAt === null ? 'refused' : 'ended');
      return calls.write(call);
    },
  };
}
