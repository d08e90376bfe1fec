// Who may import whom. ARCHITECTURE.md shows these rooms (npm run docs), and a test fails when a path here matches no file.

/** The rooms of src/, and the rooms that each may import besides itself. */
const ROOMS = {
  lib: [],
  'agent-protocol': [],
  client: [],
  rtp: ['lib'],
  srtp: ['lib'],
  sip: ['lib'],
  config: ['agent-protocol', 'lib'],
  observability: ['config', 'lib', 'rtp'],
  tls: ['config', 'lib', 'sip'],
  'sip-server': ['config', 'lib', 'observability', 'sip', 'tls'],
  loadtest: ['client', 'config', 'gateway/agents', 'gateway/media', 'gateway/model', 'lib', 'rtp', 'sip', 'srtp'],
  supervisor: ['config', 'gateway/relay', 'lib', 'observability', 'tls'],
};

/** The rooms of src/gateway/. Each may import `lib` too, and `main.ts` may import all of them. */
const GATEWAY_ROOMS = {
  model: ['agent-protocol', 'rtp'],
  net: [],
  sdp: ['gateway/model', 'rtp'],
  admission: ['gateway/model', 'gateway/sdp'],
  ports: ['gateway/admission', 'gateway/model'],
  twilio: ['gateway/model', 'gateway/net', 'gateway/ports'],
  call: ['agent-protocol', 'gateway/admission', 'gateway/model', 'gateway/ports', 'gateway/sdp', 'gateway/twilio', 'rtp'],
  batches: ['gateway/admission', 'gateway/model', 'gateway/ports'],
  drachtio: ['gateway/admission', 'gateway/call', 'gateway/model', 'gateway/ports', 'rtp'],
  relay: ['gateway/model', 'gateway/ports', 'srtp'],
  media: ['gateway/model', 'rtp', 'srtp'],
  agents: ['agent-protocol', 'gateway/media', 'gateway/model', 'gateway/net', 'gateway/ports', 'gateway/twilio', 'rtp', 'srtp'],
  'media-thread': ['gateway/agents', 'gateway/media', 'gateway/model', 'gateway/ports'],
  store: ['gateway/admission', 'gateway/model', 'gateway/ports'],
  api: ['agent-protocol', 'gateway/model', 'gateway/ports', 'gateway/twilio', 'rtp'],
  webhooks: ['gateway/model', 'gateway/net', 'gateway/ports'],
  stir: ['config', 'gateway/model', 'gateway/net', 'gateway/ports'],
  wiring: [
    'config',
    'observability',
    'sip',
    'srtp',
    'tls',
    'gateway/admission',
    'gateway/agents',
    'gateway/api',
    'gateway/batches',
    'gateway/call',
    'gateway/drachtio',
    'gateway/media',
    'gateway/media-thread',
    'gateway/model',
    'gateway/net',
    'gateway/ports',
    'gateway/relay',
    'gateway/sdp',
    'gateway/stir',
    'gateway/store',
    'gateway/twilio',
    'gateway/webhooks',
  ],
};

/** Files that do no IO and know no clock, but as a type. */
const PURE = [
  '^src/lib/(?!open-files|resolve|system-clock|thread)',
  '^src/agent-protocol/',
  '^src/rtp/',
  '^src/sip/message/',
  '^src/sip/transaction/(?!transaction-runner)',
  '^src/sip/dialog/(dialog|dialog-record|retransmission)\\.ts$',
  '^src/sip/proxy/forking\\.ts$',
  '^src/sip-server/(control-protocol)\\.ts$',
  '^src/loadtest/[^/]+\\.ts$',
  '^src/gateway/model/',
  '^src/gateway/sdp/',
  '^src/gateway/admission/(?!overload-detector)',
  '^src/gateway/call/(agent|agent-side|info-digit|invite|machine|offer-answer|placing|second-leg|secrets|state|transfer|refer-progress)\\.ts$',
  '^src/gateway/twilio/(?!voice-client)',
  '^src/gateway/relay/(bencode|flags)\\.ts$',
  '^src/gateway/media/turn-watch\\.ts$',
  '^src/gateway/agents/(session|languages|phrase-books|stream/wire-format)\\.ts$',
  '^src/gateway/agents/provider/(?!provider-agent|function-calls|own-speech)',
];
const IO =
  '^(node:)?(net|dgram|tls|fs|fs/promises|http|https|http2|timers|timers/promises|child_process|worker_threads|dns|dns/promises|cluster|process|os|readline)$';

