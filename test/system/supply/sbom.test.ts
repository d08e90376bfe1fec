import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const run = promisify(execFile);

interface Bom {
  readonly metadata: { readonly component: { readonly name: string } };
  readonly components: readonly { readonly name: string; readonly version: string; readonly purl?: string }[];
}

it('npm run sbom lists the production components: npm packages, Node.js, and system packages with their installed versions', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'trunkline-sbom-'));
  const file = join(directory, 'sbom.json');
  await run('npm', ['run', '--silent', 'sbom', '--', file]);
  const { metadata, components } = JSON.parse(await readFile(file, 'utf8')) as Bom;
  await rm(directory, { recursive: true });
  // All versions of a package.
  const versionsOf = (name: string): string[] => components.filter((one) => one.name === name).map(({ version }) => version);
  expect(metadata.component.name).toBe('trunkline');
  const { dependencies } = JSON.parse(await readFile('package.json', 'utf8')) as { dependencies: Record<string, string> };
  for (const name of Object.keys(dependencies)) {
    const installed = JSON.parse(await readFile(`node_modules/${name}/package.json`, 'utf8')) as { version: string };
    expect(versionsOf(name), name).toContain(installed.version);
  }
  // Not what only tests and builds need.
  expect([...versionsOf('vitest'), ...versionsOf('typescript')]).toEqual([]);
  for (const name of ['redis-server', 'rtpengine-daemon', 'libsrtp2-dev']) {
    const { stdout } = await run('dpkg-query', ['-W', '-f', '${Version}', name]);
    expect(versionsOf(name), name).toEqual([stdout]);
  }
  expect(versionsOf('node')).toEqual([process.version]);
});
