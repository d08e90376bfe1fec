import { CommanderError, type Command } from 'commander';

/** Where a command writes. */
export interface CommandOutput {
  readonly print: (text: string) => void;
  readonly error: (text: string) => void;
}

/** Runs a command of the CLI in this process; resolves with its exit code. */
export async function runCommand(command: Command, args: readonly string[], { print, error }: CommandOutput): Promise<number> {
  const quiet = (one: Command): void => {
    one.exitOverride().configureOutput({ writeErr: error, writeOut: print });
    one.commands.forEach(quiet);
  };
  quiet(command);
  try {
    await command.parseAsync(args, { from: 'user' });
    return 0;
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode;
    throw thrown;
  }
}
