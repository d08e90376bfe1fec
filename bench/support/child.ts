import { fork, type ChildProcess } from 'node:child_process';
import { resolve } from 'node:path';

/** A process of a benchmark that takes orders (`orders.ts`). */
export interface Child {
  readonly child: ChildProcess;
  readonly pid: number;
  /** What it said when it was ready. */
  readonly ready: { readonly port?: number };
}

/**
 * @param niceness of all its threads: 19 leaves it what the others do not use
 * @param checkout a directory whose file, sources and packages are run
 */
export async function started(
  file: string,
  options: readonly string[] = [],
  args: readonly string[] = [],
  niceness = 0,
  checkout = '.',
): Promise<Child> {
  const execArgv = ['-n', String(niceness), process.execPath, '--import', 'tsx', ...options];
  // What it logs goes nowhere, at the level that it has in the product.
  const child = fork(resolve(checkout, file), args, {
    cwd: checkout,
    execPath: 'nice',
    execArgv,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const ready = await new Promise<Child['ready']>((done, reject) => {
    child.once('message', (message: Child['ready']) => done(message));
    child.once('exit', (code) => reject(new Error(`${file} ended with ${String(code)}`)));
  });
  return { child, pid: child.pid ?? 0, ready };
}

export function ask<T>({ child }: Pick<Child, 'child'>, order: object): Promise<T> {
  return new Promise((done, reject) => {
    child.once('message', (answer: { result?: T; error?: string }) => {
      if (answer.error === undefined) done(answer.result as T);
      else reject(new Error(answer.error));
    });
    child.send(order);
  });
}
