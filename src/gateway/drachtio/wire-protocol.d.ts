/** The package has no types of it. src/gateway/drachtio/srf-facade.ts types what it uses. */
declare module 'drachtio-srf/lib/wire-protocol.js' {
  const WireProtocol: unknown;
  export default WireProtocol;
}
