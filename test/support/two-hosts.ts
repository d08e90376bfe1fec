import { parseE164 } from '../../src/gateway/model/e164.js';
import { DEFAULT_INBOUND_OPTIONS } from '../../src/gateway/model/records.js';
import { openRedisStores, type RedisStores } from '../../src/gateway/store/redis/redis-stores.js';
import { silentLog } from '../../src/lib/log.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { RunningGateway } from './gateway.js';
import { signalAll } from './processes.js';
import { startRedis, type TestRedis, type TestSentinels } from './redis.js';
import { HANG_GUARD_MS } from './hang-guard.js';

export const NUMBER = '+15550100100';
export const ORG = '7f3b5f0e-5d0c-4b0e-9a51-1c52ce0b4a11';
const SETTINGS = {
  TRUNKLINE_SIP_TAKE_OVER: 'true',
  // The test's carriers have a certificate of another CA.
  TRUNKLINE_SIP_VERIFY_PEERS: 'false',
};

type Settings = Readonly<Record<string, string>>;

/** An instance on an address of its own. */
export interface Host {
  readonly address: string;
  readonly gateway: RunningGateway;
  /** Where carriers reach it. */
  readonly trunk: { readonly sipPort: number; readonly ca: string; readonly sipHost: string };
}

/** Two instances of the product that share one Redis, or one with a replica and Sentinels, as two hosts do. */
export class TwoHosts {
  private constructor(
    readonly redis: TestRedis,
    readonly stores: RedisStores,
    readonly a: Host,
    readonly b: Host,
    private readonly sentinels: TestSentinels | null,
  ) {}

  /**
   * @param ofA settings of the first alone
   * @param ofBoth settings of both
   */
  static async start(
    ofA: (redis: TestRedis) => Promise<Settings> = () => Promise.resolve({}),
    sentinels: TestSentinels | null = null,
    ofBoth: Settings = {},
  ): Promise<TwoHosts> {
    const redis = sentinels?.primary ?? (await startRedis());
    const url = sentinels?.url ?? redis.url;
    const sentinel = sentinels === null ? null : { name: sentinels.name, password: null };
    const stores = openRedisStores({ commandTimeoutMs: HANG_GUARD_MS, url, sentinel, clock: systemClock, log: silentLog });
    await stores.ready(HANG_GUARD_MS);
    const number = parseE164(NUMBER);
    if (number === undefined) throw new Error(`${NUMBER} is no number`);
    await stores.orgs.create({ name: 'Two hosts', sip_enabled: true, org_id: ORG });
    await stores.numbers.attach(ORG, number, { inbound: { agent_id: null, options: DEFAULT_INBOUND_OPTIONS } });
    const host = async (address: string, settings: Settings): Promise<Host> => {
      const gateway = await RunningGateway.start({
        ...SETTINGS,
        TRUNKLINE_BIND_ADDRESS: address,
        TRUNKLINE_REDIS_URL: url,
        ...(sentinels === null ? {} : { TRUNKLINE_REDIS_SENTINEL_NAME: sentinels.name }),
        ...ofBoth,
        ...settings,
      });
      return { address, gateway, trunk: { sipPort: gateway.sipPort, ca: gateway.ca, sipHost: address } };
    };
    return new TwoHosts(redis, stores, await host('127.0.0.2', await ofA(redis)), await host('127.0.0.3', {}), sentinels);
  }

  async close(): Promise<void> {
    for (const { gateway } of [this.a, this.b]) await gateway.destroy();
    await this.stores.close();
    await (this.sentinels ?? this.redis).close();
  }
}

/** A signal to all processes of a host at once. Returns the moment. */
export function signalHost({ gateway }: Host, signal: NodeJS.Signals): number {
  const atMs = performance.now();
  signalAll(gateway.dataDir, signal);
  return atMs;
}
