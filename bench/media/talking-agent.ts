import type { AgentSocketEvents } from '../../src/gateway/agents/stream/socket.js';
import type { StreamAgent } from '../../src/gateway/agents/stream/stream-agent.js';
import { silentLog } from '../../src/lib/log.js';
import type { AgentHost } from '../../src/gateway/media/leg-agent.js';
import { noAgentCounters } from '../../src/gateway/media/leg-agent.js';
import { STREAM } from '../../test/support/agent/stream-leg.js';
import { AGENT_LIMITS } from '../../test/support/media/agent-limits.js';
import type { VirtualClock } from '../../test/support/virtual-clock.js';

/**
 * An agent with a connected WebSocket that takes whatever is sent, and what that socket's owner calls: `onText` is a message of the bot.
 * @param Agent of this checkout or another one
 */
export function talkingAgent(
  Agent: typeof StreamAgent,
  clock: VirtualClock,
  speak: AgentHost['speak'],
): { readonly agent: StreamAgent; readonly events: AgentSocketEvents | undefined } {
  let events: AgentSocketEvents | undefined;
  const agent = new Agent(
    STREAM,
    { emit: () => undefined, sendDtmf: () => false, speak, view: () => null },
    {
      clock,
      limits: AGENT_LIMITS,
      newStreamSid: () => `MZ${'0'.repeat(32)}`,
      counters: noAgentCounters(),
      openVoiceDetector: () => ({ isVoice: () => false, close: () => undefined }),
      dial: (_address, given) => {
        events = given;
        return () => undefined;
      },
    },
    silentLog,
  );
  void agent.connect();
  events?.onOpen({
    unsentBytes: 0,
    sendText: () => undefined,
    sendUtf8: () => undefined,
    sendBinary: () => undefined,
    ping: (serial) => events?.onPong(serial),
    close: () => undefined,
    terminate: () => undefined,
  });
  return { agent, events };
}
