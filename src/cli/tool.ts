import { Command } from 'commander';
import { overApi, type ApiFlags, type ApiIo } from './api.js';
import { jsonOf, printResult, table } from './command.js';

/** `trunkline tool …`: the /v1/tools routes. */
export function toolCommand(io: ApiIo): Command {
  const tool = new Command('tool').description('create, list and delete custom tools over the control API');
  const create = tool.command('create <file>').description('create a tool from a JSON file and print its id');
  overApi(create, io, async (api, flags: ApiFlags, file: string) => {
    // The API judges it.
    const { tool: made } = await api.POST('/v1/tools', { body: (await jsonOf(file)) as never });
    printResult(io, flags, made, `Created tool "${made.tool.name}": ${made.tool_id}`);
  });
  overApi(tool.command('list').description('show the tools of an organization'), io, async (api, flags: ApiFlags) => {
    const { tools } = await api.GET('/v1/tools');
    const rows = tools.map((one) => [one.tool_id, one.tool.name, one.label ?? '-', one.tool.method]);
    printResult(io, flags, tools, ...table(['ID', 'NAME', 'LABEL', 'METHOD'], rows));
  });
  const remove = tool.command('delete <tool-id>').description('delete a tool that no agent uses');
  overApi(remove, io, async (api, flags: ApiFlags, tool_id: string) => {
    await api.DELETE('/v1/tools/{tool_id}', { params: { path: { tool_id } } });
    printResult(io, flags, { tool_id }, `Deleted tool ${tool_id}.`);
  });
  return tool;
}
