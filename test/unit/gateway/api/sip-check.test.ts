import { beforeEach, describe, expect, it } from 'vitest';
import type { CheckRequest, CheckResult } from '../../../../src/gateway/api/schemas/sip-check.js';
import { StoreUnavailableError } from '../../../../src/gateway/ports/ports.js';
import { openApi, type ApiFixture } from './api-fixture.js';

const REJECTED: CheckResult = {
  outcome: 'reject',
  sip_status: 404,
  reason: 'NUMBER_NOT_ATTACHED',
  explanation: 'The called number is not attached for inbound calls.',
  codec: null,
  crypto_tag: null,
};

describe('POST /sip/check', () => {
  let api: ApiFixture;
  let asked: { orgId: string; request: CheckRequest }[];
  let result: () => Promise<CheckResult>;
  beforeEach(async () => {
    asked = [];
    result = () => Promise.resolve(REJECTED);
    api = await openApi({
      check: (orgId, request) => {
        asked.push({ orgId, request });
        return result();
      },
    });
  });

  it('checks under the organization of the key and answers with the decision', async () => {
    const answer = await api.post('/sip/check', {
      phone_number: '1 (555) 123-4567'.replaceAll(' ', ''),
      source_ip: '203.0.113.7',
      sdp: 'v=0',
    });
    expect([answer.status, answer.body]).toEqual([200, { status: 'success', data: REJECTED, errors: null }]);
    expect(asked).toEqual([{ orgId: api.orgId, request: { number: '+15551234567', sourceIp: '203.0.113.7', sdp: 'v=0' } }]);
  });

  it('judges nothing that is not given', async () => {
    result = () => Promise.resolve({ ...REJECTED, outcome: 'accept', sip_status: 200, reason: null, codec: 'PCMA', crypto_tag: 1 });
    const answer = await api.post('/sip/check', { phone_number: '+15551234567' });
    expect(answer.body.data).toMatchObject({ outcome: 'accept', reason: null, codec: 'PCMA', crypto_tag: 1 });
    expect(asked[0]?.request).toEqual({ number: '+15551234567', sourceIp: null, sdp: null });
  });

  it.each([
    [{}, 'phone_number'],
    [{ phone_number: '12' }, 'phone_number'],
    [{ phone_number: '+15551234567', source_ip: '203.0.113.0/24' }, 'source_ip'],
    [{ phone_number: '+15551234567', sdp: 'x'.repeat(32_769) }, 'sdp'],
    [{ phone_number: '+15551234567', sdp: 1 }, 'sdp'],
    [{ phone_number: '+15551234567', source: '203.0.113.7' }, 'source'],
  ])('answers %j with 400, and checks nothing', async (body, path) => {
    const answer = await api.post('/sip/check', body);
    expect([answer.status, answer.failure.errors.map((entry) => [entry.error, entry.path])]).toEqual([400, [['VALIDATION', path]]]);
    expect(asked).toEqual([]);
  });

  it('accepts an SDP of 32768 characters', async () => {
    expect((await api.post('/sip/check', { phone_number: '+15551234567', sdp: 'x'.repeat(32_768) })).status).toBe(200);
  });

  it('needs the SIP entitlement, and answers 503 when the store is away', async () => {
    result = () => Promise.reject(new StoreUnavailableError('away'));
    const away = await api.post('/sip/check', { phone_number: '+15551234567' });
    expect([away.status, away.failure.errors[0]?.error]).toEqual([503, 'STORE_UNAVAILABLE']);
    await api.stores.orgs.change(api.orgId, { sip_enabled: false });
    const refused = await api.post('/sip/check', { phone_number: '+15551234567' });
    expect([refused.status, refused.failure.errors[0]?.error]).toEqual([403, 'SIP_NOT_ENABLED']);
  });
});