/** Each package that one room alone may use. */
const ONLY_IN = [
  ['ioredis', '^src/gateway/store/redis/'],
  ['(@fastify/[^/]+|fastify|fastify-type-provider-zod)', '^src/gateway/api/'],
  ['prom-client', '^src/observability/metrics/'],
  ['(jose|asn1js)', '^src/gateway/stir/'],
  ['drachtio-srf', '^src/gateway/drachtio/'],
  ['rtpengine-client', '^src/gateway/relay/'],
  // What works on a tenant's text, as docs/security.md lists it.
  ['json-p3', '^src/gateway/model/result-path\\.ts$'],
  ['saxes', '^src/gateway/twilio/xml\\.ts$'],
  ['csv-parse', '^src/gateway/api/batch-numbers\\.ts$'],
  ['mpg123-decoder', '^src/gateway/agents/decode-audio-file\\.ts$'],
  ['@echogarden/fvad-wasm', '^src/gateway/media/voice-detector\\.ts$'],
];

const inRooms = (rooms) => `^src/(${rooms.join('|')})/`;

function roomRule(room, imports) {
  return {
    name: `room-${room.replace('/', '-')}`,
    comment: `src/${room} imports only ${imports.length === 0 ? 'itself' : imports.map((name) => `src/${name}`).join(', ')}`,
    severity: 'error',
    from: { path: `^src/${room}/` },
    to: { path: '^src/', pathNot: inRooms([room, ...imports]) },
  };
}

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: 'no-circular', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-circular-folders', severity: 'error', scope: 'folder', from: {}, to: { circular: true } },
    ...Object.entries(ROOMS).map(([room, imports]) => roomRule(room, imports)),
    ...Object.entries(GATEWAY_ROOMS).map(([room, imports]) => roomRule(`gateway/${room}`, ['lib', ...imports])),
    {
      name: 'gateway-is-no-tool',
      severity: 'error',
      from: { path: '^src/gateway/' },
      to: { path: inRooms(['cli', 'loadtest', 'sip-server', 'supervisor']) },
    },
    {
      name: 'nothing-imports-the-roots',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/cli/' },
      to: { path: '^src/(gateway/main\\.ts|cli/)' },
    },
    { name: 'pure-imports-only-pure', severity: 'error', from: { path: PURE }, to: { path: '^src/', pathNot: PURE } },
    {
      name: 'pure-does-no-io',
      severity: 'error',
      from: { path: PURE, pathNot: '^src/lib/(address|address-scope|sip-endpoint)\\.ts$' },
      to: { path: IO },
    },
    ...ONLY_IN.map(([pkg, where]) => ({
      name: `${pkg.replace(/\W+/g, '-')}-in-one-room`,
      severity: 'error',
      from: { path: '^src/', pathNot: where },
      to: { path: `node_modules/${pkg}/` },
    })),
    {
      name: 'build-needs-no-test',
      comment: 'The image is built without test/, bench/ and docs/ (.dockerignore).',
      severity: 'error',
      from: { path: '^(src/|scripts/(bundle|client-types|api-documents)\\.ts)' },
      to: { path: '^(test|bench|docs)/' },
    },
    {
      name: 'no-package-imported-later',
      comment: 'The bundle loses the names of a package that is imported by import(): import a module of ours that imports it.',
      severity: 'error',
      from: { path: '^src/' },
      to: { dynamic: true, path: 'node_modules/' },
    },
    { name: 'native-only-through-srtp', severity: 'error', from: { path: '^src/', pathNot: '^src/srtp/' }, to: { path: '^native/' } },
    {
      name: 'client-runs-in-browsers',
      severity: 'error',
      from: { path: '^src/client/' },
      to: { pathNot: '^(src/client/|node_modules/openapi-)' },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { conditionNames: ['import', 'require', 'node', 'default', 'types'], exportsFields: ['exports'] },
  },
};
