import { Command, Help } from 'commander';
import { table } from './table.js';

const help = new Help();
const program = await cliProgram();

/** Every command with its arguments and options, in the order of `trunkline --help`. */
export function commandTable(): string {
  const rows = leavesOf(program, '').map(({ name, command }) => [`\`${name}\``, command.description(), optionsOf(command)]);
  return table(['command', 'what it does', 'options'], rows);
}

/** The options that every command accepts. */
export function globalOptions(): string {
  return table(
    ['option', 'what it does'],
    help.visibleOptions(program).map((option) => [`\`${help.optionTerm(option)}\``, help.optionDescription(option)]),
  );
}

/** Every long option of any command, such as `--max-calls`. */
export function longOptions(): ReadonlySet<string> {
  const commands = [program, ...leavesOf(program, '').map(({ command }) => command)];
  return new Set(commands.flatMap((command) => help.visibleOptions(command).flatMap(({ long }) => long ?? [])));
}

interface Leaf {
  readonly name: string;
  readonly command: Command;
}

function leavesOf(command: Command, path: string): Leaf[] {
  return command.commands.flatMap((one) => {
    const name = `${path}${help.subcommandTerm(one).replace(' [options]', '')}`;
    return one.commands.length === 0 ? [{ name, command: one }] : leavesOf(one, `${path}${one.name()} `);
  });
}

function optionsOf(command: Command): string {
  return command.options.map((option) => `\`${help.optionTerm(option)}\` ${help.optionDescription(option)}`).join('<br>');
}

/** src/cli/main.ts parses the command line when it is imported: without `parseAsync`, it only defines the program. */
async function cliProgram(): Promise<Command> {
  const original = Object.getOwnPropertyDescriptor(Command.prototype, 'parseAsync') ?? {};
  const defined: Command[] = [];
  Command.prototype.parseAsync = function (this: Command) {
    defined.push(this);
    return Promise.resolve(this);
  };
  await import('../../src/cli/main.js');
  Object.defineProperty(Command.prototype, 'parseAsync', original);
  const [found] = defined;
  if (found === undefined) throw new Error('src/cli/main.ts defines no program');
  return found;
}
