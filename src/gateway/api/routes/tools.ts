import type { RouteContext, ZodApp } from '../context.js';
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { ToolRecord } from '../../model/agent-record.js';
import { newToolOf } from '../../model/tool-definition.js';
import { toolIdOf } from '../schemas/agent-settings.js';
import type { ApiErrorEntry } from '../schemas/api-error.js';
import { invokeAnswerSchema, invokeBody, newToolBody, shownToolRecord, toolRecordSchema } from '../schemas/tools-api.js';
import type { ToolOutcome } from '../../ports/ports.js';
import { toolIdParam, nextCursor, pageQueryOf } from '../schemas/page-query.js';
import { isoNow } from '../../../lib/clock.js';
import { newUuid } from '../../../lib/ids.js';
import type { RecordRefusal } from '../../model/agent-update.js';
import { deleteTool, type InUse } from '../naming.js';
import { MAX_TOOLS } from '../../ports/stores.js';
import { exampleOf, fieldsAnswer, messageAnswer, recordAnswer, successAnswer } from '../answers.js';
import { identityOf, isOperator, scopeOf } from '../auth.js';
import { beforeOf, nextOf } from '../cursor.js';
import { ApiFailure, validationFailure } from '../failure.js';
import { changeHeaders, ifMatchOf, preconditionFailed, setEtag } from '../revisions.js';

/** Invocations at a time, of one organization. */
const MAX_RUNNING = 8;
const WRITTEN_AT_ONCE = 2;
const tags = ['Tools'];
const params = z.object({
  tool_id: toolIdParam('TL-3b0c1f3e-6a53-4c53-9f5b-0f0d8a2d1c11'),
});
const status = z.literal('success');

/** GET, POST and DELETE /v1/tools, and POST /v1/tools/{tool_id}/invoke. Registered behind authentication. */
export function toolRoutes(app: ZodApp, { stores, reads, runner, clock, note }: RouteContext): void {
  app.get('/v1/tools', {
    schema: {
      operationId: 'listTools',
      tags,
      summary: 'List the custom tools',
      description: 'All tools of the organization, oldest first; with `limit`, in pages.',
      querystring: z.strictObject(pageQueryOf('tools', 'all')),
      response: {
        200: fieldsAnswer(
          'The tools',
          { tools: z.array(toolRecordSchema).readonly(), next: nextCursor.optional() },
          { tools: [exampleOf(toolRecordSchema)] },
        ),
      },
    },
    handler: async (request, reply) => {
      const { limit, before } = request.query;
      const query = { ...(limit === undefined ? {} : { limit: Number(limit) }), ...beforeOf('tools', before) };
      const scope = scopeOf(request);
      const { records, next } = await reads.tools(scope, query);
      if (isOperator(request))
        return {
          status: 'success' as const,
          tools: records.map((tool) => ({ ...shownToolRecord(tool), org_id: tool.org_id })),
          next: nextOf('tools', next),
        };
      if (limit !== undefined) return { status: 'success' as const, tools: records.map(shownToolRecord), next: nextOf('tools', next) };
      // A request for all of them gets exactly what §4.7 of the interface lists. It may be long, so it is written in steps.
      return reply.type('application/json; charset=utf-8').send((await allTools(records)) as never);
    },
  });

  app.post('/v1/tools', {
    config: { failures: ['LIMIT_REACHED'] },
    schema: {
      operationId: 'createTool',
      tags,
      summary: 'Create a custom tool',
      description: 'Agents refer to it by `tool_id`. The gateway sends the `headers` to the tool; the API never returns them.',
      body: newToolBody,
      response: {
        200: recordAnswer('The tool', z.object({ status, message: z.string(), tool: toolRecordSchema }), {
          status: 'success',
          message: 'Tool "BookTable" (TL-3b0c1f3e-6a53-4c53-9f5b-0f0d8a2d1c11) made',
          tool: exampleOf(toolRecordSchema),
        }),
      },
    },
    handler: async (request, reply) => {
      const { orgId } = identityOf(request);
      if ((await stores.tools.count(orgId)) >= MAX_TOOLS)
        throw new ApiFailure('LIMIT_REACHED', `An organization has at most ${String(MAX_TOOLS)} tools`);
      const now = isoNow(clock);
      const made: ToolRecord = { ...newToolOf(request.body), tool_id: `TL-${newUuid()}`, org_id: orgId, created_at: now, updated_at: now };
      await stores.tools.put(made);
      await note(request, 'tool.create', made.tool_id, ['label', 'public', ...Object.keys(made.tool).map((name) => `tool.${name}`)]);
      setEtag(reply, made);
      return { status: 'success' as const, message: `Tool ${titleOf(made)} made`, tool: shownToolRecord(made) };
    },
  });

  app.delete('/v1/tools/:tool_id', {
    config: { failures: ['NOT_FOUND', 'TOOL_IN_USE', 'PRECONDITION_FAILED'] },
    schema: {
      operationId: 'deleteTool',
      tags,
      summary: 'Delete a custom tool',
      description: 'Fails while an agent uses the tool.',
      params,
      headers: changeHeaders,
      response: { 200: messageAnswer('It is deleted', 'Tool "BookTable" (TL-3b0c1f3e-6a53-4c53-9f5b-0f0d8a2d1c11) deleted') },
    },
    handler: async (request) => {
      const deleted = await deleteTool(stores, identityOf(request).orgId, toolIdOf(request.params.tool_id), ifMatchOf(request));
      if (!deleted.ok) throw deleteFailure(deleted.error);
      await note(request, 'tool.delete', deleted.value.tool_id);
      return { status: 'success' as const, message: `Tool ${titleOf(deleted.value)} deleted` };
    },
  });

  const running = new RunningTools();
  app.post('/v1/tools/:tool_id/invoke', {
    config: { withoutTurn: true, failures: ['NOT_FOUND', 'TOOL_FAILED', 'TOOL_TIMEOUT'] },
    schema: {
      operationId: 'invokeTool',
      tags,
      summary: 'Call a custom tool',
      description: "Calls the tool as an agent does. Any answer of the tool counts as success; `http_status` is the tool's status.",
      params,
      body: invokeBody,
      response: { 200: successAnswer('What the tool answered', invokeAnswerSchema) },
    },
    handler: async (request, reply) => {
      const { orgId } = identityOf(request);
      const record = await stores.tools.get(orgId, toolIdOf(request.params.tool_id));
      if (record === null) throw noSuchTool();
      const { input } = request.body;
      const missing = record.tool.input_schema.required.filter((name) => !Object.hasOwn(input, name));
      if (missing.length > 0) throw validationFailure(missing.map((name) => badInput('is required', name)));
      const startedMs = clock.nowMs();
      const outcome = await running.run(orgId, () => runner.run(orgId, record.tool, input, goneSignal(reply)));
      const { result, httpStatus } = resultOf(outcome);
      return { status: 'success' as const, result, http_status: httpStatus, took_ms: Math.round(clock.nowMs() - startedMs) };
    },
  });
}

