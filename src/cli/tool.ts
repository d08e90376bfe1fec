import { Command } from 'commander';
import { apiFlags, withApi, type ApiFlags, type ApiIo } from './api.js';
import { jsonOf, printResult, table } from './command.js';

/** `trunkline tool …`: the /v1/tools routes. */
export function toolCommand(io: ApiIo): Command {
  const tool = new Command('tool').description('make, list and delete custom tools, which agents name by their ids, over the control API');
  const create = apiFlags(tool.command('create').description('make a tool of a JSON file and print its id').argument('<file>'));
  create.action((file: string, flags: ApiFlags) =>
    withApi(create, io, flags, async (api) => {
      // The API judges it.
      const { tool: made } = await api.POST('/v1/tools', { body: (await jsonOf(file)) as never });
      printResult(io, flags, made, `Tool "${made.tool.name}" made: ${made.tool_id}`);
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
  const remove = apiFlags(tool.command('delete').description('delete a tool that no agent names').argument('<tool-id>'));
  remove.action((toolId: string, flags: ApiFlags) =>
    withApi(remove, io, flags, async (api) => {
      await api.DELETE('/v1/tools/{tool_id}', { params: { path: { tool_id: toolId } } });
      printResult(io, flags, { tool_id: toolId }, `Tool ${toolId} is deleted.`);
    }),
  );
  return tool;
}
