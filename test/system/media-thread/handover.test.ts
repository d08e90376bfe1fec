import { expect, it } from 'vitest';
import type { LegDescription } from '../../../src/gateway/model/media.js';
import { silentLog } from '../../../src/lib/log.js';
import { createMediaService, MediaUnavailableError } from '../../support/built.js';
import { AGENT_LIMITS } from '../../support/media/agent-limits.js';
import { TestPeer } from '../../support/media/test-peer.js';
import { freeRange } from '../../support/ports.js';

// Real sockets on loopback and real worker threads: two services with the same ports, as two processes.

it('a media service takes the ports and legs of another one as soon as that one has released them', async () => {
  const portMin = await freeRange(2);
  const options = { address: '127.0.0.1', portMin, portMax: portMin + 1, workers: 1, mediaTimeoutMs: 60_000, agents: AGENT_LIMITS };
  const other = await createMediaService(options, silentLog);
  const next = await createMediaService({ ...options, bindAfter: new Promise(() => undefined) }, silentLog);
  const peer = await TestPeer.open();
  const leg: LegDescription = {
    callId: 'x',
    sipCallId: 'x@carrier',
    localRtpPort: portMin,
    remote: peer.address,
    codec: 'PCMU',
    payloadType: 0,
    telephoneEventPayloadType: null,
    srtp: null,
    carrierSuite: null,
    startsAs: 'sendrecv',
  };
  await other.open(leg, () => undefined);
  peer.connect({ address: '127.0.0.1', rtpPort: portMin, rtcpPort: portMin + 1 });
  const heardMore = (): Promise<void> => {
    const before = peer.received.length;
    return peer.until(() => peer.received.length > before + 10);
  };
  await heardMore();
  expect(() => next.ahead.open({ ...leg, callId: 'y', localRtpPort: portMin + 2 })).toThrow(MediaUnavailableError);
  next.ahead.open(leg);
  next.ahead.bindWhenFree();
  await other.leave();
  await next.ready();
  // It has not been told to open the leg.
  await heardMore();
  await next.open(leg, () => undefined);
  await next.shutdown();
  await other.shutdown();
  await peer.close();
});
