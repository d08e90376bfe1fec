import { BatchDialler, type BatchServices } from '../../src/gateway/batches/batch-dialler.js';
import { numberOf } from '../../src/gateway/api/batch-numbers.js';
import type { AgentRequest } from '../../src/gateway/model/agent.js';
import type { Dialling } from '../../src/gateway/model/dialling.js';
import type { E164 } from '../../src/gateway/model/e164.js';
import { DEFAULT_INBOUND_OPTIONS, type OrgRecord, type Route } from '../../src/gateway/model/records.js';
import type { BatchRun, NumberStep } from '../../src/gateway/ports/batches.js';
import type { PlaceCall } from '../../src/gateway/ports/place-call.js';
import type { DialLedger } from '../../src/gateway/ports/ports.js';
import { startCall } from '../../src/gateway/call/machine.js';
import { callPlacer } from '../../src/gateway/wiring/place-call.js';
import { RedisDialLedger } from '../../src/gateway/store/redis/dials/redis-dials.js';
import { err, ok } from '../../src/lib/result.js';
import { silentLog } from '../../src/lib/log.js';
import { FACTS, PERMITTED, PLACED, playOn } from './call-machine.js';
import { NUMBER, ROUTE } from './route.js';
import type { OtherCalls } from '../../src/gateway/call/call-legs.js';
import { RunnerBench, turns } from './runner-bench.js';
import { VirtualClock } from './virtual-clock.js';
import { NO_VOICE_SERVER } from './voice-server.js';

/** On the do-not-call list. */
export const LISTED = '+4930111111' as E164;
export const DIALLING: Dialling = {
  prices: { '+49': 0.02, '+1900': null },
  callers: [NUMBER],
  max_calls_per_second: 100,
  max_concurrent_calls: 100,
  max_calls_per_day: 100,
  max_cost_per_day: 100,
};
const ORG: OrgRecord = { ...ROUTE.org, dialling: DIALLING };
const MAY_DIAL: Route = { ...ROUTE, org: ORG, number: { ...ROUTE.number, outbound: { sip_endpoint: 'trunk.example' } } };

/** What the operator and the customer allow of transfers. */
export interface Allowed {
  readonly dialling?: boolean;
  readonly transferList?: unknown;
  readonly prefixes?: readonly string[];
  readonly hosts?: readonly string[];
}

/** Asks for a number through one door; whether anything leaves for it. */
export type Door = (to: string, allowed?: Allowed) => Promise<boolean>;

const doNotCall = {
  add: () => Promise.resolve(1),
  find: (_orgId: string, numbers: readonly E164[]) => Promise.resolve(new Set(numbers.filter((number) => number === LISTED))),
};

/** The reservation right before an INVITE, over a Redis that has room for every call. */
export function ledger(): DialLedger {
  const redis = {
    script: (_script: unknown, _keys: unknown, args: readonly unknown[]) => Promise.resolve(args.includes(LISTED) ? 'do not call' : ''),
  };
  const records = { read: () => Promise.resolve({ number: MAY_DIAL.number, org: MAY_DIAL.org }) };
  const writes = { flush: () => undefined, write: () => Promise.resolve() };
  const endings = { write: () => undefined };
  return new RedisDialLedger(
    redis as never,
    records as never,
    writes as never,
    endings as never,
    30_000,
    'gw',
    new VirtualClock(),
    silentLog,
  );
}

/** As the API and batches place calls. */
export function placer(placed: string[]): PlaceCall {
  return callPlacer({
    isConnected: true,
    notReady: null,
    trunkRefusal: () => null,
    kept: () => Promise.resolve(),
    place: ({ to }) => {
      placed.push(to);
      return null;
    },
  });
}

export const batch: Door = async (to) => {
  const given = numberOf({ row: 1, phone_number: to });
  if (!given.ok) return false;
  const placed: string[] = [];
  const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
  const run = {
    batchId: 'b',
    orgId: 'o',
    state: 'in_progress',
    plan: { from: NUMBER, agent_id: null, calls_per_second: 1, max_concurrent_calls: 1, hours: { from: '00:00', to: '24:00', days } },
    counts: { waiting: 1, dialling: 0, answered_today: 0, abandoned_today: 0 },
    sinceResumed: { answered: 0, abandoned: 0 },
    changedMs: 0,
  } as unknown as BatchRun;
  const work = {
    running: () => Promise.resolve(['b']),
    read: () => Promise.resolve([run]),
    due: () => Promise.resolve([{ entry: given.value, dueMs: 0 }]),
    take: (_id: string, steps: readonly NumberStep[]) =>
      Promise.resolve(steps.flatMap((step) => (step.do === 'dial' ? [{ number: step.entry.number, callId: step.callId }] : []))),
  };
  const services = {
    ...{ work, doNotCall, placeCall: placer(placed), clock: new VirtualClock(), log: silentLog },
    longestMinutes: 120,
    allowance: { headroom: () => Promise.resolve({ calls: 10, micros: Infinity }) },
    orgs: { get: () => Promise.resolve(MAY_DIAL.org) },
    numbers: { get: () => Promise.resolve(MAY_DIAL.number) },
  };
  await new BatchDialler(services as unknown as BatchServices).tick();
  return placed.length > 0;
};

