import { describe, expect, it } from 'vitest';
import { ConfigError, environmentLayer, flagLayer, mergeLayers, parseLayer, redactConfig } from '../../../src/config/layers.js';
import { loadConfig } from '../../../src/config/load.js';
import { confirmingReplicas } from '../../../src/config/schema.js';

const load = (environment: Record<string, string> = {}, set: string[] = []) => loadConfig({ environment, set });

describe('configuration', () => {
  it('has a valid default for every setting', () => {
    expect(load()).toMatchObject({ sip: { tls_port: 5061 }, http: { port: 8080 }, media: { agent_leg: 'rtp' } });
  });

  it('lets the environment override the file, and a flag the environment', () => {
    expect(load({ TRUNKLINE_SIP_TLS_PORT: '5071' }).sip.tls_port).toBe(5_071);
    expect(load({ TRUNKLINE_SIP_TLS_PORT: '5071' }, ['sip.tls_port=5081']).sip.tls_port).toBe(5_081);
    expect(load({ TRUNKLINE_SIP_TLS_PORT: 'null' }).sip.tls_port).toBeNull();
    const layers = [parseLayer('config/default.yaml', 'http: {port: 1}'), parseLayer('mine.yaml', 'http: {port: 2}')];
    expect(() => mergeLayers(layers)).toThrow(ConfigError);
  });

  it.each([
    ['TRUNKLINE_SIP_HOST', 'sip.example.com', 'sip.host'],
    ['TRUNKLINE_PUBLIC_ADDRESS', '203.0.113.7', 'public_address'],
    ['TRUNKLINE_BIND_ADDRESS', '127.0.0.2', 'bind_address'],
    ['TRUNKLINE_DATA_DIR', '/tmp/x', 'data_dir'],
    ['TRUNKLINE_REDIS_URL', 'redis://:pw@host:6379/0', 'redis.url'],
    ['TRUNKLINE_RTPENGINE', '127.0.0.1:2223, rtp.example.com:2223', 'rtpengine.address'],
    ['TRUNKLINE_DRACHTIO_URL', 'drachtio:9022', 'drachtio.url'],
    ['TRUNKLINE_AGENTS_URL', 'wss://bot.example.com:9000/stream?line=1', 'agents.url'],
  ])('reads %s', (name, value, path) => {
    const found = path.split('.').reduce<unknown>((tree, part) => (tree as Record<string, unknown>)[part], load({ [name]: value }));
    expect(found).toBe(value);
  });

  it('accepts prefixes of numbers as YAML reads them', () => {
    expect(load({ TRUNKLINE_CALLS_TRANSFER_PREFIXES: '[+49, "+1555"]' }).calls.transfer_prefixes).toEqual(['+49', '+1555']);
  });

  it.each([
    [{ TRUNKLINE_CALLS_TRANSFER_PREFIXES: '["(0)"]' }, /calls\.transfer_prefixes\.0.*: must be the beginning of a number/],
    [{ TRUNKLINE_HTTP_PORT: '99999' }, /http\.port = 99999 \(from the environment\): .*65535/],
    [{ TRUNKLINE_BIND_ADDRESS: 'nonsense' }, /bind_address = "nonsense" \(from the environment\): must be an IPv4 or IPv6 address/],
    [{ TRUNKLINE_SIP_TLS_NAMES: '[carrier=sip.example.com]' }, /sip\.tls_names\.0.*: must be a name, or ADDRESS=NAME/],
    [{ TRUNKLINE_MEDIA_AGENT_LEG: 'dtls' }, /media\.agent_leg = "dtls" \(from the environment\): .*"rtp"\|"srtp"/],
    [{ TRUNKLINE_HTP_PORT: '1' }, /Unknown environment variable TRUNKLINE_HTP_PORT\. Did you mean TRUNKLINE_HTTP_PORT\?/],
    [{ TRUNKLINE_BIND_ADDRESS: '0.0.0.0' }, /bind_address = "0\.0\.0\.0" \(from the environment\): must be one address of this machine/],
    [{ TRUNKLINE_RTPENGINE: '127.0.0.1:2223,' }, /rtpengine\.address = .*: must be host:port, or several, separated by commas/],
    [{ TRUNKLINE_RTPENGINE: 'a:1,a:1' }, /rtpengine\.address = .*: must not repeat an address/],
    [
      { TRUNKLINE_AGENTS_URL: 'https://bot.example.com/' },
      /agents\.url = \(hidden\) \(from the environment\): must be a wss:\/\/ \(or ws:\/\/\) URL/,
    ],
    [{ TRUNKLINE_AGENTS_URL: 'wss://' }, /agents\.url = \(hidden\) \(from the environment\): must be a wss/],
    [
      { TRUNKLINE_AGENTS_URL: 'wss://me:hush@bot.example.com/' },
      /agents\.url = \(hidden\) \(from the environment\): must be .* without a user/,
    ],
    [
      { TRUNKLINE_AGENTS_URL: 'wss://bot.example.com/#a' },
      /agents\.url = \(hidden\) \(from the environment\): must be .* without a fragment/,
    ],
    [
      { TRUNKLINE_AGENTS_URL: 'WS://bot.example.com/' },
      /agents\.url = \(hidden\) \(from the environment\): is without TLS \(ws:\/\/\), which needs agents\.allow_private/,
    ],
    [
      { TRUNKLINE_AGENTS_URL: 'wss://[::1]:9000/' },
      /agents\.url = \(hidden\) \(from the environment\): is at a private, .* which needs agents\.allow_private/,
    ],
    [{ TRUNKLINE_RTPENGINE_PORT_MAX: '30001' }, /rtpengine\.port_max = 30001 \(from the environment\): must have at least 4 ports/],
  ])('names the setting, its value, what is allowed and its source: %j', (environment, message) => {
    expect(() => load(environment)).toThrow(message);
  });

  it('allows bots at loopback where private addresses are allowed', () => {
    const url = 'ws://127.0.0.1:9000/';
    expect(load({ TRUNKLINE_AGENTS_URL: url, TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true' }).agents.url).toBe(url);
  });

  it('names an unknown setting of a flag and of a file', () => {
    expect(() => load({}, ['sip.tls_prot=1'])).toThrow(/sip\.tls_prot \(from a flag\): unknown setting\. Did you mean sip\.tls_port\?/);
    expect(() => load({}, ['nonsense'])).toThrow(/Invalid --set "nonsense": expected name=value/);
    expect(() => parseLayer('mine.yaml', '- a')).toThrow(/Cannot read mine\.yaml: expected settings/);
    expect(() => parseLayer('mine.yaml', 'a: [')).toThrow(/Cannot read mine\.yaml: not valid YAML/);
  });

  it('never shows a secret, neither in a dump nor in an error', () => {
    const config = load({ TRUNKLINE_DRACHTIO_SECRET: 'hush', TRUNKLINE_REDIS_URL: 'redis://:hush@h' });
    expect(JSON.stringify(redactConfig(config))).not.toContain('hush');
    expect(() => load({ TRUNKLINE_REDIS_URL: 'hush' })).toThrow(/redis\.url = \(hidden\)/);
  });

  it('lets no path reach into prototypes', () => {
    expect(() => mergeLayers([flagLayer(['__proto__.polluted=1'])])).toThrow(ConfigError);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(environmentLayer({}, {}).settings).toEqual({});
  });
});

it.each([
  [{}, 0],
  [{ TRUNKLINE_REDIS_SENTINEL_NAME: 'trunkline', TRUNKLINE_REDIS_URL: 'redis://a:26379' }, 1],
  [{ TRUNKLINE_REDIS_SENTINEL_NAME: 'trunkline', TRUNKLINE_REDIS_URL: 'redis://a:26379', TRUNKLINE_BATCHES_CONFIRMED_BY_REPLICAS: '0' }, 0],
  [{ TRUNKLINE_BATCHES_CONFIRMED_BY_REPLICAS: '2' }, 2],
])('with %j requires so many replicas to confirm an attempt of a batch: %i', (environment, replicas) => {
  expect(confirmingReplicas(load(environment))).toBe(replicas);
});
