import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { auditVerdict } from '../../../scripts/supply/audit-verdict.js';
import { billOfMaterials } from '../../../scripts/supply/bill-of-materials.js';
import { ROOT } from '../../../scripts/docs/generate.js';

interface Locked {
  readonly link?: boolean;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly hasInstallScript?: boolean;
}

const REGISTRY = 'https://registry.npmjs.org/';

/** What is wrong with entries of a lock file. */
function faults(packages: Readonly<Record<string, Locked>>): string[] {
  return Object.entries(packages)
    .filter(([path]) => path !== '')
    .filter(
      ([path, { link, resolved, integrity }]) =>
        link === true ||
        !path.startsWith('node_modules/') ||
        !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? '') ||
        // Left out, it is whatever registry npm is set to: the hash decides.
        resolved?.startsWith(REGISTRY) === false,
    )
    .map(([path]) => path);
}

describe('package-lock.json', () => {
  const lock = JSON.parse(readFileSync(`${ROOT}package-lock.json`, 'utf8')) as {
    readonly lockfileVersion: number;
    readonly packages: Readonly<Record<string, Locked>>;
  };

  it('has version 3, a hash for each package, and only packages of the public registry', () => {
    expect(lock.lockfileVersion).toBe(3);
    expect(Object.keys(lock.packages).length).toBeGreaterThan(300);
    expect(faults(lock.packages)).toEqual([]);
  });

  it.each([
    ['no hash', {}],
    ['a weak hash', { integrity: 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=' }],
    ['another registry', { integrity: `sha512-${'A'.repeat(86)}==`, resolved: 'https://packages.example/a.tgz' }],
    ['no TLS', { integrity: `sha512-${'A'.repeat(86)}==`, resolved: 'http://registry.npmjs.org/a.tgz' }],
    ['a repository', { integrity: `sha512-${'A'.repeat(86)}==`, resolved: 'git+ssh://git@github.com/a/a.git' }],
    ['a directory', { link: true }],
  ])('has no entry with %s, which the check would find', (_what, entry) => {
    expect(faults({ '': {}, 'node_modules/a': entry })).toEqual(['node_modules/a']);
  });

  it('package.json lets no other package run a program at its installation than those that it names', () => {
    const { allowScripts } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as { allowScripts: Record<string, boolean> };
    expect(allowScripts).toEqual({ esbuild: true });
  });
});

describe('the audit of packages', () => {
  const report = (vulnerabilities: object): string => JSON.stringify({ auditReportVersion: 2, vulnerabilities, metadata: {} });

  it('fails at high and critical vulnerabilities, and names them', () => {
    const found = {
      ws: { severity: 'high', range: '<8.17.1' },
      a: { severity: 'critical', range: '*' },
      b: { severity: 'low', range: '*' },
    };
    expect(auditVerdict(report(found))).toEqual({ kind: 'vulnerable', packages: ['ws <8.17.1: high', 'a *: critical'] });
  });

  it('counts lesser ones', () => {
    expect(auditVerdict(report({}))).toEqual({ kind: 'clean', lesser: 0 });
    expect(auditVerdict(report({ b: { severity: 'moderate', range: '*' } }))).toEqual({ kind: 'clean', lesser: 1 });
  });

  it.each(['', 'Bad gateway', '{"message":"405 Method Not Allowed","statusCode":405}', '{"error":{"code":"ENOAUDIT"}}', '[]'])(
    'does not take an invalid answer for "clean": %s',
    (answer) => {
      expect(auditVerdict(answer).kind).toBe('not-audited');
    },
  );
});

describe('the bill of materials', () => {
  it('has the packages of production, Node.js, and the system packages with their versions', () => {
    const [ws, tool] = [{ 'bom-ref': 'ws@8.0.0', properties: [] }, 'vitest@4.0.0'];
    const fromNpm = {
      bomFormat: 'CycloneDX',
      specVersion: '1.5',
      metadata: { component: { name: 'a-directory' } },
      components: [ws, { 'bom-ref': tool, properties: [{ name: 'cdx:npm:package:development', value: 'true' }] }],
      dependencies: [
        { ref: 'trunkline@0.2.0', dependsOn: ['ws@8.0.0', tool] },
        { ref: 'ws@8.0.0', dependsOn: [] },
        { ref: tool, dependsOn: ['ws@8.0.0'] },
      ],
    };
    const packages = [{ name: 'g++', version: '5:7.0-1', architecture: 'amd64' }];
    expect(billOfMaterials(fromNpm, 'trunkline', 'v20.20.0', 'debian', packages)).toMatchObject({
      specVersion: '1.5',
      metadata: { component: { name: 'trunkline' } },
      components: [
        ws,
        { type: 'platform', name: 'node', version: 'v20.20.0' },
        { name: 'g++', version: '5:7.0-1', purl: 'pkg:deb/debian/g%2B%2B@5%3A7.0-1?arch=amd64' },
      ],
      dependencies: [
        { ref: 'trunkline@0.2.0', dependsOn: ['ws@8.0.0'] },
        { ref: 'ws@8.0.0', dependsOn: [] },
      ],
    });
  });
});
