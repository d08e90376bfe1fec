import { Argument, Command } from 'commander';
import { printLine } from './command.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** What may follow each command: `''` is the program itself, `key list` the command of that name. */
type Words = ReadonlyMap<string, readonly string[]>;

/** `trunkline completion <shell>`: a script that completes commands and options. @param print one text, of many lines */
export function completionCommand(program: () => Command, print = printLine): Command {
  return new Command('completion')
    .description('print a script that completes commands and options: source <(trunkline completion bash)')
    .addArgument(new Argument('<shell>', 'your shell').choices(SHELLS))
    .action((shell: Shell) => print(scriptOf(shell, wordsOf(program(), '', new Map()))));
}

function wordsOf(command: Command, path: string, words: Map<string, readonly string[]>): Words {
  const options = command.options.flatMap(({ long }) => long ?? []);
  words.set(path, [...command.commands.map((one) => one.name()), ...options, '--help']);
  for (const one of command.commands) wordsOf(one, `${path} ${one.name()}`.trim(), words);
  return words;
}

function scriptOf(shell: Shell, words: Words): string {
  const cases = [...words].map(([path, found]) => `    ${JSON.stringify(path)}) echo ${JSON.stringify(found.join(' '))} ;;`).join('\n');
  // The words before the cursor that are no options name the command, as far as there is one of that name.
  const lookUp = `_trunkline_words() {
  case "$1" in
${cases}
    *) return 1 ;;
  esac
}`;
  if (shell === 'fish') return fishScript(words);
  if (shell === 'zsh') return `#compdef trunkline\n${lookUp}\n${ZSH}`;
  return `${lookUp}\n${BASH}`;
}

const BASH = `_trunkline() {
  local path="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) _trunkline_words "\${path:+$path }$word" >/dev/null && path="\${path:+$path }$word" ;; esac
  done
  COMPREPLY=($(compgen -W "$(_trunkline_words "$path")" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _trunkline trunkline`;

const ZSH = `_trunkline() {
  local path_="" word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$word" in -*) ;; *) _trunkline_words "\${path_:+$path_ }$word" >/dev/null && path_="\${path_:+$path_ }$word" ;; esac
  done
  compadd -- \${=$(_trunkline_words "$path_")}
}
compdef _trunkline trunkline`;

function fishScript(words: Words): string {
  const lines = [...words].flatMap(([path, found]) => {
    const within =
      path === ''
        ? '__fish_use_subcommand'
        : path
            .split(' ')
            .map((word) => `__fish_seen_subcommand_from ${word}`)
            .join('; and ');
    return found.map((word) =>
      word.startsWith('--')
        ? `complete -c trunkline -n '${within}' -l ${word.slice(2)}`
        : `complete -c trunkline -f -n '${within}' -a ${word}`,
    );
  });
  return lines.join('\n');
}
