import { expect, it } from 'vitest';
import { World } from '../world.js';

it.each(['drain', 'park'] as const)('a gateway that ends by %s leaves the SIP server without an error in its log', async (how) => {
  const world = await World.start();
  try {
    await world.stopGateway(how);
    await world.pass(1_000);
    expect(world.lines.filter(({ process, level }) => process === 'gateway' && level === 'error')).toEqual([]);
  } finally {
    await world.destroy();
  }
});
