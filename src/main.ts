import { createApiServer, type ApiServer } from './api/server.js';
import type { Config } from './config/schema.js';
import { Inbound } from './gateway/inbound.js';
import { createSrfApp } from './gateway/srf-facade.js';
import type { Clock } from './lib/clock.js';
import { formatHostPort } from './lib/host-port.js';
import type { Log } from './lib/log.js';
import { createMediaService } from './media/media-service.js';
import { generateSrtpKey } from './media/srtp.js';
import { controlSecret, ensureDataDir } from './ops/data-dir.js';
import { ensureDemo } from './ops/demo.js';
import { packageVersion } from './ops/version.js';
import { resolveHostPort } from './ops/resolve.js';
import { sipHost } from './ops/tls-material.js';
import { RtpengineNode } from './rtpengine/node.js';
import { RtpengineRelay } from './rtpengine/relay.js';
import { openRedisStores, type RedisStores } from './store/redis-stores.js';

/** A running gateway. */
export interface Gateway {
  /** What the supervisor prints and keeps in ready.json. */
  readonly facts: Readonly<Record<string, unknown>>;
  /** New calls are refused, those in progress may go on for the drain time, then get BYE; everything is closed. */
  shutdown(): Promise<void>;
}

/** Wires the adapters to the ports and opens everything. Rejects with a text for a person. */
export async function startGateway(config: Config, clock: Clock, log: Log): Promise<Gateway> {
  const stores = openStores(config, clock, log);
  await stores.ready();
  // Somebody else's Redis gets no demo organization.
  const demo = config.redis.url === null ? await ensureDemo({ stores, dataDir: ensureDataDir(config), clock }) : null;

  const ng =
    config.rtpengine.address === null
      ? { address: '127.0.0.1', port: config.rtpengine.ng_port }
      : await resolveHostPort(config.rtpengine.address);
  const rtpengine = new RtpengineNode({ ...ng, timeoutMs: config.rtpengine.timeout_ms, clock, log });
  const isOwnRtpengine = config.rtpengine.address === null;
  const relay = new RtpengineRelay(rtpengine, isOwnRtpengine ? { outside: 'outside', inside: 'inside' } : null, clock, log);
  // Sessions of a gateway that was killed: with an rtpengine of our own they can be nobody else's.
  if (isOwnRtpengine) await relay.deleteAll();

  const endpoint = await createMediaService(
    {
      address: isOwnRtpengine ? '127.0.0.1' : config.bind_address,
      portMin: config.media.port_min,
      portMax: config.media.port_max,
      workers: config.media.workers,
      mediaTimeoutMs: config.media.timeout_ms,
    },
    log,
  );
  const srf = createSrfApp();
  const inbound = new Inbound(
    {
      routes: stores.routes,
      calls: stores.calls,
      relay,
      endpoint,
      srf,
      clock,
      log,
      newKey: generateSrtpKey,
      insideSrtp: config.media.agent_leg === 'srtp',
    },
    {
      sipHost: config.drachtio.url === null ? sipHost(config) : config.sip.host,
      ringingAfterMs: config.sip.ringing_after_ms,
      maxDurationMs: config.calls.max_duration_minutes * 60_000,
    },
    log,
  );
  const control =
    config.drachtio.url === null ? { address: '127.0.0.1', port: config.drachtio.port } : await resolveHostPort(config.drachtio.url);
  srf.connect({ host: control.address, port: control.port, secret: controlSecret(config), tags: [] });

  const api = await openApi(config, clock, log, stores, relay, inbound);
  await inbound.whenConnected(10_000);
  return {
    facts: { http: `http://${formatHostPort(config.bind_address, api.port)}`, sip_tls: inbound.listensOn('tls'), ...demo },
    shutdown: async () => {
      inbound.drain();
      srf.withdraw(['invite', 'options']);
      await Promise.race([inbound.whenIdle(), delay(clock, config.calls.drain_ms)]);
      // A call whose ACK never comes is given up by the SIP server after 64·T1.
      await Promise.race([inbound.endAll(), delay(clock, 64 * config.sip.t1_ms + 1_000)]);
      await api.server.close();
      srf.disconnect();
      await endpoint.shutdown();
      rtpengine.close();
      await stores.close();
    },
  };
}

function openStores(config: Config, clock: Clock, log: Log): RedisStores {
  const url = config.redis.url ?? `redis://127.0.0.1:${String(config.redis.port)}`;
  return openRedisStores({ url, clock, log, callRetention: { days: config.calls.retention_days } });
}

async function openApi(
  config: Config,
  clock: Clock,
  log: Log,
  stores: RedisStores,
  relay: RtpengineRelay,
  inbound: Inbound,
): Promise<{ readonly server: ApiServer; readonly port: number }> {
  const server = await createApiServer(
    {
      stores,
      clock,
      log,
      readiness: async () => ({
        redis: await isFine(stores.ping()),
        rtpengine: await isFine(relay.ping()),
        sip_server: inbound.isConnected,
      }),
    },
    { allowPlain: config.media.allow_plain, version: packageVersion() },
  );
  const { port } = await server.listen({ host: config.bind_address, port: config.http.port });
  return { server, port };
}

function isFine(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  );
}

function delay(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(delayMs, resolve));
}
