import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocketServer } from 'ws';
import { parseE164 } from '../../src/gateway/model/e164.js';
import { DEFAULT_INBOUND_OPTIONS } from '../../src/gateway/model/records.js';
import { silentLog } from '../../src/lib/log.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { openRedisStores, type RedisStores } from '../../src/gateway/store/redis/redis-stores.js';
import { RunningGateway } from '../support/gateway.js';
import { freePorts } from '../support/ports.js';
import { startRedis, startRedisSentinels, type TestSentinels } from '../support/redis.js';
import { CarrierListener } from '../support/carrier-listener.js';
import { NUMBER as HOSTS_NUMBER, ORG as HOSTS_ORG, TwoHosts, type Host } from '../support/two-hosts.js';
import { Program } from '../support/program.js';
import { RunningRtpengine } from '../support/rtpengine.js';
import { TcpLine, UdpLine } from './lines.js';
import { PreloadedFaults } from './preload.js';
import type { Trunk } from './short-calls.js';

// Instances that faults are made in: the whole product, with what a fault needs in its place.

const NUMBER = '+15550100100';
const ORG = '7f3b5f0e-5d0c-4b0e-9a51-1c52ce0b4a11';
const SECRET = 'faults-secret';
/** Above those of tests, which may run at the same time. */
const FIRST_RELAY_PORT = 28_000;
/** For 250 calls each. */
const RELAY_PORTS = 1_000;

/** The connections of an instance, each with a proxy in it. */
export interface Lines {
  readonly control: TcpLine;
  readonly redis: TcpLine;
  readonly ng: UdpLine;
  readonly agent: TcpLine;
  readonly carrier: TcpLine;
}

export interface World {
  readonly gateway: RunningGateway;
  readonly trunk: Trunk;
  readonly orgId: string;
  readonly stores: RedisStores;
  /** The port of a Redis that has the keys. */
  readonly redisPort: () => number;
  readonly ngPorts: readonly number[];
  readonly relays: readonly RunningRtpengine[];
  readonly sentinels: TestSentinels | null;
  readonly lines: Lines | null;
  readonly faults: PreloadedFaults | null;
  /** The SIP server, where it is not a child of the instance. */
  readonly sipServer: Program | null;
  /** The host that has the calls which are listened to, where it is not the gateway's. */
  readonly otherHost: Host | null;
  /** Where carriers accept connections. */
  readonly listener: CarrierListener;
  /** The agent echoes: only echoed packets count as audio. */
  readonly isEcho: boolean;
  close(): Promise<void>;
}

export type WorldName = 'two hosts' | 'two hosts, Sentinels' | 'one gateway' | 'two gateways' | 'two rtpengines' | 'Sentinel' | 'proxies';

/** Those of a fault go before. */
type Settings = Readonly<Record<string, string>>;

/** @param ca what carriers trust, where it is not the instance's own CA */
export async function openWorld(name: WorldName, settings: Settings = {}, ca?: string): Promise<World> {
  if (name === 'two hosts') return withTwoHosts(null);
  if (name === 'two hosts, Sentinels') return withTwoHosts(await startRedisSentinels());
  if (name === 'two rtpengines') return withTwoRelays(settings);
  if (name === 'Sentinel') return withSentinel(settings);
  if (name === 'proxies') return withLines(settings);
  return embedded(name === 'one gateway' ? 1 : 2, settings, ca);
}

const instance = (workers: number): Settings => ({
  TRUNKLINE_GATEWAY_WORKERS: String(workers),
  // Carriers that accept our connections have a certificate of another CA.
  TRUNKLINE_SIP_VERIFY_PEERS: 'false',
});

