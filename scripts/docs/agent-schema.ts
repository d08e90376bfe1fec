import { z } from 'zod';
import { fromAgentMessage, toAgentMessage } from '../../src/agent-protocol/agent-messages.js';

/** JSON Schema (2020-12) of every message on an agent's WebSocket, from the schemas that the code checks with. */
export function agentMessageSchema(): string {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Messages on the WebSocket of a Trunkline agent',
    description: '`toAgent` is what the gateway sends, `fromAgent` what an agent may send. docs/agents.md explains them.',
    $defs: { toAgent: defOf(toAgentMessage), fromAgent: defOf(fromAgentMessage) },
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

function defOf(message: z.ZodType): object {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(message, { io: 'input' });
  return rest;
}
