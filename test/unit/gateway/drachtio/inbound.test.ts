import { expect, it } from 'vitest';
import type { SrfApp } from '../../../../src/gateway/ports/signalling.js';
import { playedInbound } from '../../../support/played-services.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

it('a SIP server that does not take us is named, with its setting, what happened, and what to look at', async () => {
  const clock = new VirtualClock();
  let lost: (error: Error) => void = () => undefined;
  const ignore = (): void => undefined;
  const srf = { invite: ignore, handle: ignore, use: ignore, onConnect: ignore, onLost: (tell: typeof lost) => (lost = tell) };
  const inbound = playedInbound(srf as unknown as SrfApp, {}, { clock });
  const connected = inbound.whenConnected(15_000, '192.0.2.1:9022 (drachtio.url)');
  lost(new Error('the connection was closed'));
  clock.advance(15_000);
  await expect(connected).rejects.toThrow(
    'no SIP server at 192.0.2.1:9022 (drachtio.url) within 15000 ms: the connection was closed. Check that it runs there and that both sides have the same drachtio.secret',
  );
});
