import type { NumberRecord, TrunkRegistration } from '../model/records.js';

/** Registrations of trunks, over all gateways. Everything rejects with `StoreUnavailableError`. */
export interface RegistrationStore {
  /** Numbers whose trunk has a registrar. */
  registering(): Promise<readonly NumberRecord[]>;
  /** The account is this gateway's for that time; false: another one has it. */
  claim(account: string, forMs: number): Promise<boolean>;
  /** Another gateway may have it at once. */
  release(account: string): Promise<void>;
  note(account: string, registration: TrunkRegistration): Promise<void>;
  /** In order; `null`: there was no REGISTER. */
  states(accounts: readonly string[]): Promise<readonly (TrunkRegistration | null)[]>;
}
