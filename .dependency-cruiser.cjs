// Who may import whom. The folders marked [pure] in ARCHITECTURE.md do no IO and know no clock.
const pure =
  '^src/(lib|contracts|sip/(message|transaction|dialog)|gateway/(call|policy)|media/(rtp|dtmf|codec))/|^src/load/[^/]+\\.ts$|^src/(drachtio/(frame|session|meta-line)|rtpengine/(commands|flags)|agents/session)\\.ts$';
const io =
  '^(node:)?(net|dgram|tls|fs|fs/promises|http|https|http2|timers|timers/promises|child_process|worker_threads|dns|dns/promises|cluster|process|os|readline)$';

const onlyIn = (name, pkg, where) => ({
  name,
  severity: 'error',
  comment: `${pkg} is used only in ${where}`,
  from: { path: '^src/', pathNot: where },
  to: { path: `node_modules/${pkg}/` },
});

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: 'no-circular', severity: 'error', from: {}, to: { circular: true } },
    { name: 'pure-imports-only-pure', severity: 'error', from: { path: pure }, to: { path: '^src/', pathNot: pure } },
    { name: 'pure-does-no-io', severity: 'error', from: { path: pure, pathNot: '^src/lib/ip-address\\.ts$' }, to: { path: io } },
    {
      name: 'gateway-and-agents-see-ports',
      severity: 'error',
      from: { path: '^src/(gateway|agents)/' },
      to: { path: '^src/(store|api|ops|cli)/' },
    },
    onlyIn('ioredis-in-store', 'ioredis', '^src/store/'),
    onlyIn('fastify-in-api', '(@fastify/[^/]+|fastify|fastify-type-provider-zod)', '^src/api/'),
    onlyIn('prom-client-in-ops', 'prom-client', '^src/ops/'),
    onlyIn('signatures-of-callers-in-stir', '(jose|asn1js)', '^src/stir/'),
    onlyIn('drachtio-srf-in-gateway', 'drachtio-srf', '^src/gateway/'),
    onlyIn('rtpengine-client-in-rtpengine', 'rtpengine-client', '^src/rtpengine/'),
    {
      name: 'native-only-through-srtp',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/media/srtp\\.ts$' },
      to: { path: '^native/' },
    },
    { name: 'sip-knows-no-drachtio', severity: 'error', from: { path: '^src/sip/' }, to: { path: '^src/', pathNot: '^src/(sip|lib)/' } },
    {
      name: 'drachtio-imports-sip',
      severity: 'error',
      from: { path: '^src/drachtio/' },
      to: { path: '^src/', pathNot: '^src/(drachtio|sip|lib)/' },
    },
    {
      name: 'load-is-no-gateway',
      severity: 'error',
      from: { path: '^src/load/' },
      to: { path: '^src/', pathNot: '^src/(load|carrier|client|contracts|lib|config)/' },
    },
    { name: 'carrier-is-no-gateway', severity: 'error', from: { path: '^src/carrier/' }, to: { path: '^src/(gateway|store|api)/' } },
    {
      name: 'client-runs-in-browsers',
      severity: 'error',
      from: { path: '^src/client/' },
      to: { pathNot: '^(src/client/|node_modules/openapi-)' },
    },
    {
      name: 'nothing-imports-the-roots',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/cli/' },
      to: { path: '^src/(main\\.ts|cli/)' },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { conditionNames: ['import', 'require', 'node', 'default', 'types'], exportsFields: ['exports'] },
  },
};
