import { Command } from 'commander';
import { apiFlags, withApi, type ApiFlags, type ApiIo } from './api.js';
import { jsonOf, printResult, table } from './command.js';

/** `trunkline tool …`: the /v1/tools routes. */
export function toolCommand(io: ApiIo): Command {
  const tool = new Command('tool').description('create, list and delete custom tools over the control API');
  const create = apiFlags(tool.command('create').description('create a tool from a JSON file and print its id').argument('<file>'));
  create.action((file: string, flags: ApiFlags) =>
    withApi(create, io, flags, async (api) => {
      // The API judges it.
      const { tool: made } = await api.POST('/v1/tools', { body: (await jsonOf(file)) as never });
      printResult(io, flags, made, `Created tool "${made.tool.name}": ${made.tool_id}`);
    }),
  );
  const list = apiFlags(tool.command('list').description('show the tools of an organization'));
  list.action((flags: ApiFlags) =>
    withApi(list, io, flags, async (api) => {
      const { tools } = await api.GET('/v1/tools');
      const rows = tools.map((one) => [one.tool_id, one.tool.name, one.label ?? '-', one.tool.method]);
      printResult(io, flags, tools, ...table(['ID', 'NAME', 'LABEL', 'METHOD'], rows));
    }),
  );
  const remove = apiFlags(tool.command('delete').description('delete a tool that no agent uses').argument('<tool-id>'));
  remove.action((toolId: string, flags: ApiFlags) =>
    withApi(remove, io, flags, async (api) => {
      await api.DELETE('/v1/tools/{tool_id}', { params: { path: { tool_id: toolId } } });
      printResult(io, flags, { tool_id: toolId }, `Deleted tool ${toolId}.`);
    }),
  );
  return tool;
}
