import { describe, expect, it } from 'vitest';
import { ownTlsOf, shownNumber, type NumberRecord, type OutboundTrunk } from '../../../../src/gateway/model/records.js';
import { accountOf } from '../../../../src/gateway/model/trunk-account.js';
import { ROUTE } from '../../../support/route.js';

const OWN = { certificate: 'PEM certificate', key: 'PEM key' };
const TRUNK: OutboundTrunk = {
  sip_endpoint: 'sips:trunk.example',
  username: 'acme',
  password: 's3cret',
  registrar: 'Reg.Example',
  ca: 'PEM CA',
  tls_names: ['trunk.example'],
  client_certificate: OWN,
};
const numberOf = (outbound: OutboundTrunk | null, orgId = 'o'): NumberRecord => ({ ...ROUTE.number, org_id: orgId, outbound });

describe('a number with an outbound trunk', () => {
  it('is shown without password and key, with its registration if it has one', () => {
    const { password: _password, client_certificate: _own, ...shown } = TRUNK;
    const certificate = { client_certificate: { certificate: OWN.certificate } };
    const registration = { state: 'registered' as const, status: 200, expires_at: null, changed_at: '2026-01-01T00:00:00.000Z' };
    expect(shownNumber(numberOf(TRUNK))).toEqual({ ...numberOf(null), outbound: { ...shown, ...certificate } });
    expect(shownNumber(numberOf(shown), registration)).toEqual({ ...numberOf(null), outbound: { ...shown, registration } });
    expect(shownNumber(numberOf(null), registration)).toEqual(numberOf(null));
  });

  it('has the settings of its TLS connection, or null', () => {
    const { ca, tls_names, client_certificate, ...plain } = TRUNK;
    expect(ownTlsOf(plain)).toBeNull();
    expect(ownTlsOf({ ...plain, ca: ca! })).toEqual({ ca });
    expect(ownTlsOf({ ...plain, tls_names: tls_names! })).toEqual({ names: tls_names });
    expect(ownTlsOf({ ...plain, client_certificate: client_certificate! })).toEqual(OWN);
    expect(ownTlsOf(TRUNK)).toEqual({ ca, names: tls_names, ...OWN });
  });

  it('shares a registration with those of the same organization, user and registrar', () => {
    const account = accountOf(numberOf(TRUNK));
    expect(account).toMatch(/^[\da-f]{64}$/);
    expect(accountOf(numberOf({ ...TRUNK, registrar: 'reg.example', password: 'other' }))).toBe(account);
    for (const other of [
      numberOf(TRUNK, 'p'),
      numberOf({ ...TRUNK, username: 'other' }),
      numberOf({ ...TRUNK, registrar: 'other.example' }),
    ])
      expect(accountOf(other)).not.toBe(account);
  });

  it('has no registration without a user or a registrar', () => {
    const { username: _user, ...userless } = TRUNK;
    const { registrar: _registrar, ...registrarless } = TRUNK;
    expect([null, userless, registrarless].map((trunk) => accountOf(numberOf(trunk)))).toEqual([null, null, null]);
  });
});
