/** A host as it stands in a URI, a Via or an address: IPv6 in brackets. */
export function formatHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

export function formatHostPort(host: string, port: number): string {
  return `${formatHost(host)}:${String(port)}`;
}
