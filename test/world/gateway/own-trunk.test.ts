import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FROM, OutboundSite, TO } from '../../support/outbound-site.js';
import { World } from '../world.js';

// A trunk that is the gateway itself: what is placed there comes back.

let site: OutboundSite<World>;
let gateway: World;

beforeAll(async () => {
  site = await OutboundSite.startOn((settings) => World.start(settings));
  gateway = site.gateway;
});

afterAll(() => site.destroy());

const attach = (sip_endpoint: string): Promise<unknown> =>
  gateway.api('POST', '/sip/update', { phone_number: FROM, updates: { type: 'outbound', sip_endpoint } });

describe('a call to a trunk that is the gateway itself', () => {
  it('is refused with what is wrong when it is at our own address', async () => {
    await attach(`127.0.0.1:${String(gateway.sipPort)}`);
    const answer = await site.place();
    expect(answer).toMatchObject({ status: 403, json: { errors: [{ error: 'DIAL_NOT_ALLOWED' }] } });
    expect(answer.json['message']).toContain('is this gateway itself: the call would come back');
  });

  it('[3261 §8.2.2.2] ends with LOOP_DETECTED under a name that leads here, though the number that it calls is attached', async () => {
    await gateway.api('POST', '/sip/attach', { phone_number: TO, directions: ['inbound'], service: 'sip' });
    await attach(`localhost:${String(gateway.sipPort)}`);
    const { json } = await site.place();
    expect(await site.ended(String(json['call_id']))).toMatchObject({ reason: 'LOOP_DETECTED', sip_status: 482 });
    const { json: answer } = await gateway.api('GET', `/v1/calls/${String(json['call_id'])}/trace`);
    expect(JSON.stringify(answer)).toContain('LOOP_DETECTED: The same request');
  });
});
