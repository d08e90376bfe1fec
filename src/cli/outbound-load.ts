import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiError, type Client } from '../client/index.js';
import type { Clock } from '../lib/clock.js';
import { formatHostPort } from '../lib/address.js';
import { AnsweringCarrier } from '../loadtest/run/answering-carrier.js';
import type { LoadOptions } from '../loadtest/run/load-run.js';
import type { CallPlacing } from '../loadtest/run/placed-calls.js';
import { CommandFailure } from './command.js';

const ADDRESS = '127.0.0.1';

/** The carrier of `trunkline load --outbound`, as the trunk of the calling number for as long as the test lasts. */
export class OutboundLoad {
  private constructor(
    readonly carrier: AnsweringCarrier,
    readonly api: CallPlacing,
    private readonly closing: () => Promise<void>,
  ) {}

  /** Throws a `CommandFailure` when the number has a trunk already, or may not be dialled from. */
  static async open(api: Client, { caller, called, direction, setupTimeoutMs }: LoadOptions, clock: Clock): Promise<OutboundLoad> {
    const { data } = await api.GET('/sip', { params: { query: { inbound_id: caller } } });
    if (data !== null && !Array.isArray(data) && data.outbound !== null)
      throw new CommandFailure(`${caller} has an outbound trunk: choose another number with --from`);
    const directory = await mkdtemp(join(tmpdir(), 'trunkline-load-carrier-'));
    const carrier = await AnsweringCarrier.open(directory, ADDRESS, direction ?? 'sendrecv', clock);
    const trunk = { type: 'outbound' as const, sip_endpoint: formatHostPort(ADDRESS, carrier.port), ca: carrier.ca };
    await api.POST('/sip/attach', { body: { phone_number: caller, directions: [trunk], service: 'sip' } });
    const ring = Math.min(180, Math.max(5, Math.ceil(setupTimeoutMs / 1_000)));
    const close = async (): Promise<void> => {
      await api.POST('/sip/detach', { body: { phone_number: caller, directions: 'outbound', service: 'sip' } }).catch(() => undefined);
      await carrier.close();
      await rm(directory, { recursive: true, force: true });
    };
    const placing: CallPlacing = {
      place: async (number) => {
        try {
          const { call_id: callId } = await api.POST('/v1/calls', { body: { phone_number: number, from: caller, ring_timeout: ring } });
          return { callId };
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          return { status: error.status === 0 ? null : error.status, code: error.code };
        }
      },
      reasonOf: async (callId) => (await api.GET('/v1/calls/{call_id}', { params: { path: { call_id: callId } } })).call.reason,
    };
    try {
      await checkDialling(api, caller, `${called}999999`);
    } catch (error) {
      await close();
      throw error;
    }
    return new OutboundLoad(carrier, placing, close);
  }

  close(): Promise<void> {
    return this.closing();
  }
}

/** One call: what the operator has not allowed shows before the test. */
async function checkDialling(api: Client, from: string, phone_number: string): Promise<void> {
  try {
    const { call_id } = await api.POST('/v1/calls', { body: { phone_number, from } });
    await api.POST('/v1/calls/{call_id}/stop', { params: { path: { call_id } }, body: {} }).catch(() => undefined);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'DIAL_NOT_ALLOWED') throw error;
    throw new CommandFailure(`${error.message}. The operator allows it with trunkline org set-dialling and trunks.allow_private`);
  }
}
