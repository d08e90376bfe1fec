import { z } from 'zod';

/** A program or library of the machine, as its package manager names it. */
export interface SystemPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
}

const bomSchema = z.looseObject({
  bomFormat: z.literal('CycloneDX'),
  metadata: z.looseObject({ component: z.looseObject({ name: z.string() }) }),
  components: z.array(z.looseObject({ 'bom-ref': z.string(), properties: z.array(z.object({ name: z.string(), value: z.string() })) })),
  dependencies: z.array(z.object({ ref: z.string(), dependsOn: z.array(z.string()) })),
});

/** npm's mark of what production does not need. Its own `--omit dev` also leaves out what development needs as well. */
const DEVELOPMENT = 'cdx:npm:package:development';

/** What npm says of its packages, with the programs and libraries beside them (CycloneDX 1.5). */
export function billOfMaterials(
  fromNpm: unknown,
  product: string,
  nodeVersion: string,
  distribution: string,
  packages: readonly SystemPackage[],
): object {
  const bom = bomSchema.parse(fromNpm);
  // Two builds of one commit have one bill: npm's time and number of it are left out, which CycloneDX allows.
  const { serialNumber: _number, metadata: dated, ...rest } = bom;
  const { timestamp: _time, ...metadata } = dated;
  const kept = bom.components.filter(({ properties }) => !properties.some(({ name }) => name === DEVELOPMENT));
  const isKept = (ref: string): boolean => kept.some((component) => component['bom-ref'] === ref);
  const dependencies = bom.dependencies
    .filter(({ ref }) => isKept(ref) || ref.startsWith(`${product}@`))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isKept) }));
  const system = packages.map(({ name, version, architecture }) => {
    const purl = `pkg:deb/${distribution}/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
    return { 'bom-ref': purl, type: 'application', name, version, purl };
  });
  const node = { 'bom-ref': `node@${nodeVersion}`, type: 'platform', name: 'node', version: nodeVersion };
  // npm names the product by its directory.
  return {
    ...rest,
    metadata: { ...metadata, component: { ...metadata.component, name: product } },
    components: [...kept, node, ...system],
    dependencies,
  };
}
