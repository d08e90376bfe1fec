import type { StreamFormat } from '../agent-protocol/stream-format.js';
import { agentParameters } from '../gateway/call/agent.js';
import type { StreamSettings } from '../gateway/model/agent.js';
import { NOBODY } from '../gateway/model/call-record.js';
import type { E164 } from '../gateway/model/e164.js';
import { accountSidOf, callSidOf } from '../gateway/model/twilio-ids.js';
import { newUuid } from '../lib/ids.js';

const ORG_ID = '00000000-0000-0000-0000-000000000000';
const CALLED = '+15550100100' as E164;

/** A simulated call with the parameters that a real call has on a number without an agent of its own. */
export function simulatedStream(
  url: string,
  { format, bearerToken, from }: { readonly format: StreamFormat; readonly bearerToken: string | null; readonly from: string },
): StreamSettings {
  const callId = newUuid();
  const parameters = agentParameters({
    callId,
    direction: 'inbound',
    to: CALLED,
    caller: { ...NOBODY, number: from },
    identity: null,
    route: null,
    tools: [],
    codec: 'PCMU',
    resumed: 0,
    conversation: [],
    marks: [],
    unheardSinceMs: null,
  });
  return {
    url,
    format,
    bearerToken,
    signatureKey: 'simulated',
    accountSid: accountSidOf(ORG_ID),
    callSid: callSidOf(callId),
    customParameters: { ...parameters, org_id: ORG_ID },
    endOfSpeechMs: 500,
    mayPress: true,
  };
}
