import { NO_DIALS } from './no-dials.js';
import { OPERATOR } from './providers.js';
import type { E164 } from '../../src/gateway/model/e164.js';
import type { Route } from '../../src/gateway/model/records.js';
import { Inbound, type InboundServices } from '../../src/gateway/drachtio/inbound.js';
import { NO_PROVIDER_USAGE } from '../../src/gateway/model/provider-usage.js';
import { NO_USAGE } from '../../src/gateway/admission/admission.js';
import type { SrfApp } from '../../src/gateway/ports/signalling.js';
import { silentLog, type Log } from '../../src/lib/log.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { INSIDE, LOCAL, OUTSIDE } from './call-machine.js';
import { ROUTE } from './route.js';
import { NO_VOICE_SERVER } from './voice-server.js';

/** What of the gateway's surroundings a test plays otherwise. */
export type Played = {
  readonly [Name in 'routes' | 'calls' | 'snapshots' | 'relay' | 'endpoint']?: Partial<InboundServices[Name]>;
};

/** A gateway's calls on drachtio-srf: store, relay, media and agents say yes to everything at once. */
export function playedInbound(
  srf: SrfApp,
  played: Played = {},
  more: Partial<InboundServices> = {},
  route: Route = ROUTE,
  log: Log = silentLog,
): Inbound {
  return new Inbound(
    { ...playedServices(srf, played, route), ...more },
    {
      sipHost: null,
      contactPort: true,
      ringingAfterMs: 500,
      standIn: null,
      refusedVerdicts: [],
      relayAddress: null,
      transferHosts: ['pbx.example'],
      transferPrefixes: ['+1555'],
      trunkHosts: { isAllowed: () => true, isTrusted: () => true },
      maxDurationMs: 600_000,
      calledNumberFrom: 'request-uri',
      edge: { allowedSources: [], allowedIdentities: [], maxCalls: null, maxCallsPerSecond: null },
    },
    () => ({ overload: null, isRelayUp: true, mediaHeadroom: null }),
    log,
  );
}

function playedServices(srf: SrfApp, played: Played, route: Route): InboundServices {
  const sdp = (text: string): Promise<{ sdp: string }> => Promise.resolve({ sdp: text });
  return {
    trunksArePublic: false,
    mayMoveMedia: () => true,
    dials: NO_DIALS,
    gate: null,
    doNotCall: { add: () => Promise.resolve(1), find: () => Promise.resolve(new Set<E164>()) },
    identities: { verify: () => Promise.resolve(null) },
    routes: {
      lookup: () => Promise.resolve({ route, load: NO_USAGE, staleMs: null }),
      release: () => undefined,
      disown: () => undefined,
      ...played.routes,
    },
    calls: { write: () => Promise.resolve(), ...played.calls },
    snapshots: {
      persist: () => undefined,
      delete: () => undefined,
      written: () => Promise.resolve(),
      flush: () => Promise.resolve(),
      orphaned: () => Promise.resolve([]),
      ahead: () => Promise.resolve([]),
      take: () => Promise.resolve([]),
      ...played.snapshots,
    },
    sessions: {
      begin: () => Promise.resolve(null),
      used: () => undefined,
      end: () => undefined,
      usage: () => Promise.resolve(NO_PROVIDER_USAGE),
    },
    relay: {
      offer: () => sdp(INSIDE),
      answer: () => sdp(OUTSIDE),
      offerToCarrier: () => sdp(OUTSIDE),
      answerFromCarrier: () => sdp(INSIDE),
      delete: () => Promise.resolve(null),
      figures: () => Promise.resolve(null),
      nodeOf: () => 'node',
      adopt: () => true,
      leave: () => undefined,
      ...played.relay,
    },
    endpoint: {
      connectAgent: () => Promise.resolve(),
      send: () => undefined,
      startFork: () => undefined,
      reserve: () => Promise.resolve(LOCAL),
      open: () => Promise.resolve(),
      change: () => Promise.resolve(),
      figures: () => Promise.resolve(null),
      close: () => Promise.resolve(null),
      ...played.endpoint,
    },
    srf,
    clock: systemClock,
    log: silentLog,
    newKey: () => new Uint8Array(30),
    agentSideSrtp: false,
    referReason: 'DECLINED',
    tools: { find: () => Promise.resolve([]) },
    voiceServer: NO_VOICE_SERVER,
    toolRunner: { run: () => Promise.reject(new Error('there are no tools')) },
    isTraced: true,
    operatorAgent: OPERATOR,
  };
}
