import type { TrunkDown } from './call/place-context.js';
import { ensureDataDir, gatewayInstance } from '../config/data-dir.js';
import { isFirstWorker, workerInstance, workerName, type GatewayWorker } from '../config/gateway-worker.js';
import { httpAddress, type Config } from '../config/schema.js';
import type { Clock } from '../lib/clock.js';
import { formatHostPort } from '../lib/address.js';
import type { Log } from '../lib/log.js';
import { Metrics } from '../observability/metrics/registry.js';
import { generateSrtpKey } from '../srtp/srtp.js';
import { answerGateway } from './api/call-control.js';
import { AwakeGate } from './call/awake-gate.js';
import { Inbound } from './drachtio/inbound.js';
import { createSrfApp } from './drachtio/srf-facade.js';
import type { MediaService } from './media-thread/media-service.js';
import { openStirVerifier } from './stir/verifier.js';
import { openBatches } from './wiring/batches.js';
import { ensureDemo } from './wiring/demo.js';
import { beginGateway, collectGateway } from './wiring/gateway-metrics.js';
import { openHttpClients } from './wiring/http-clients.js';
import { inboundOptions, inboundSettings, overloadDetector } from './wiring/inbound-options.js';
import { connectSipServer, retirePredecessor } from './wiring/sip-server.js';
import { openObservers } from './wiring/observers.js';
import { orphanedCalls, type Predecessor } from './wiring/predecessor.js';
import { openRegistrations, trunkWatch } from './wiring/registrations.js';
import { headroomShare, openRelay, watchDeafPorts } from './wiring/relay.js';
import { running, type Gateway } from './wiring/shutdown.js';
import { openStores } from './wiring/stores.js';
import { publicTrunks } from './wiring/public-trunks.js';
import { calledCertificates } from '../tls/tls-material.js';
import { openWebhooks } from './wiring/webhooks.js';

export { loadHttpClient } from './net/guarded-client.js';

/** Opens everything and connects it. Rejects with a text for a person. @param config of this worker @param opening its media threads */
export async function startGateway(
  config: Config,
  clock: Clock,
  log: Log,
  worker: GatewayWorker,
  opening: Promise<MediaService>,
  predecessor: Predecessor,
): Promise<Gateway> {
  await predecessor.isAskedAhead;
  const instance = workerInstance(gatewayInstance(config), worker);
  const metrics = new Metrics(workerName(worker.index));
  beginGateway(metrics);
  const observers = await openObservers(config, instance, clock, log, metrics);
  const { stores, openSpool } = openStores(config, instance, worker, clock, log);
  await stores.ready();
  const relay = await openRelay(config, worker, instance, clock, log);
  for (const { name: node } of relay.nodes()) metrics.begin({ node });
  const caPem = await calledCertificates(config);
  const [endpoint, identities] = await Promise.all([opening, openStirVerifier(config.stir, caPem, clock)]);
  const overload = overloadDetector(config, endpoint, clock, log);
  const srf = createSrfApp(publicTrunks(clock));
  const clients = openHttpClients(config, caPem, clock);
  const { toolRunner } = clients;
  const webhooks = openWebhooks(config, caPem, stores, clock, log);
  const gate = config.sip.take_over ? new AwakeGate(clock, () => stores.ping()) : null;
  const mayMoveMedia = (): boolean => config.rtpengine.on_node_loss === 'move' && relay.isUp;
  const parts = { gate, ...stores.ofCalls, identities, relay, endpoint, srf, clock, log, newKey: generateSrtpKey, mayMoveMedia };
  const trunks = trunkWatch(config, clock, log, { stores, srf });
  const trunkDown: TrunkDown = (number) => trunks.downReason(number);
  const inbound = new Inbound(
    { ...parts, trunkDown, ...clients, ...inboundSettings(config), ...observers.services },
    inboundOptions(config),
    () => ({
      overload: overload.excess ?? relay.excess(),
      isRelayUp: relay.isUp,
      mediaHeadroom: Math.min(relay.headroom() ?? Infinity, endpoint.capacity - endpoint.legs),
    }),
    log,
  );
  relay.onNodeLost((_node, callIds) => inbound.relayLost(callIds));
  const deafPorts = watchDeafPorts(relay, inbound, clock, log);
  const { orphaned, endedMs } = await orphanedCalls(predecessor, { snapshots: stores.snapshots, openSpool, endpoint, inbound, log });
  inbound.adopt(orphaned, endedMs);
  const [demo] = await Promise.all([
    // Somebody else's Redis gets no demo organization.
    config.redis.url === null && isFirstWorker(worker) ? ensureDemo({ stores, dataDir: ensureDataDir(config), clock }) : null,
    // Answered calls of an earlier process keep their relay sessions until it is known whether they go on. One that was still being placed does
    // not, and may have a session that it never heard of.
    relay.reconcile(new Set(orphaned.filter(({ answer }) => answer !== null).map(({ call_id: callId }) => callId))),
  ]);
  stores.bus.onRequest((body) => answerGateway(inbound, body));
  await connectSipServer(config, worker, instance, srf, inbound);
  const headroom = (): number => headroomShare(worker, relay, endpoint);
  collectGateway(metrics, { trunks, inbound, relay, endpoint, stores, headroom, isFirst: isFirstWorker(worker) });
  await retirePredecessor(config, worker);
  // Calls that go on do not wait for it: it is half of what is loaded.
  const { openApi } = await import('./wiring/api.js');
  const api = await openApi(config, clock, log, { stores, relay, inbound, toolRunner, metrics, worker });
  const batches = openBatches(config, instance, clock, log, { stores, inbound });
  const registrar = openRegistrations(config, clock, log, { stores, inbound, srf });
  trunks.start((user) => inbound.contactOf(user));
  overload.start();
  stores.startSweeping();
  webhooks.start();
  const facts =
    api.port === null
      ? {}
      : { http: `http://${formatHostPort(httpAddress(config), api.port)}`, sip_tls: inbound.listensOn('tls'), ...demo };
  const services = { relay, deafPorts, endpoint, stores, observers, clients, identities, webhooks };
  return running(config, clock, facts, metrics, { ...services, gate, inbound, batches, registrar, trunks, api, overload, log });
}
