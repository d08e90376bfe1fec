import type { CheckedAnalysis } from '../model/analysis.js';
import type { CallRecord } from '../model/call-record.js';
import type { OrgRecord } from '../model/records.js';
import type { GuardedClient } from '../net/guarded-client.js';
import { analysisRequest, readFindings } from './analysis-request.js';

export interface TextModel {
  readonly url: string;
  readonly model: string;
  /** The operator's; `null`: there is none. */
  readonly apiKey: string | null;
  /** It is at OpenAI, as the gateway's settings have it: an organization's key for OpenAI goes there. */
  readonly takesOpenAiKeys: boolean;
}

export type Findings =
  | ({ readonly kind: 'found' } & CheckedAnalysis)
  /** `error`: a sentence for the owner. */
  | { readonly kind: 'failed'; readonly error: string; readonly mayRetry: boolean };

export interface AnalysisQuestion {
  readonly org: OrgRecord;
  readonly transcript: CallRecord['transcript'];
  readonly schema: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

/** Asks a text model for the data points of a transcript. */
export class Analyst {
  constructor(
    private readonly client: Pick<GuardedClient, 'send'>,
    private readonly textModel: TextModel,
  ) {}

  /** Never rejects. */
  async find({ org, transcript, schema, timeoutMs }: AnalysisQuestion, aborted: AbortSignal): Promise<Findings> {
    const { url, model } = this.textModel;
    const key = this.#keyOf(org);
    if (key === null) return failed('No key for the text model is set.', false);
    const sent = await this.client.send(new URL(url), {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(analysisRequest(model, schema, transcript)),
      timeoutMs,
      signal: aborted,
    });
    if (!sent.ok) return failed(`The text model ${sent.error.text}.`, true);
    const { status, text } = sent.value;
    if (status !== 200) return failed(`The text model answered ${String(status)}.`, status === 429 || status >= 500);
    const findings = readFindings(text, schema);
    return findings.ok ? { kind: 'found', ...findings.value } : failed(findings.error, false);
  }

  #keyOf({ provider_keys: keys, operator_keys: mayUseOperators }: OrgRecord): string | null {
    const { apiKey, takesOpenAiKeys } = this.textModel;
    const own = takesOpenAiKeys ? keys['openai-realtime'] : undefined;
    return own ?? (mayUseOperators ? apiKey : null);
  }
}

function failed(error: string, mayRetry: boolean): Findings {
  return { kind: 'failed', error, mayRetry };
}
