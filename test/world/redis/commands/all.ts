import { CHANNEL_COMMANDS } from './channels.js';
import type { Command } from './command.js';
import { HASH_COMMANDS } from './hashes.js';
import { KEY_COMMANDS } from './keys.js';
import { LIST_COMMANDS } from './lists.js';
import { SCRIPT_COMMANDS } from './scripts.js';
import { SERVER_COMMANDS } from './server.js';
import { SET_COMMANDS } from './sets.js';
import { SORTED_SET_COMMANDS } from './sorted-sets.js';
import { STREAM_COMMANDS } from './streams.js';
import { STRING_COMMANDS } from './strings.js';
import { TRANSACTION_COMMANDS } from './transactions.js';

/** Every command that there is, by name. */
export const COMMANDS: ReadonlyMap<string, Command> = new Map(
  [
    CHANNEL_COMMANDS,
    HASH_COMMANDS,
    KEY_COMMANDS,
    LIST_COMMANDS,
    SCRIPT_COMMANDS,
    SERVER_COMMANDS,
    SET_COMMANDS,
    SORTED_SET_COMMANDS,
    STREAM_COMMANDS,
    STRING_COMMANDS,
    TRANSACTION_COMMANDS,
  ].flatMap((commands) => Object.entries(commands)),
);

/** Commands that have subcommands. */
export const CONTAINERS: ReadonlySet<string> = new Set(
  [...COMMANDS.keys()].flatMap((name) => (name.includes('|') ? [name.slice(0, name.indexOf('|'))] : [])),
);
