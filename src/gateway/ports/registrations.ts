import type { NumberRecord, TrunkRegistration, TrunkState } from '../model/records.js';

/** Registrations of trunks, and which trunks answer OPTIONS, over all gateways. Everything rejects with `StoreUnavailableError`. */
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
  /** Numbers whose trunk gets OPTIONS. */
  watching(): Promise<readonly NumberRecord[]>;
  noteTrunk(trunk: string, state: TrunkState, forMs: number): Promise<void>;
  /** In order; `null`: nothing is known. */
  trunkStates(trunks: readonly string[]): Promise<readonly (TrunkState | null)[]>;
}
