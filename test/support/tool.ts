import type { ToolRecord } from '../../src/gateway/model/agent-record.js';
import type { ToolDefinition } from '../../src/gateway/model/tool-definition.js';
import { newUuid } from '../../src/lib/ids.js';

export const TOOL: ToolDefinition = {
  name: 'book',
  description: 'Books a table.',
  speech: null,
  method: 'POST',
  url: 'https://customer.example/book',
  headers: {},
  body: { day: '{{input.day}}' },
  input_schema: { type: 'object', example: null, required: ['day'], properties: { day: 'YYYY-MM-DD' } },
  response: { id: '$.id' },
  timeout: 10_000,
};

export function toolOf(orgId: string, fields: Partial<ToolRecord> = {}): ToolRecord {
  return {
    tool_id: `TL-${newUuid()}`,
    org_id: orgId,
    label: null,
    public: false,
    tool: TOOL,
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
    ...fields,
  };
}
