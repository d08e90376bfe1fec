import { expect } from 'vitest';
import type { CallRecord } from '../../src/gateway/model/call-record.js';
import { until } from './carrier-call.js';
import { testCertificates } from './certificates.js';
import { RunningGateway } from './gateway.js';
import { OutboundTrunk, type TakenCall } from './outbound-trunk.js';
import type { Product, StartProduct } from './product.js';

export const FROM = '+15550100555';
export const TO = '+4930123456';

type Answer = { readonly status: number; readonly json: Record<string, unknown> };
export type ShownCall = CallRecord & { readonly state: string };

/** A gateway that may dial +49 through a carrier of the test's, from one number. */
export class OutboundSite<P extends Product = RunningGateway> {
  private constructor(
    readonly gateway: P,
    readonly trunk: OutboundTrunk,
  ) {}

  /** @param isAllowed false: nothing is set up yet */
  static start(isAllowed = true, settings: Readonly<Record<string, string>> = {}): Promise<OutboundSite> {
    return OutboundSite.startOn((all) => RunningGateway.start(all), isAllowed, settings);
  }

  static async startOn<P extends Product>(
    start: StartProduct<P>,
    isAllowed = true,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<OutboundSite<P>> {
    const { caFile } = await testCertificates();
    const trunk = await OutboundTrunk.open();
    const own = { TRUNKLINE_CA_FILE: caFile, TRUNKLINE_TRUNKS_ALLOW_PRIVATE: 'true' };
    const site = new OutboundSite(await start({ ...own, ...settings }), trunk);
    if (isAllowed) {
      await site.attach();
      await site.allow();
    }
    return site;
  }

  async attach(endpoint = this.trunk.endpoint): Promise<void> {
    const directions = [{ type: 'outbound', sip_endpoint: endpoint }];
    const { status } = await this.gateway.api('POST', '/sip/attach', { phone_number: FROM, directions, service: 'sip' });
    expect(status).toBe(200);
  }

  /** What is usual, changed by these options. */
  async allow(...options: readonly string[]): Promise<void> {
    const usual = ['--prices', '+49=0.02', '--callers', FROM, '--max-calls-per-second', '100', '--max-concurrent-calls', '50'];
    const daily = ['--max-calls-per-day', '1000', '--max-cost-per-day', '1000'];
    const { code, stderr } = await this.gateway.cli('org', 'set-dialling', this.gateway.ready.org_id, ...usual, ...daily, ...options);
    expect([code, stderr]).toEqual([0, '']);
  }

  place(body: object = {}, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.placeBy(this.gateway.ready.api_key, { phone_number: TO, from: FROM, ...body }, headers);
  }

  async placeBy(key: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const response = await fetch(`${this.gateway.ready.http}/v1/calls`, {
      method: 'POST',
      headers: { authorization: key, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, json: (await response.json()) as Record<string, unknown> };
  }

  /** Places a call, and takes it at the carrier. */
  async placed(body: object = {}): Promise<{ readonly callId: string; readonly call: TakenCall }> {
    const answer = await this.place(body);
    expect(answer, JSON.stringify(answer.json)).toMatchObject({ status: 200, json: { status: 'success' } });
    return { callId: String(answer.json['call_id']), call: await this.trunk.call() };
  }

  async callOf(callId: string): Promise<ShownCall> {
    // The API of a gateway that was killed comes back last.
    const answer = await this.gateway.api('GET', `/v1/calls/${callId}`).catch(() => null);
    return (answer?.json['call'] ?? {}) as ShownCall;
  }

  /** Its record, when it is written. */
  async ended(callId: string): Promise<CallRecord> {
    const isEnded = until(async () => (await this.callOf(callId)).state === 'ended', 'the call has not ended');
    await isEnded.catch(async (cause: unknown) => {
      throw new Error(`no record of ${callId}; its gateway logged:\n${await this.#loggedOf(callId)}`, { cause });
    });
    return this.callOf(callId);
  }

  /** What its gateway logged of the call, and what went wrong there. */
  async #loggedOf(callId: string): Promise<string> {
    const lines = (await this.gateway.log('gateway')).split('\n');
    return lines.filter((line) => line.includes(callId) || /"level":"(?:warn|error)"/.test(line)).join('\n');
  }

  async destroy(): Promise<void> {
    await this.gateway.destroy();
    await this.trunk.close();
  }
}
