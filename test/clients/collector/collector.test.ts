import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stringify as toYaml } from 'yaml';
import { traceIdOf } from '../../../src/observability/tracing/trace-context.js';
import { AgentSite } from '../../support/agent/agent-site.js';
import { until } from '../../support/carrier-call.js';
import { freePorts } from '../../support/ports.js';

// The collector of the OpenTelemetry project, which scripts/test-clients builds from its Go packages.

let directory: string;
let collector: ChildProcess;
let printed = '';
let site: AgentSite;

beforeAll(async () => {
  const program = process.env['OTEL_COLLECTOR'];
  if (program === undefined) throw new Error('OTEL_COLLECTOR is not set: run npm run test:clients, which builds the collector');
  directory = mkdtempSync(join(tmpdir(), 'trunkline-collector-'));
  const [port = 0] = await freePorts(1);
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${String(port)}` } } } },
    exporters: { debug: { verbosity: 'detailed' } },
    service: { telemetry: { metrics: { level: 'none' } }, pipelines: { traces: { receivers: ['otlp'], exporters: ['debug'] } } },
  };
  writeFileSync(join(directory, 'collector.yaml'), toYaml(config));
  collector = spawn(program, ['--config', `file:${join(directory, 'collector.yaml')}`], { stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [collector.stdout, collector.stderr]) stream?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  await until(() => printed.includes('Everything is ready'), `the collector does not start:\n${printed}`);
  site = await AgentSite.start({ TRUNKLINE_TELEMETRY_OTLP_URL: `http://127.0.0.1:${String(port)}/v1/traces` });
});

afterAll(async () => {
  await site.stop();
  const gone = once(collector, 'exit');
  collector.kill('SIGTERM');
  await gone;
  rmSync(directory, { recursive: true, force: true });
});

/** The spans that the collector printed, each with its lines. */
const spans = (): readonly string[] => printed.split(/^Span #\d+$/m).slice(1);

const spanCalled = (name: string): string | undefined => spans().find((span) => new RegExp(`^ +Name +: ${name}$`, 'm').test(span));

it('an OpenTelemetry Collector takes the spans of a call: one trace, with the kinds and attributes that we document', async () => {
  const call = await site.talking();
  await call.hangUp();
  const { call_id: id } = await site.gateway.record(call.signalling.callId);
  await until(() => spanCalled('call') !== undefined, 'the collector got no span of the call');
  const names = ['call', 'look-up', 'relay offer', 'relay answer', 'agent connect', 'talk'];
  await until(() => names.every((name) => spanCalled(name) !== undefined), 'spans are missing');
  const traces = spans().map((span) => /^ +Trace ID +: (\w+)$/m.exec(span)?.[1]);
  expect(new Set(traces)).toEqual(new Set([traceIdOf(String(id))]));
  expect(spanCalled('call')).toMatch(/^ +Kind +: Server$/m);
  expect(spanCalled('call')).toContain('-> sip.response.status_code: Int(200)');
  expect(spanCalled('agent connect')).toMatch(/^ +Kind +: Client$/m);
  expect(printed).toContain('service.name: Str(trunkline)');
});