/** The answer with all tools of an organization, of which no step keeps calls waiting. */
async function allTools(records: readonly ToolRecord[]): Promise<Buffer> {
  const parts: Buffer[] = [Buffer.from('{"status":"success","tools":[')];
  for (const [index, record] of records.entries()) {
    parts.push(Buffer.from(`${index === 0 ? '' : ','}${JSON.stringify(shownToolRecord(record))}`));
    if (index % WRITTEN_AT_ONCE === WRITTEN_AT_ONCE - 1) await new Promise((resolve) => setImmediate(resolve));
  }
  return Buffer.concat([...parts, Buffer.from(']}')]);
}

/** How many tools run for each organization. */
class RunningTools {
  readonly #byOrg = new Map<string, number>();

  async run<T>(orgId: string, work: () => Promise<T>): Promise<T> {
    const running = this.#byOrg.get(orgId) ?? 0;
    if (running >= MAX_RUNNING) {
      const message = `More than ${String(MAX_RUNNING)} tools at a time`;
      throw new ApiFailure('RATE_LIMITED', message, { headers: { 'retry-after': '1' } });
    }
    this.#byOrg.set(orgId, running + 1);
    try {
      return await work();
    } finally {
      const left = (this.#byOrg.get(orgId) ?? 1) - 1;
      if (left > 0) this.#byOrg.set(orgId, left);
      else this.#byOrg.delete(orgId);
    }
  }
}

/** Aborted when the requester disconnects before the answer. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort();
  });
  return gone.signal;
}

function resultOf(outcome: ToolOutcome): { readonly result: unknown; readonly httpStatus: number } {
  if (outcome.ok) return outcome.value;
  const { code, message } = outcome.error;
  if (code === 'TOOL_BAD_INPUT') throw validationFailure([badInput(message)]);
  throw new ApiFailure(code, message);
}

function badInput(message: string, name?: string): ApiErrorEntry {
  return { error: 'VALIDATION', message, path: name === undefined ? 'input' : `input.${name}` };
}

function titleOf({ tool, tool_id: id }: ToolRecord): string {
  return `"${tool.name}" (${id})`;
}

function deleteFailure(error: RecordRefusal | InUse): ApiFailure {
  if (typeof error === 'string') return error === 'mismatch' ? preconditionFailed() : noSuchTool();
  return new ApiFailure('TOOL_IN_USE', `Agents use this tool: remove it from them first. Their ids: ${error.usedBy.join(', ')}`);
}

function noSuchTool(): ApiFailure {
  return new ApiFailure('NOT_FOUND', 'There is no such tool');
}