/** A call that came in; whether its carrier gets a REFER, or a call of ours goes out for it. */
async function referred(
  { dialling = true, ...allowed }: Allowed,
  more: Partial<Route>,
  ask: (bench: RunnerBench) => void,
): Promise<boolean> {
  const agent = { transfer_list: allowed.transferList ?? null } as Route['agent'];
  const route: Route = { ...(dialling ? MAY_DIAL : ROUTE), agent, ...more };
  const placed: E164[] = [];
  const others: OtherCalls = { placeLeg: (request) => (placed.push(request.to), null), tell: () => true };
  const bench = new RunnerBench(false, null, {
    route,
    facts: { transferPrefixes: allowed.prefixes ?? [], transferHosts: allowed.hosts ?? [] },
    services: { doNotCall, others, dials: ledger(), voiceServer: { ...NO_VOICE_SERVER, document } },
  });
  await bench.connect('');
  ask(bench);
  for (let turn = 0; turn < 10; turn += 1) await turns();
  const [leg] = placed;
  return leg === undefined ? bench.pending.some(({ name }) => name === 'REFER') : reserves(leg);
}

/** Its URL says what is dialled. */
const document = ({ url }: { readonly url: string }) => {
  const to = decodeURIComponent(new URL(url).hash.slice(1));
  return Promise.resolve(to === '' ? err('there is no document') : ok({ text: dialDocument(to), contentType: 'text/xml', setCookies: [] }));
};
const dialDocument = (to: string): string =>
  `<Response><Dial>${/^sips?:/.test(to) ? `<Sip>${to}</Sip>` : `<Number>${to}</Number>`}</Dial></Response>`;

const asks =
  (request: (to: string) => AgentRequest): Door =>
  (to, allowed = {}) =>
    referred(allowed, {}, (bench) => bench.agentSays(request(to)));

/** Calls that came in. */
export const TRANSFERS: Readonly<Record<string, Door>> = {
  'a transfer of a bot or of a tool': asks((to) => ({ type: 'transfer', requestId: 't', to })),
  '<Dial> of a number’s voice_url': (to, allowed = {}) => {
    const options = { ...DEFAULT_INBOUND_OPTIONS, voice_url: `https://hooks.example/#${encodeURIComponent(to)}` };
    return referred(allowed, { number: { ...MAY_DIAL.number, inbound: { agent_id: null, options } } }, (bench) => bench.agentFinishes());
  },
  '<Dial> of a document that Twilio’s REST API redirects to': (to, allowed = {}) =>
    referred(allowed, {}, (bench) => bench.runner.redirect({ twiml: dialDocument(to) })),
  '<Dial> behind a <Redirect>': (to, allowed = {}) =>
    referred(allowed, {}, (bench) =>
      bench.runner.redirect({ twiml: `<Response><Redirect>https://hooks.example/#${encodeURIComponent(to)}</Redirect></Response>` }),
    ),
};

/** Calls that we place beside one that came in, and transfers of placed calls. */
export const TRANSFERS_OF_PLACED_CALLS: Readonly<Record<string, Door>> = {
  'a transfer in a placed call': async (to) => {
    const permitted = { ...PERMITTED, route: MAY_DIAL } as typeof PERMITTED;
    const events = PLACED.map((event) => (event.type === 'permitted' ? permitted : event));
    const refer = playOn(startCall(FACTS, 60_000), [...events, { type: 'transfer-asked', requestId: 't', to }]).effects.find(
      (one) => one.do === 'refer',
    );
    return refer?.target.kind === 'number' && reserves(refer.target.number);
  },
  'a consultation of a bot': asks((to) => ({ type: 'transfer', requestId: 't', to, isConsultation: true })),
  'a transfer with a briefing': asks((to) => ({ type: 'transfer', requestId: 't', to, briefing: 'Kim calls.' })),
  'a second leg beside a call': async (to) => {
    const number = numberOf({ row: 0, phone_number: to });
    return number.ok && reserves(number.value.number);
  },
};

async function reserves(to: E164): Promise<boolean> {
  const call = { call_id: 'c' } as Parameters<DialLedger['reserve']>[0]['call'];
  return (await ledger().reserve({ orgId: 'o', from: NUMBER, to, endpoint: 'trunk.example', call, maxDurationMs: 60_000 })).ok;
}