/** Everything is a child of `trunkline up`. */
async function embedded(count: number, settings: Settings, ca?: string): Promise<World> {
  const faults = PreloadedFaults.build();
  const relay = {
    TRUNKLINE_RTPENGINE_PORT_MIN: String(FIRST_RELAY_PORT),
    TRUNKLINE_RTPENGINE_PORT_MAX: String(FIRST_RELAY_PORT + 2 * RELAY_PORTS - 1),
  };
  const gateway = await RunningGateway.start({ ...instance(count), ...relay, ...faults.environment, ...settings });
  const port = Number(gateway.environment['TRUNKLINE_REDIS_PORT']);
  return world(gateway, {
    orgId: gateway.ready.org_id,
    trunk: { sipPort: gateway.sipPort, ca: ca ?? gateway.ca, number: gateway.ready.phone_number },
    stores: await storesAt(`redis://127.0.0.1:${String(port)}`),
    redisPort: () => port,
    ngPorts: [Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT'])],
    faults,
    closing: [() => faults.remove()],
  });
}

/** One of `count` that share the ports. */
function relayAt(index: number, count: 1 | 2): Promise<RunningRtpengine> {
  const ports = (2 * RELAY_PORTS) / count;
  const min = FIRST_RELAY_PORT + index * ports;
  return RunningRtpengine.start({ min, max: min + ports - 1 });
}

async function withTwoRelays(settings: Settings): Promise<World> {
  const relays = [await relayAt(0, 2), await relayAt(1, 2)];
  const address = relays.map(({ name }) => name).join(',');
  const gateway = await RunningGateway.start({ ...instance(2), TRUNKLINE_RTPENGINE: address, ...settings });
  const port = Number(gateway.environment['TRUNKLINE_REDIS_PORT']);
  return world(gateway, {
    orgId: gateway.ready.org_id,
    trunk: { sipPort: gateway.sipPort, ca: gateway.ca, number: gateway.ready.phone_number },
    stores: await storesAt(`redis://127.0.0.1:${String(port)}`),
    redisPort: () => port,
    ngPorts: relays.map((relay) => relay.port),
    relays,
    closing: relays.map((relay) => () => relay.stop()),
  });
}

async function withSentinel(settings: Settings): Promise<World> {
  const sentinels = await startRedisSentinels();
  const stores = await storesAt(sentinels.url, sentinels.name);
  await makeOrganization(stores);
  const gateway = await RunningGateway.start({
    ...instance(2),
    TRUNKLINE_REDIS_URL: sentinels.url,
    TRUNKLINE_REDIS_SENTINEL_NAME: sentinels.name,
    ...settings,
  });
  return world(gateway, {
    orgId: ORG,
    trunk: { sipPort: gateway.sipPort, ca: gateway.ca, number: NUMBER },
    stores,
    // The replica has them all, before it is made the primary and after.
    redisPort: () => sentinels.replica.port,
    ngPorts: [Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT'])],
    sentinels,
    closing: [() => sentinels.close()],
  });
}

async function withTwoHosts(sentinels: TestSentinels | null): Promise<World> {
  const hosts = await TwoHosts.start(undefined, sentinels);
  const { gateway, trunk } = hosts.b;
  return world(gateway, {
    orgId: HOSTS_ORG,
    trunk: { ...trunk, number: HOSTS_NUMBER },
    stores: await storesAt(sentinels?.url ?? hosts.redis.url, sentinels?.name),
    redisPort: () => (hosts.redis.isRunning() ? hosts.redis : (sentinels?.replica ?? hosts.redis)).port,
    sentinels,
    ngPorts: [Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT'])],
    otherHost: hosts.a,
    closing: [() => hosts.close()],
  });
}

/** Each part by itself, and a proxy in every connection between them. */
async function withLines(settings: Settings): Promise<World> {
  const directory = mkdtempSync(join(tmpdir(), 'trunkline-faults-sip-'));
  const [sip = 0, controlPort = 0] = await freePorts(2);
  const sipServer = new Program(['sip-server'], {
    TRUNKLINE_DATA_DIR: directory,
    TRUNKLINE_SIP_TLS_PORT: String(sip),
    TRUNKLINE_DRACHTIO_PORT: String(controlPort),
    TRUNKLINE_DRACHTIO_SECRET: SECRET,
    TRUNKLINE_SIP_VERIFY_PEERS: 'false',
  });
  await sipServer.printed('"msg":"sip_server.ready"');
  const redis = await startRedis();
  const relay = await relayAt(0, 1);
  const bot = await EchoBot.start();
  const lines: Lines = {
    control: await TcpLine.open(controlPort),
    redis: await TcpLine.open(redis.port),
    ng: await UdpLine.open(relay.port),
    agent: await TcpLine.open(bot.port),
    carrier: await TcpLine.open(sip),
  };
  const stores = await storesAt(redis.url);
  await makeOrganization(stores);
  const faults = PreloadedFaults.build();
  const gateway = await RunningGateway.start({
    ...instance(2),
    ...faults.environment,
    TRUNKLINE_DRACHTIO_URL: `127.0.0.1:${String(lines.control.port)}`,
    TRUNKLINE_DRACHTIO_SECRET: SECRET,
    TRUNKLINE_REDIS_URL: `redis://127.0.0.1:${String(lines.redis.port)}`,
    TRUNKLINE_RTPENGINE: `127.0.0.1:${String(lines.ng.port)}`,
    TRUNKLINE_AGENTS_URL: `ws://localhost:${String(lines.agent.port)}/stream`,
    TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true',
    ...settings,
  });
  return world(gateway, {
    orgId: ORG,
    trunk: { sipPort: lines.carrier.port, ca: await readFile(join(directory, 'tls/ca.pem'), 'utf8'), number: NUMBER },
    stores,
    redisPort: () => redis.port,
    ngPorts: [relay.port],
    lines,
    faults,
    sipServer,
    isEcho: true,
    closing: [
      ...Object.values(lines).map((line: TcpLine | UdpLine) => () => line.close()),
      () => sipServer.end('SIGTERM'),
      () => redis.close(),
      () => relay.stop(),
      () => bot.stop(),
      () => rm(directory, { recursive: true, force: true }),
      () => faults.remove(),
    ],
  });
}

type Needed = Pick<World, 'orgId' | 'trunk' | 'stores' | 'redisPort' | 'ngPorts'>;

async function world(
  gateway: RunningGateway,
  parts: Needed & Partial<World> & { readonly closing: readonly (() => unknown)[] },
): Promise<World> {
  const { closing, ...rest } = parts;
  const listener = await CarrierListener.open();
  return {
    relays: [],
    sentinels: null,
    lines: null,
    faults: null,
    sipServer: null,
    otherHost: null,
    isEcho: false,
    ...rest,
    gateway,
    listener,
    close: async () => {
      listener.close();
      await gateway.destroy();
      await parts.stores.close();
      for (const close of closing) await close();
    },
  };
}

async function storesAt(url: string, sentinelName?: string): Promise<RedisStores> {
  const sentinel = sentinelName === undefined ? null : { name: sentinelName, password: null };
  const stores = openRedisStores({ url, sentinel, clock: systemClock, log: silentLog });
  await stores.ready();
  return stores;
}

async function makeOrganization(stores: RedisStores): Promise<void> {
  const number = parseE164(NUMBER);
  if (number === undefined) throw new Error(`${NUMBER} is no number`);
  await stores.orgs.create({ name: 'Faults', sip_enabled: true, org_id: ORG });
  await stores.numbers.attach(ORG, number, { inbound: { agent_id: null, options: DEFAULT_INBOUND_OPTIONS } });
}

/** A bot that says what it hears. */
class EchoBot {
  private constructor(private readonly server: WebSocketServer) {
    server.on('connection', (socket) => {
      socket.on('error', () => undefined);
      socket.on('message', (data: Buffer) => {
        const { event, streamSid, media } = JSON.parse(data.toString()) as {
          readonly event: string;
          readonly streamSid: string;
          readonly media?: { readonly payload: string };
        };
        if (event === 'media' && media !== undefined) socket.send(JSON.stringify({ event, streamSid, media: { payload: media.payload } }));
      });
    });
  }

  static async start(): Promise<EchoBot> {
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(server, 'listening');
    return new EchoBot(server);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    for (const client of this.server.clients) client.terminate();
    this.server.close();
    await once(this.server, 'close');
  }
}
