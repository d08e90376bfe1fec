import { expect, it } from 'vitest';
import type { SrfApp } from '../../../../src/gateway/ports/signalling.js';
import { playedInbound } from '../../../support/played-services.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

it('the log names a SIP server that refuses the gateway, with its setting, the error, and what to check', async () => {
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
