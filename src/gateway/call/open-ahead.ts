import { Scope } from '../../lib/scope.js';
import type { AgentDescription } from '../model/agent.js';
import type { LegDescription } from '../model/media.js';
import { NO_PROVIDER_USAGE } from '../model/provider-usage.js';
import type { ProviderSessions } from '../ports/ports.js';
import { AgentRequests } from './agent-requests.js';
import { CallAgent } from './call-agent.js';
import { keptLeg } from './call-media.js';
import { CallData, type Call } from './call.js';
import type { CallServices } from './call-services.js';
import { CallTrace } from './call-trace.js';
import { resumedCall } from './call-snapshot.js';
import { isJoined } from './state.js';

const CLOSE_LIMIT_MS = 1_000;
const nothing = (): void => undefined;
/** The process that has the call counts its session. */
const COUNTED_ALREADY: ProviderSessions = {
  begin: () => Promise.resolve(null),
  used: nothing,
  end: nothing,
  usage: () => Promise.resolve(NO_PROVIDER_USAGE),
};

export interface Ahead {
  open(leg: LegDescription): void;
  connectAgent(callId: string, agent: AgentDescription): Promise<void>;
}

/**
 * Makes the leg of a call ready that another process still has, and connects its agent. Nothing of the call is changed. Rejects when the
 * agent cannot be reached.
 */
export async function openAhead(services: CallServices, kept: Call, ahead: Ahead): Promise<void> {
  const data = new CallData(resumedCall(kept));
  const { origin, state, script } = data.now;
  const { callId, sipCallId } = origin;
  const leg = keptLeg(callId, sipCallId, state);
  if (isJoined(state) || leg === null) return;
  ahead.open(leg);
  // Other verbs of a document connect nothing.
  const isStream = script === null || ['stream', 'conversation'].includes(script.verbs[script.at - 1]?.verb ?? '');
  if (!isStream) return;
  const { clock, log, tools, toolRunner, doNotCall } = services;
  const requests = new AgentRequests({ tools, toolRunner, doNotCall }, data, nothing, nothing, log);
  const agent = new CallAgent(
    { ...services, sessions: COUNTED_ALREADY },
    {
      data,
      media: {
        connectAgent: async (description) => {
          if (description.kind === 'party' || description.kind === 'early-media') return null;
          await ahead.connectAgent(callId, description);
          return null;
        },
        startFork: nothing,
        send: nothing,
      },
      requests,
      scope: new Scope(clock, CLOSE_LIMIT_MS),
      trace: new CallTrace(clock, false),
      log,
      startAgent: nothing,
      unheardSinceMs: () => null,
      dispatch: nothing,
      keep: nothing,
    },
  );
  await agent.connect(state.agent.choice, true);
}
