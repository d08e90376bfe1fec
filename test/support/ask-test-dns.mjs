// Loaded into every Node process of an instance: its DNS server is the one that the test names.
import dns from 'node:dns/promises';
import { syncBuiltinESMExports } from 'node:module';

dns.Resolver = class extends dns.Resolver {
  constructor(options) {
    super(options);
    this.setServers([process.env.TEST_DNS_SERVER]);
  }
};
syncBuiltinESMExports();
