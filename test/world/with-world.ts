import { beforeAll } from 'vitest';
import { SipPeer } from '../support/sip-peer.js';
import { World, type Settings } from './world.js';

/** Starts a world and a carrier before the tests of a file, hands them to `take`, and ends both after the tests. */
export function withWorld(take: (site: { readonly gateway: World; readonly peer: SipPeer }) => void, settings: Settings = {}): void {
  beforeAll(async () => {
    const gateway = await World.start(settings);
    const peer = await gateway.carrier();
    take({ gateway, peer });
    return async () => {
      peer.close();
      await gateway.destroy();
    };
  });
}
