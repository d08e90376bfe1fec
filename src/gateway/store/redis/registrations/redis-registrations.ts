import type { E164 } from '../../../model/e164.js';
import type { NumberRecord, TrunkRegistration, TrunkState } from '../../../model/records.js';
import type { RegistrationStore } from '../../../ports/registrations.js';
import { numberKey, REGISTERING_KEY, registrarKey, registrationKey, trunkStateKey, WATCHED_KEY } from '../keys.js';
import { decodeRecord, RedisScript, type RedisConnection } from '../redis.js';

const CLAIM = new RedisScript('registrations/claim');
const RELEASE = new RedisScript('registrations/release');

/** What became of an account that nobody registers any more is forgotten after a day. */
const STATE_KEPT_S = 86_400;

/** Registrations of trunks: one gateway of all holds each. */
export class RedisRegistrations implements RegistrationStore {
  constructor(
    private readonly redis: RedisConnection,
    private readonly instance: string,
  ) {}

  async registering(): Promise<readonly NumberRecord[]> {
    return (await this.#indexed(REGISTERING_KEY)).filter(({ outbound }) => outbound?.registrar !== undefined);
  }

  async watching(): Promise<readonly NumberRecord[]> {
    return (await this.#indexed(WATCHED_KEY)).filter(({ outbound }) => (outbound?.options_interval_s ?? 0) > 0);
  }

  /** The index is secondary: the record says whether it is so. */
  async #indexed(key: string): Promise<readonly NumberRecord[]> {
    const numbers = await this.redis.run((client) => client.zrange(key, '-', '+', 'BYLEX'));
    const records = await this.redis.getMany(numbers.map((number) => numberKey(number as E164)));
    return records.map((text) => decodeRecord('number', text)).filter((record) => record !== null);
  }

  async noteTrunk(trunk: string, state: TrunkState, forMs: number): Promise<void> {
    await this.redis.run((client) => client.set(trunkStateKey(trunk), JSON.stringify(state), 'PX', forMs));
  }

  async trunkStates(trunks: readonly string[]): Promise<readonly (TrunkState | null)[]> {
    const texts = await this.redis.getMany(trunks.map(trunkStateKey));
    return texts.map((text) => (text === null ? null : (JSON.parse(text) as TrunkState)));
  }

  async claim(account: string, forMs: number): Promise<boolean> {
    return (await this.redis.script(CLAIM, [registrarKey(account)], [this.instance, forMs])) === 1;
  }

  async release(account: string): Promise<void> {
    await this.redis.script(RELEASE, [registrarKey(account)], [this.instance]);
  }

  async note(account: string, registration: TrunkRegistration): Promise<void> {
    await this.redis.run((client) => client.set(registrationKey(account), JSON.stringify(registration), 'EX', STATE_KEPT_S));
  }

  async states(accounts: readonly string[]): Promise<readonly (TrunkRegistration | null)[]> {
    const texts = await this.redis.getMany(accounts.map(registrationKey));
    return texts.map((text) => (text === null ? null : (JSON.parse(text) as TrunkRegistration)));
  }
}
