import { AGENT_PROVIDERS } from '../../src/gateway/model/provider.js';
import { PROVIDER_FIELDS, type ProviderField } from '../../src/gateway/model/provider-fields.js';
import { table } from './table.js';

const BY = { provider: '', gateway: 'gateway: ', none: 'no effect: ' } as const;

/** What each setting does at each provider. */
export function providerFields(): string {
  const fields = Object.keys(PROVIDER_FIELDS['openai-realtime']).sort() as ProviderField[];
  const rows = fields.map((field) => [
    `\`${field}\``,
    ...AGENT_PROVIDERS.map((provider) => {
      const { by, how } = PROVIDER_FIELDS[provider][field];
      return BY[by] + how;
    }),
  ]);
  return table(['setting', ...AGENT_PROVIDERS.map((provider) => `\`${provider}\``)], rows);
}
