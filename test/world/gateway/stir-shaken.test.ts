import { describe, expect, it, onTestFinished } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer, WireMessage } from '../../support/sip-peer.js';
import { identityHeader, StirAuthority, type Said, type Signer } from '../../support/stir.js';
import { startWorld, type World } from '../world.js';

const NUMBER = '+15550100100';

let authority: StirAuthority;
let signer: Signer;
let gateway: World;
let peer: SipPeer;

let strange: Signer;

/** A gateway that trusts one authority, which serves certificates of its own and of another one. */
async function start(refuse: string): Promise<void> {
  const [stranger, own] = [await StirAuthority.create(), await StirAuthority.create()];
  [authority, signer, strange] = [own, await own.signer(), await stranger.signer()];
  const served: Readonly<Record<string, string>> = { '/cert.pem': signer.chain, '/strange.pem': strange.chain };
  authority.serve((path) => {
    const body = served[path];
    return body === undefined ? { status: 404, body: '' } : { status: 200, body };
  });
  const settings = {
    TRUNKLINE_STIR_ROOTS_FILE: authority.rootsFile,
    TRUNKLINE_STIR_ALLOW_PRIVATE: 'true',
    TRUNKLINE_STIR_REFUSE: refuse,
  };
  // OpenSSL has made certificates that are valid from now on.
  gateway = await startWorld(settings, { startsMs: Date.now() });
  onTestFinished(() => Promise.all([stranger, own].map((one) => one.close())).then(() => undefined));
  peer = await gateway.carrier();
}

const identity = (said: Said = {}, url = authority.url('cert.pem'), atMs = Date.now(), by = signer): string =>
  identityHeader(by.key, url, atMs, said);

async function called(header: string | null): Promise<{ answer: WireMessage; record: Record<string, unknown> }> {
  const call = new HandMadeCall(peer, NUMBER);
  call.invite(offerSdp(), header === null ? [] : [header]);
  const answer = await call.final();
  if (answer.status === 200) {
    call.ack(answer);
    await call.hangUp(answer);
  }
  return { answer, record: await gateway.record(call.callId) };
}

describe('STIR/SHAKEN', () => {
  it('[8224 §6.2.2] gets each failure its status when all are refused, and lets a valid identity through', async () => {
    await start('[missing, stale, bad-info, credential, invalid]');
    const cases: readonly (readonly [string | null, number, string, string])[] = [
      [null, 428, 'Use Identity Header', 'IDENTITY_REQUIRED'],
      [`Identity: ${identity({}, undefined, Date.now() - 120_000)}`, 403, 'Stale Date', 'IDENTITY_STALE'],
      [`Identity: ${identity({}, authority.url('gone.pem'))}`, 436, 'Bad Identity Info', 'IDENTITY_INFO_BAD'],
      [
        `Identity: ${identity({}, authority.url('strange.pem'), undefined, strange)}`,
        437,
        'Unsupported Credential',
        'IDENTITY_CREDENTIAL_UNSUPPORTED',
      ],
      [`Identity: ${identity({ claims: { orig: { tn: '15550100000' } } })}`, 438, 'Invalid Identity Header', 'IDENTITY_INVALID'],
    ];
    for (const [header, status, phrase, reason] of cases) {
      const { answer, record } = await called(header);
      expect([answer.status, answer.startLine]).toEqual([status, `SIP/2.0 ${String(status)} ${phrase}`]);
      expect(answer.header('Warning')).toContain(reason);
      expect(record).toMatchObject({ reason, sip_status: status });
    }
    const good = await called(`Identity: ${identity()}`);
    expect(good.answer.status).toBe(200);
    expect(good.record).toMatchObject({
      identity: { verdict: 'valid', detail: null, attestation: 'A', signer: expect.stringContaining('O=Test') as unknown },
    });
  });

  it('is recorded and refuses nothing by default; the short form works, and of two headers that of SHAKEN counts', async () => {
    await start('[]');
    expect((await called(null)).record).toMatchObject({ sip_status: 200, identity: { verdict: 'missing' } });
    const wrong = await called(`Identity: ${identity({ claims: { dest: { tn: ['15550100999'] } } })}`);
    expect(wrong.record).toMatchObject({
      sip_status: 200,
      identity: { verdict: 'invalid', detail: 'The signed called number is not the called number.' },
    });
    expect((await called(`y: ${identity({ claims: { attest: 'C' } })}`)).record).toMatchObject({
      identity: { verdict: 'valid', attestation: 'C' },
    });
    const two = await called(`Identity: a.b.c;info=<https://x.example/>;ppt="div"\r\nIdentity: ${identity({ claims: { attest: 'B' } })}`);
    expect(two.record).toMatchObject({ identity: { verdict: 'valid', attestation: 'B' } });
  });
});
