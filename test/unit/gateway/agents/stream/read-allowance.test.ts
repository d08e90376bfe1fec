import { afterEach, describe, expect, it } from 'vitest';
import { ReadAllowance } from '../../../../../src/gateway/agents/stream/read-allowance.js';
import { ClientWebSocket } from '../../../../../src/gateway/agents/stream/web-socket.js';
import { privateLookup } from '../../../../../src/gateway/net/guarded-lookup.js';
import { TestBot } from '../../../../support/agent/test-bot.js';
import { VirtualClock } from '../../../../support/virtual-clock.js';
import { turn } from '../../../../support/turn.js';

const MIB = 1_024 * 1_024;
const PIECE = 65_536;

describe('the read allowance of one connection', () => {
  let bot: TestBot | undefined;
  afterEach(() => bot?.stop());

  it('is 1 MiB at once, and 1 MiB a second', () => {
    const allowance = new ReadAllowance(0);
    expect(allowance.take(MIB, 0)).toBe(0);
    expect(allowance.take(102_400, 0)).toBe(100);
    expect(allowance.take(0, 100)).toBe(0);
    expect(allowance.take(10_240, 105)).toBe(5);
    // A connection that was quiet has 1 MiB again, and no more.
    expect(allowance.take(MIB + 1_024, 3_600_000)).toBe(1);
  });

  it('leaves the rest with its sender, and loses nothing of it', async () => {
    bot = await TestBot.start();
    const clock = new VirtualClock();
    let read = 0;
    const opened = new Promise<void>((resolve) => {
      const events = {
        onOpen: () => resolve(),
        onFailed: () => undefined,
        onText: () => undefined,
        onBinary: ({ length }: Uint8Array) => (read += length),
        onPong: () => undefined,
        onClosed: () => undefined,
      };
      const url = new URL(bot?.url ?? '');
      new ClientWebSocket({ url, headers: {}, lookup: privateLookup, maxMessageBytes: MIB }, events, clock);
    });
    await opened;
    const { socket } = await bot.calls.at(0);
    for (let sent = 0; sent < 8 * MIB; sent += PIECE) socket.send(Buffer.alloc(PIECE));
    while (read < 0.9 * MIB) await turn();
    for (let turns = 0; turns < 1_000; turns += 1) await turn();
    expect(read).toBeLessThanOrEqual(MIB + PIECE);
    while (read < 8 * MIB) {
      clock.advance(100);
      await turn();
    }
    expect(read).toBe(8 * MIB);
  });
});
