import { z } from 'zod';
import type { ToolRecord } from '../../model/agent-record.js';
import { whole, uuid } from '../../model/described.js';
import { flatTool, newTool, shownToolSchema, type ToolDefinition } from '../../model/tool-definition.js';

// Tools over HTTP (§2.3, §4.7 of the interface).

export const toolRecordSchema = z
  .object({
    tool_id: z.string().describe('TL- and a UUID'),
    label: z.string().nullable(),
    tool: shownToolSchema,
    public: z.boolean(),
    org_id: uuid('Only with an operator key').optional(),
  })
  .meta({
    id: 'ToolRecord',
    description: 'A custom tool',
    examples: [
      {
        tool_id: 'TL-3b0c1f3e-6a53-4c53-9f5b-0f0d8a2d1c11',
        label: 'Booking',
        tool: {
          name: 'BookTable',
          description: 'Books a table. Use it once the caller has named day and time.',
          speech: 'One moment, I am looking that up.',
          method: 'POST',
          timeout: 10_000,
          url: 'https://api.example.com/bookings',
          body: { day: '{{input.day}}' },
          input_schema: { type: 'object', example: { day: '2026-12-24' }, required: ['day'], properties: { day: 'YYYY-MM-DD' } },
          response: { booking_id: '$.booking.id' },
        },
        public: false,
      },
    ],
  });

/** The body of creation. */
export const newToolBody = z.union([newTool, flatTool]).meta({
  examples: [
    {
      label: 'Booking',
      tool: {
        name: 'BookTable',
        description: 'Books a table. Use it once the caller has named day and time.',
        speech: 'One moment, I am looking that up.',
        url: 'https://api.example.com/bookings',
        headers: { 'x-api-key': 'yours' },
        body: { day: '{{input.day}}' },
        input_schema: { type: 'object', example: { day: '2026-12-24' }, required: ['day'], properties: { day: 'YYYY-MM-DD' } },
        response: { booking_id: '$.booking.id' },
      },
    },
  ],
});

export const invokeBody = z
  .strictObject({ input: z.record(z.string().max(256), z.unknown()).describe('Input as from an agent') })
  .meta({ examples: [{ input: { day: '2026-12-24' } }] });

export const invokeAnswerSchema = z
  .object({
    status: z.literal('success'),
    result: z.unknown().describe('Values by the names of `response`; the whole answer if there are none or the tool answered 300 or more'),
    http_status: whole("The tool's HTTP status"),
    took_ms: whole('Milliseconds'),
  })
  .meta({ examples: [{ status: 'success', result: { booking_id: 'B-7' }, http_status: 200, took_ms: 12 }] });

export type ShownTool = z.infer<typeof shownToolSchema>;

export function shownTool({ name, description, speech, method, timeout, url, body, input_schema, response }: ToolDefinition): ShownTool {
  const shownInput = { ...input_schema, example: input_schema.example ?? {} };
  return { name, description, speech: speech ?? '', method, timeout, url, body: body ?? {}, input_schema: shownInput, response };
}

export function shownToolRecord({ tool_id, label, tool, public: isPublic }: ToolRecord): z.infer<typeof toolRecordSchema> {
  return { tool_id, label, tool: shownTool(tool), public: isPublic };
}
