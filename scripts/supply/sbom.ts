import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { billOfMaterials, type SystemPackage } from './bill-of-materials.js';

// `npm run sbom` writes dist/sbom.json: every package of production, Node.js, and the Debian packages that are installed for them.
// Nothing is asked of a registry.

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const file = process.argv[2] ?? join(ROOT, 'dist/sbom.json');
const run = (command: string, args: readonly string[]): string =>
  execFileSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 << 20, stdio: ['ignore', 'pipe', 'ignore'] });

/** Those of scripts/lib.sh that are installed here; none where there is no dpkg. */
function systemPackages(): SystemPackage[] {
  const names = run('bash', ['-c', '. scripts/lib.sh && echo "${RUNTIME_PACKAGES[@]}"']).trim().split(' ');
  return names.flatMap((name) => {
    try {
      const [status, version = '', architecture = ''] = run('dpkg-query', [
        ...['-W', '-f', '${db:Status-Status}\t${Version}\t${Architecture}', name],
      ]).split('\t');
      return status === 'installed' ? [{ name, version, architecture }] : [];
    } catch {
      return [];
    }
  });
}

function distribution(): string {
  return /^ID=(\w+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? 'debian';
}

const fromNpm: unknown = JSON.parse(run('npm', ['sbom', '--sbom-format', 'cyclonedx', '--offline']));
const packages = systemPackages();
mkdirSync(dirname(file), { recursive: true });
const bom = billOfMaterials(fromNpm, 'trunkline', process.version, distribution(), packages);
writeFileSync(file, `${JSON.stringify(bom, null, 2)}\n`);
console.log(`${file}: ${packages.map(({ name, version }) => `${name} ${version}`).join(', ')}`);
