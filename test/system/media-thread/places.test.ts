import { expect, it } from 'vitest';
import type { MediaService } from '../../../src/gateway/media-thread/media-service.js';
import { silentLog } from '../../../src/lib/log.js';
import { createMediaService, MediaUnavailableError } from '../../support/built.js';
import { AGENT_LIMITS } from '../../support/media/agent-limits.js';
import { freeRange } from '../../support/ports.js';

// Real sockets on loopback and a real worker thread. No packet needs to reach the far side.

async function serviceOf(pairs: number): Promise<{ readonly service: MediaService; readonly portMin: number }> {
  const portMin = await freeRange(2 * pairs);
  const options = {
    address: '127.0.0.1',
    portMin,
    portMax: portMin + 2 * pairs - 1,
    workers: 1,
    mediaTimeoutMs: 60_000,
    agents: AGENT_LIMITS,
  };
  return { service: await createMediaService(options, silentLog), portMin };
}

let farPort = 10_000;
const open = (service: MediaService, callId: string, localRtpPort: number): Promise<void> => {
  farPort += 2;
  const remote = { address: '127.0.0.9', rtpPort: farPort, rtcpPort: farPort + 1 };
  const format = { codec: 'PCMU', payloadType: 0, telephoneEventPayloadType: 101 } as const;
  return service.open({ callId, sipCallId: callId, localRtpPort, remote, ...format, srtp: null, carrierSuite: null }, () => undefined);
};

it('a media service refuses the 65th call of a pair with MediaUnavailableError, and takes one when another has left', async () => {
  const { service, portMin } = await serviceOf(1);
  expect(service.capacity).toBe(64);
  for (let index = 0; index < 64; index += 1) await open(service, `call ${String(index)}`, portMin);
  await expect(open(service, 'more', portMin)).rejects.toThrow(MediaUnavailableError);
  await service.close('call 7');
  await open(service, 'more', portMin);
  expect([service.legs, (await service.counters()).legs]).toEqual([64, 64]);
  await service.shutdown();
  await expect(open(service, 'late', portMin)).rejects.toThrow(MediaUnavailableError);
});

it('a media service reserves the port with the fewest legs, and counts a reservation until it is closed, opened or not', async () => {
  const { service, portMin } = await serviceOf(2);
  const portOf = async (callId: string): Promise<number> => (await service.reserve(callId)).rtpPort;
  const [first, second] = [await portOf('a'), await portOf('b')];
  expect([first, second]).toEqual([portMin, portMin + 2]);
  await service.close('b');
  expect(await portOf('c')).toBe(second);
  const ports = await Promise.all(Array.from({ length: 126 }, (_, index) => portOf(String(index))));
  expect(ports.filter((port) => port === first)).toHaveLength(63);
  await expect(portOf('more')).rejects.toThrow('no media worker has capacity');
  await open(service, 'a', first);
  await expect(portOf('more')).rejects.toThrow('no media worker has capacity');
  await service.close('a');
  // All of the other port's places are taken.
  await expect(open(service, 'more', second)).rejects.toThrow('has no free slot');
  expect(service.legs).toBe(127);
  expect(await portOf('more')).toBe(first);
  await service.shutdown();
});
