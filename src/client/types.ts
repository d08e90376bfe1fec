// Made from /openapi.json by npm run docs.

export interface paths {
  '/2010-04-01/Accounts/{accountSid}/Calls/{callSid}.json': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * End a call as with Twilio
     * @description For bots that are written for Twilio: as much of its API as ends a call. `Status=completed` ends the call as if its agent had hung up; `canceled` does so before the answer only. Failures have Twilio's shape too. The ids are those of the `start` message.
     */
    post: operations['postTwilioCall'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/healthz': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Does the process run?
     * @description Asks nothing of any other part. Without a key, and under no limit.
     */
    get: operations['getHealthz'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/openapi.json': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * This document
     * @description Made from the schemas that validate requests. Pages for people are at `/docs`.
     */
    get: operations['getOpenapiJson'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/readyz': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Can it take calls?
     * @description Asks every part that a call needs. Without a key, and under no limit.
     */
    get: operations['getReadyz'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/sip': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read one SIP configuration, or list them
     * @description With `inbound_id`: `data` is the configuration, or null when there is none. Without: `data` is an array, sorted by number.
     */
    get: operations['getSip'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/sip/attach': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Attach a phone number
     * @description Sets one or both directions of a number. A direction that is attached already is replaced; the other one stays.
     */
    post: operations['postSipAttach'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/sip/check': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Ask how a call would be decided
     * @description Decides as on a real INVITE to the number at this moment, and counts nothing. What is left out of the request is not judged; `explanation` says so.
     */
    post: operations['postSipCheck'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/sip/detach': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Detach a phone number
     * @description Unsets all the named directions, or none when one of them is not attached. Calls in progress go on. `data` is the configuration that is left, or null.
     */
    post: operations['postSipDetach'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/sip/update': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Update one direction of a phone number
     * @description Sets the named direction; the other one stays. What an inbound update leaves out keeps its value.
     */
    post: operations['postSipUpdate'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/agents': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the agents
     * @description The oldest first, a page at a time.
     */
    get: operations['getV1Agents'];
    put?: never;
    /**
     * Make an agent
     * @description It needs a `prompt`, a `pathway_id`, or a `stream` of its own. What is left out has its default.
     */
    post: operations['postV1Agents'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/agents/{agent_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read one agent
     * @description With all its settings; those that were never set have their defaults.
     */
    get: operations['getV1AgentsAgentId'];
    put?: never;
    /**
     * Update the settings of an agent
     * @description What is left out stays; null, and an empty text, sets a setting back to its default. A `pathway_id` sets `prompt`, `first_sentence`, `model`, `dynamic_data`, `tools` and `transfer_list` back. One setting that is not valid, and nothing changes. Calls from now on have the new settings.
     */
    post: operations['postV1AgentsAgentId'];
    /**
     * Delete an agent
     * @description Not while a number names it. Calls in progress go on.
     */
    delete: operations['deleteV1AgentsAgentId'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/audit': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Who changed what
     * @description Changes of the organization's records by its keys and at the command line, newest first; the newest 10000 are kept.
     */
    get: operations['getV1Audit'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/calls': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List calls
     * @description Calls that ended or were refused, newest first; with `state=live` those in progress, on whichever gateway. With `sip_call_id` the newest 200 of that Call-ID, found by an index. One request looks at 1000 calls at most: under a filter a page may hold fewer than `limit`, or none, and have a `next` all the same.
     */
    get: operations['getV1Calls'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/calls/{call_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read one call
     * @description With its transcript, which the list leaves out. One in progress has null where nothing is known yet.
     */
    get: operations['getV1CallsCallId'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/calls/{call_id}/quality': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read how a call sounded over time
     * @description Loss, jitter and MOS of both directions: what the gateway heard of the caller, and what the caller's RTCP reports say of the agent's audio. Of a call in progress until now; empty when there was no audio.
     */
    get: operations['getV1CallsCallIdQuality'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/calls/{call_id}/stop': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * End a call in progress
     * @description BYE, whichever gateway has the call; before its answer the caller gets 603. The record has API_STOPPED or DECLINED.
     */
    post: operations['postV1CallsCallIdStop'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/calls/{call_id}/trace': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read what happened in a call
     * @description Messages of SIP, commands to rtpengine, what the agent asked and got, and what the gateway decided, oldest first; of a call in progress until now. Keys of the media, credentials and tokens are masked. Empty when nothing is kept of it.
     */
    get: operations['getV1CallsCallIdTrace'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/organizations': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read whose key it is
     * @description The organization of the key; for an operator key all of them, by name.
     */
    get: operations['getV1Organizations'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/reasons': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the reasons
     * @description Every code that `reason` of a call may have, in a sentence, with what to do about it.
     */
    get: operations['getV1Reasons'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/throughput': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read how many calls come and go
     * @description Calls of all gateways in stretches of 10 s, and how many are in progress. Each gateway tells once a second.
     */
    get: operations['getV1Throughput'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/tools': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the custom tools
     * @description All of the organization, the oldest first; a page of them with `limit`.
     */
    get: operations['getV1Tools'];
    put?: never;
    /**
     * Make a custom tool
     * @description Agents name it by its `tool_id`. The `headers` are sent to the tool and never shown.
     */
    post: operations['postV1Tools'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/tools/{tool_id}': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    /**
     * Delete a custom tool
     * @description Not while an agent names it.
     */
    delete: operations['deleteV1ToolsToolId'];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/tools/{tool_id}/invoke': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Call a custom tool
     * @description As an agent does in a conversation. The answer is a success whatever the tool answered; `http_status` has its status.
     */
    post: operations['postV1ToolsToolIdInvoke'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/voices': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the voices
     * @description Those that an agent may name. One with a stream of its own may name any other too.
     */
    get: operations['getV1Voices'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/webhooks/dead-letters': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List webhooks that were given up
     * @description Newest first; the newest 1000 are kept.
     */
    get: operations['getV1WebhooksDeadLetters'];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v1/webhooks/dead-letters/{delivery_id}/resend': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    /**
     * Send a webhook again
     * @description It is due at once, with the same body and `webhook-id`, and tried as long as a new one.
     */
    post: operations['postV1WebhooksDeadLettersDeliveryIdResend'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v2/batches': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * List the batches
     * @description Newest first.
     */
    get: operations['getV2Batches'];
    put?: never;
    /**
     * Make a batch
     * @description It and its log are kept for `batches.retention_days`.
     */
    post: operations['postV2Batches'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  '/v2/batches/{batch_id}/logs': {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    /**
     * Read the log of a batch
     * @description What happened to it, newest first unless `direction` says otherwise.
     */
    get: operations['getV2BatchesBatchIdLogs'];
    put?: never;
    /**
     * Write an entry into the log of a batch
     * @description The log keeps the newest `batches.max_entries`.
     */
    post: operations['postV2BatchesBatchIdLogs'];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
}
export type webhooks = Record<string, never>;
export interface components {
  schemas: {
    /**
     * @description Who talks to callers. Bearer tokens, and headers of tools, are never shown.
     * @example {
     *       "agent_id": "4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11",
     *       "org_id": "0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52",
     *       "name": "Front desk",
     *       "prompt": "You are the front desk of Blue Harbor Hotel. Answer questions on rooms and prices, and take bookings.",
     *       "voice": null,
     *       "webhook": null,
     *       "analysis_schema": null,
     *       "metadata": null,
     *       "pathway_id": null,
     *       "language": "ENG",
     *       "model": "base",
     *       "first_sentence": null,
     *       "tools": [],
     *       "dynamic_data": null,
     *       "interruption_threshold": 100,
     *       "max_duration": 30,
     *       "pronunciation_guide": [],
     *       "transfer_list": null,
     *       "stream": null,
     *       "created_at": "2026-01-01T00:00:00.000Z",
     *       "updated_at": "2026-01-01T00:00:00.000Z"
     *     }
     */
    Agent: {
      /** @description UUID */
      agent_id: string;
      analysis_schema: {
        [key: string]: string;
      } | null;
      /** @description ISO 8601 */
      created_at: string;
      /** @description An object, an array, or null */
      dynamic_data: unknown;
      first_sentence: string | null;
      /** @description Milliseconds */
      interruption_threshold: number;
      language: string;
      /** @description Minutes */
      max_duration: number;
      metadata: {
        [key: string]: unknown;
      } | null;
      /** @enum {string} */
      model: 'base' | 'turbo';
      name: string;
      org_id: string;
      pathway_id: string | null;
      prompt: string | null;
      readonly pronunciation_guide: {
        case_sensitive: boolean;
        pronunciation: string;
        spaced: boolean;
        word: string;
      }[];
      /** @description null: the operator's default */
      stream:
        | (
            | 'test-line'
            | {
                /** @enum {string} */
                format: 'twilio' | 'pcmu' | 'pcma' | 'pcm16-8000' | 'pcm16-16000';
                url: string;
              }
          )
        | null;
      readonly tools: (string | components['schemas']['Tool'])[];
      /** @description An object, an array, or null */
      transfer_list: unknown;
      /** @description ISO 8601; another one with each change */
      updated_at: string;
      /** @description null: the language's own */
      voice: string | null;
      webhook: string | null;
    };
    /**
     * @description A change that was made
     * @example {
     *       "id": "1767225600000-0",
     *       "org_id": "0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52",
     *       "at": "2026-01-01T00:00:00.000Z",
     *       "by": {
     *         "key_id": "b1f0c6a4-6a53-4c53-9f5b-0f0d8a2d1c11",
     *         "name": "ci"
     *       },
     *       "action": "agent.update",
     *       "record": "4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11",
     *       "fields": [
     *         "prompt",
     *         "language"
     *       ]
     *     }
     */
    AuditEntry: {
      /** @description What was done to what, such as `number.attach` or `agent.update` */
      action: string;
      /** @description ISO 8601 */
      at: string;
      by: {
        /** @description The id of an API key; null: the command line */
        key_id: string | null;
        /** @description The key's name, or `cli:` and the user */
        name: string;
      };
      /** @description Names of what changed of it */
      readonly fields: string[];
      id: string;
      org_id: string;
      /** @description The id, or the number, of what was changed */
      record: string;
    };
    /**
     * @description A batch of calls
     * @example {
     *       "batch_id": "7f9d7a3e-6a53-4c53-9f5b-0f0d8a2d1c11",
     *       "org_id": "0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52",
     *       "name": "Reminders",
     *       "created_at": "2026-01-01T00:00:00.000Z"
     *     }
     */
    Batch: {
      /** @description UUID */
      batch_id: string;
      /** @description ISO 8601 */
      created_at: string;
      name: string;
      org_id: string;
    };
    /**
     * @description What happened to a batch
     * @example {
     *       "id": "2b1f8f6c-6a53-4c53-9f5b-0f0d8a2d1c11",
     *       "batch_id": "7f9d7a3e-6a53-4c53-9f5b-0f0d8a2d1c11",
     *       "org_id": "0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52",
     *       "event_type": "complete",
     *       "timestamp": "2026-01-01T00:00:00.000Z",
     *       "payload": {
     *         "calls_total": 100,
     *         "calls_failed": 2,
     *         "calls_successful": 98
     *       }
     *     }
     */
    BatchLogEntry: {
      batch_id: string;
      /** @description `lifecycle`, `complete`, or another one */
      event_type: string;
      /** @description UUID */
      id: string;
      org_id: string;
      /** @description `lifecycle`: message, state_change. `complete`: calls_total, calls_failed, calls_successful */
      payload: {
        [key: string]: unknown;
      };
      /** @description ISO 8601 */
      timestamp: string;
    };
    /**
     * @description A call: in progress, or one that ended or was refused
     * @example {
     *       "call_id": "153ee546-05b9-4d95-bd6d-f899f082d48b",
     *       "state": "ended",
     *       "org_id": "0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52",
     *       "agent_id": "4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11",
     *       "sip_call_id": "3c26700c7f4e@203.0.113.7",
     *       "from": "+15550100999",
     *       "to": "+15551234567",
     *       "caller": {
     *         "number": "+15550100999",
     *         "display_name": "Kim",
     *         "asserted": [
     *           "sip:+15550100999@carrier.example"
     *         ],
     *         "remote_party": null,
     *         "diversions": [],
     *         "history": [],
     *         "privacy": [],
     *         "user_to_user": null,
     *         "headers": {}
     *       },
     *       "source": {
     *         "ip": "203.0.113.7",
     *         "port": 5061,
     *         "transport": "tls",
     *         "tls_version": "TLSv1.3",
     *         "tls_cipher": "TLS_AES_256_GCM_SHA384"
     *       },
     *       "identity": {
     *         "verdict": "valid",
     *         "detail": null,
     *         "attestation": "A",
     *         "origid": "b0a7c1a4-5b1c-4b9e-9b55-9e52b21e7a10",
     *         "signer": "C=US, O=Carrier, CN=SHAKEN 709J"
     *       },
     *       "reason": "CALLER_HANGUP",
     *       "sip_status": 200,
     *       "codec": "PCMU",
     *       "crypto_suite": "AES_CM_128_HMAC_SHA1_80",
     *       "started_at": "2026-01-01T00:00:00.000Z",
     *       "answered_at": "2026-01-01T00:00:00.042Z",
     *       "ended_at": "2026-01-01T00:01:02.042Z",
     *       "timings": {
     *         "ring_ms": null,
     *         "answer_ms": 42,
     *         "first_audio_ms": 61,
     *         "talk_ms": 62000
     *       },
     *       "quality": {
     *         "endpoint": {
     *           "packets_sent": 3100,
     *           "packets_received": 3098,
     *           "packets_lost": 2,
     *           "jitter_ms": 1.2,
     *           "round_trip_ms": 18,
     *           "digits_received": 4
     *         },
     *         "relay": {
     *           "from_carrier": {
     *             "packets": 3098,
     *             "bytes": 532856,
     *             "errors": 0,
     *             "lost": 2,
     *             "jitter_ms": 1,
     *             "round_trip_ms": 18,
     *             "mos": 4.3
     *           },
     *           "from_agent": {
     *             "packets": 3100,
     *             "bytes": 533200,
     *             "errors": 0,
     *             "lost": 0,
     *             "jitter_ms": 0,
     *             "round_trip_ms": 1,
     *             "mos": 4.4
     *           }
     *         }
     *       },
     *       "analysis": {
     *         "guest_name": "Kim",
     *         "arrival": "2026-12-24",
     *         "wants_breakfast": true
     *       },
     *       "agent_error": null,
     *       "stale_route": false,
     *       "resumed": 0
     *     }
     */
    Call: {
      /** @description What went wrong with the connection to the agent last: where (without the query), what, after how long; null: nothing, or in progress */
      agent_error: string | null;
      /** @description null: the operator's default agent, or nobody (yet) */
      agent_id: string | null;
      /** @description What the agent found out; null: it told nothing */
      analysis: {
        [key: string]: unknown;
      } | null;
      /** @description ISO 8601, UTC, with milliseconds; null: did not happen, or not yet */
      answered_at: string | null;
      /** Format: uuid */
      call_id: string;
      /** @description Who calls, by the headers of the INVITE; null: the call is in progress */
      caller: {
        /** @description P-Asserted-Identity: URIs; empty when the caller asked for privacy */
        readonly asserted: string[];
        display_name: string | null;
        /** @description Diversion, the latest first */
        readonly diversions: {
          reason: string | null;
          uri: string;
        }[];
        /** @description X- headers by their name in lower case */
        headers: {
          [key: string]: string;
        };
        /** @description History-Info, in order */
        readonly history: {
          index: string | null;
          uri: string;
        }[];
        /** @description The From header's number in E.164, or its user part; `anonymous` when it is withheld */
        number: string;
        /** @description Values of Privacy */
        readonly privacy: string[];
        /** @description Remote-Party-ID: a URI */
        remote_party: string | null;
        /** @description User-to-User, as it came */
        user_to_user: string | null;
      } | null;
      /** @description `PCMU` or `PCMA`; null: none was chosen */
      codec: string | null;
      /** @description SRTP suite of the carrier's leg; null: plain RTP, or not answered (yet) */
      crypto_suite: string | null;
      /** @description ISO 8601, UTC, with milliseconds; null: did not happen, or not yet */
      ended_at: string | null;
      /** @description As `caller.number` */
      from: string;
      /** @description null: nothing was verified, or the call is in progress */
      identity: {
        /** @description As claimed: to be believed of a `valid` one alone */
        attestation: ('A' | 'B' | 'C') | null;
        /** @description Why it is not `valid`; null: it is */
        detail: string | null;
        /** @description SHAKEN's id of where the call came into the network; as claimed */
        origid: string | null;
        /** @description Subject of the certificate; null: it was not looked at */
        signer: string | null;
        /**
         * @description docs/stir-shaken.md says what each means
         * @enum {string}
         */
        verdict: 'valid' | 'missing' | 'stale' | 'bad-info' | 'credential' | 'invalid' | 'unverified';
      } | null;
      org_id: string | null;
      quality: {
        endpoint: {
          /** @description Key presses */
          digits_received: number;
          /** @description Interarrival jitter (RFC 3550 §6.4.1), milliseconds */
          jitter_ms: number;
          /** @description RTP packets */
          packets_lost: number;
          /** @description RTP packets */
          packets_received: number;
          /** @description RTP packets */
          packets_sent: number;
          /** @description Milliseconds, from RTCP; null: no report came */
          round_trip_ms: number | null;
        } | null;
        /** @description What the media relay saw of both sides */
        relay: {
          from_agent: {
            /** @description Bytes */
            bytes: number;
            /** @description Packets that could not be relayed */
            errors: number;
            /** @description Milliseconds */
            jitter_ms: number | null;
            /** @description RTP packets, from RTCP; null: no report came by */
            lost: number | null;
            /** @description Mean opinion score, 1.0 to 4.5 */
            mos: number | null;
            /** @description RTP packets */
            packets: number;
            /** @description Milliseconds */
            round_trip_ms: number | null;
          };
          from_carrier: {
            /** @description Bytes */
            bytes: number;
            /** @description Packets that could not be relayed */
            errors: number;
            /** @description Milliseconds */
            jitter_ms: number | null;
            /** @description RTP packets, from RTCP; null: no report came by */
            lost: number | null;
            /** @description Mean opinion score, 1.0 to 4.5 */
            mos: number | null;
            /** @description RTP packets */
            packets: number;
            /** @description Milliseconds */
            round_trip_ms: number | null;
          };
        } | null;
      };
      /** @description Why the call was refused or ended: a code of docs/errors.md; null: it is in progress */
      reason: string | null;
      /** @description How often the gateway was killed during the call and took it up again */
      resumed: number;
      /** @description The carrier's Call-ID */
      sip_call_id: string;
      /** @description Status of the refusal, or 200; null: not answered yet */
      sip_status: number | null;
      /** @description The connection that the INVITE came by */
      source: {
        ip: string;
        port: number;
        tls_cipher: string | null;
        tls_version: string | null;
        /** @description `tls`, `tcp` or `udp` */
        transport: string;
      };
      /** @description Decided on what was remembered of the number, because the store was away; null: the call is in progress */
      stale_route: boolean | null;
      /** @description ISO 8601, UTC, with milliseconds */
      started_at: string;
      /**
       * @description `ringing`: in progress and not answered; `in_progress`: answered; `ended`: also refused
       * @enum {string}
       */
      state: 'ringing' | 'in_progress' | 'ended';
      timings: {
        /** @description Milliseconds from the INVITE to the 200; null: did not happen, or not yet */
        answer_ms: number | null;
        /** @description Milliseconds from the ACK to the caller's first audio; null: did not happen, or not yet */
        first_audio_ms: number | null;
        /** @description Milliseconds from the INVITE to the 180; null: did not happen, or not yet */
        ring_ms: number | null;
        /** @description Milliseconds from the 200 to the end; null: did not happen, or not yet */
        talk_ms: number | null;
      };
      /** @description The called number in E.164 */
      to: string;
    };
    /**
     * @description A call with its transcript, which is there when it has ended
     * @example {
     *       "call_id": "153ee546-05b9-4d95-bd6d-f899f082d48b",
     *       "state": "ended",
     *       "org_id": "0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52",
     *       "agent_id": "4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11",
     *       "sip_call_id": "3c26700c7f4e@203.0.113.7",
     *       "from": "+15550100999",
     *       "to": "+15551234567",
     *       "caller": {
     *         "number": "+15550100999",
     *         "display_name": "Kim",
     *         "asserted": [
     *           "sip:+15550100999@carrier.example"
     *         ],
     *         "remote_party": null,
     *         "diversions": [],
     *         "history": [],
     *         "privacy": [],
     *         "user_to_user": null,
     *         "headers": {}
     *       },
     *       "source": {
     *         "ip": "203.0.113.7",
     *         "port": 5061,
     *         "transport": "tls",
     *         "tls_version": "TLSv1.3",
     *         "tls_cipher": "TLS_AES_256_GCM_SHA384"
     *       },
     *       "identity": {
     *         "verdict": "valid",
     *         "detail": null,
     *         "attestation": "A",
     *         "origid": "b0a7c1a4-5b1c-4b9e-9b55-9e52b21e7a10",
     *         "signer": "C=US, O=Carrier, CN=SHAKEN 709J"
     *       },
     *       "reason": "CALLER_HANGUP",
     *       "sip_status": 200,
     *       "codec": "PCMU",
     *       "crypto_suite": "AES_CM_128_HMAC_SHA1_80",
     *       "started_at": "2026-01-01T00:00:00.000Z",
     *       "answered_at": "2026-01-01T00:00:00.042Z",
     *       "ended_at": "2026-01-01T00:01:02.042Z",
     *       "timings": {
     *         "ring_ms": null,
     *         "answer_ms": 42,
     *         "first_audio_ms": 61,
     *         "talk_ms": 62000
     *       },
     *       "quality": {
     *         "endpoint": {
     *           "packets_sent": 3100,
     *           "packets_received": 3098,
     *           "packets_lost": 2,
     *           "jitter_ms": 1.2,
     *           "round_trip_ms": 18,
     *           "digits_received": 4
     *         },
     *         "relay": {
     *           "from_carrier": {
     *             "packets": 3098,
     *             "bytes": 532856,
     *             "errors": 0,
     *             "lost": 2,
     *             "jitter_ms": 1,
     *             "round_trip_ms": 18,
     *             "mos": 4.3
     *           },
     *           "from_agent": {
     *             "packets": 3100,
     *             "bytes": 533200,
     *             "errors": 0,
     *             "lost": 0,
     *             "jitter_ms": 0,
     *             "round_trip_ms": 1,
     *             "mos": 4.4
     *           }
     *         }
     *       },
     *       "analysis": {
     *         "guest_name": "Kim",
     *         "arrival": "2026-12-24",
     *         "wants_breakfast": true
     *       },
     *       "agent_error": null,
     *       "stale_route": false,
     *       "resumed": 0,
     *       "transcript": [
     *         {
     *           "speaker": "agent",
     *           "text": "Blue Harbor Hotel, good day.",
     *           "at_ms": 120
     *         },
     *         {
     *           "speaker": "caller",
     *           "text": "A room for the 24th, please.",
     *           "at_ms": 3400
     *         }
     *       ],
     *       "analysis_rejected": null
     *     }
     */
    CallDetail: {
      /** @description What went wrong with the connection to the agent last: where (without the query), what, after how long; null: nothing, or in progress */
      agent_error: string | null;
      /** @description null: the operator's default agent, or nobody (yet) */
      agent_id: string | null;
      /** @description What the agent found out; null: it told nothing */
      analysis: {
        [key: string]: unknown;
      } | null;
      /** @description What the agent told that does not fit its `analysis_schema`, as it came; null: nothing */
      analysis_rejected: {
        [key: string]: unknown;
      } | null;
      /** @description ISO 8601, UTC, with milliseconds; null: did not happen, or not yet */
      answered_at: string | null;
      /** Format: uuid */
      call_id: string;
      /** @description Who calls, by the headers of the INVITE; null: the call is in progress */
      caller: {
        /** @description P-Asserted-Identity: URIs; empty when the caller asked for privacy */
        readonly asserted: string[];
        display_name: string | null;
        /** @description Diversion, the latest first */
        readonly diversions: {
          reason: string | null;
          uri: string;
        }[];
        /** @description X- headers by their name in lower case */
        headers: {
          [key: string]: string;
        };
        /** @description History-Info, in order */
        readonly history: {
          index: string | null;
          uri: string;
        }[];
        /** @description The From header's number in E.164, or its user part; `anonymous` when it is withheld */
        number: string;
        /** @description Values of Privacy */
        readonly privacy: string[];
        /** @description Remote-Party-ID: a URI */
        remote_party: string | null;
        /** @description User-to-User, as it came */
        user_to_user: string | null;
      } | null;
      /** @description `PCMU` or `PCMA`; null: none was chosen */
      codec: string | null;
      /** @description SRTP suite of the carrier's leg; null: plain RTP, or not answered (yet) */
      crypto_suite: string | null;
      /** @description ISO 8601, UTC, with milliseconds; null: did not happen, or not yet */
      ended_at: string | null;
      /** @description As `caller.number` */
      from: string;
      /** @description null: nothing was verified, or the call is in progress */
      identity: {
        /** @description As claimed: to be believed of a `valid` one alone */
        attestation: ('A' | 'B' | 'C') | null;
        /** @description Why it is not `valid`; null: it is */
        detail: string | null;
        /** @description SHAKEN's id of where the call came into the network; as claimed */
        origid: string | null;
        /** @description Subject of the certificate; null: it was not looked at */
        signer: string | null;
        /**
         * @description docs/stir-shaken.md says what each means
         * @enum {string}
         */
        verdict: 'valid' | 'missing' | 'stale' | 'bad-info' | 'credential' | 'invalid' | 'unverified';
      } | null;
      org_id: string | null;
      quality: {
        endpoint: {
          /** @description Key presses */
          digits_received: number;
          /** @description Interarrival jitter (RFC 3550 §6.4.1), milliseconds */
          jitter_ms: number;
          /** @description RTP packets */
          packets_lost: number;
          /** @description RTP packets */
          packets_received: number;
          /** @description RTP packets */
          packets_sent: number;
          /** @description Milliseconds, from RTCP; null: no report came */
          round_trip_ms: number | null;
        } | null;
        /** @description What the media relay saw of both sides */
        relay: {
          from_agent: {
            /** @description Bytes */
            bytes: number;
            /** @description Packets that could not be relayed */
            errors: number;
            /** @description Milliseconds */
            jitter_ms: number | null;
            /** @description RTP packets, from RTCP; null: no report came by */
            lost: number | null;
            /** @description Mean opinion score, 1.0 to 4.5 */
            mos: number | null;
            /** @description RTP packets */
            packets: number;
            /** @description Milliseconds */
            round_trip_ms: number | null;
          };
          from_carrier: {
            /** @description Bytes */
            bytes: number;
            /** @description Packets that could not be relayed */
            errors: number;
            /** @description Milliseconds */
            jitter_ms: number | null;
            /** @description RTP packets, from RTCP; null: no report came by */
            lost: number | null;
            /** @description Mean opinion score, 1.0 to 4.5 */
            mos: number | null;
            /** @description RTP packets */
            packets: number;
            /** @description Milliseconds */
            round_trip_ms: number | null;
          };
        } | null;
      };
      /** @description Why the call was refused or ended: a code of docs/errors.md; null: it is in progress */
      reason: string | null;
      /** @description How often the gateway was killed during the call and took it up again */
      resumed: number;
      /** @description The carrier's Call-ID */
      sip_call_id: string;
      /** @description Status of the refusal, or 200; null: not answered yet */
      sip_status: number | null;
      /** @description The connection that the INVITE came by */
      source: {
        ip: string;
        port: number;
        tls_cipher: string | null;
        tls_version: string | null;
        /** @description `tls`, `tcp` or `udp` */
        transport: string;
      };
      /** @description Decided on what was remembered of the number, because the store was away; null: the call is in progress */
      stale_route: boolean | null;
      /** @description ISO 8601, UTC, with milliseconds */
      started_at: string;
      /**
       * @description `ringing`: in progress and not answered; `in_progress`: answered; `ended`: also refused
       * @enum {string}
       */
      state: 'ringing' | 'in_progress' | 'ended';
      timings: {
        /** @description Milliseconds from the INVITE to the 200; null: did not happen, or not yet */
        answer_ms: number | null;
        /** @description Milliseconds from the ACK to the caller's first audio; null: did not happen, or not yet */
        first_audio_ms: number | null;
        /** @description Milliseconds from the INVITE to the 180; null: did not happen, or not yet */
        ring_ms: number | null;
        /** @description Milliseconds from the 200 to the end; null: did not happen, or not yet */
        talk_ms: number | null;
      };
      /** @description The called number in E.164 */
      to: string;
      /** @description As the agent told it */
      readonly transcript: {
        /** @description Since the agent began */
        at_ms: number;
        /** @enum {string} */
        speaker: 'agent' | 'caller';
        text: string;
      }[];
    };
    /**
     * @description How an INVITE would be decided at this moment
     * @example {
     *       "outcome": "reject",
     *       "sip_status": 403,
     *       "reason": "SOURCE_NOT_ALLOWED",
     *       "explanation": "The number does not take calls from this source address.",
     *       "codec": null,
     *       "crypto_tag": null
     *     }
     */
    CheckResult: {
      /** @description null: not decided */
      codec: ('PCMU' | 'PCMA') | null;
      /** @description The tag of the a=crypto line that would be taken; null: not decided, or plain RTP */
      crypto_tag: number | null;
      /** @description A sentence for a person; also says what was not judged */
      explanation: string;
      /** @enum {string} */
      outcome: 'accept' | 'reject';
      /** @description A code of docs/errors.md; null: accepted */
      reason: string | null;
      /** @description Of the final answer to the INVITE */
      sip_status: number;
    };
    /**
     * @description A webhook that nobody took
     * @example {
     *       "delivery_id": "153ee546-05b9-4d95-bd6d-f899f082d48b",
     *       "org_id": "0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52",
     *       "call_id": "153ee546-05b9-4d95-bd6d-f899f082d48b",
     *       "url": "https://customer.example/calls",
     *       "attempts": 17,
     *       "error": "it answered 503",
     *       "created_at": "2026-01-01T00:00:00.000Z",
     *       "died_at": "2026-01-02T00:00:00.000Z"
     *     }
     */
    DeadLetter: {
      attempts: number;
      /** @description The call that the webhook tells of */
      call_id: string;
      /** @description ISO 8601: when it was due first */
      created_at: string;
      /** @description As in `webhook-id` */
      delivery_id: string;
      /** @description ISO 8601: when it was given up */
      died_at: string;
      /** @description Why the last attempt failed */
      error: string | null;
      org_id: string;
      url: string;
    };
    /**
     * @description The answer to every request that failed
     * @example {
     *       "status": "error",
     *       "message": "The request is not valid: directions[0] must be \"inbound\" or \"outbound\"",
     *       "data": null,
     *       "errors": [
     *         {
     *           "error": "VALIDATION",
     *           "message": "must be \"inbound\" or \"outbound\"",
     *           "path": "directions[0]"
     *         }
     *       ]
     *     }
     */
    Error: {
      data: null;
      readonly errors: {
        /**
         * @description A code to act upon
         * @enum {string}
         */
        error:
          | 'VALIDATION'
          | 'UNAUTHENTICATED'
          | 'SIP_NOT_ENABLED'
          | 'ORG_DISABLED'
          | 'READ_ONLY_KEY'
          | 'NOT_FOUND'
          | 'METHOD_NOT_ALLOWED'
          | 'REQUEST_TIMEOUT'
          | 'NUMBER_TAKEN'
          | 'AGENT_IN_USE'
          | 'TOOL_IN_USE'
          | 'LIMIT_REACHED'
          | 'PRECONDITION_FAILED'
          | 'TOO_LARGE'
          | 'UNSUPPORTED_MEDIA_TYPE'
          | 'RATE_LIMITED'
          | 'INTERNAL'
          | 'TOOL_FAILED'
          | 'STORE_UNAVAILABLE'
          | 'GATEWAY_UNAVAILABLE'
          | 'NOT_READY'
          | 'TOOL_TIMEOUT';
        /** @description A sentence for a person */
        message: string;
        /** @description Where in the request; on validation errors only */
        path?: string;
      }[];
      message: string;
      /** @constant */
      status: 'error';
    };
    /**
     * @description An update that failed: nothing changed
     * @example {
     *       "status": "error",
     *       "message": "The request is not valid: max_duration must be at least 1",
     *       "data": null,
     *       "errors": [
     *         {
     *           "error": "VALIDATION",
     *           "message": "must be at least 1",
     *           "path": "max_duration"
     *         }
     *       ],
     *       "failed_updates": {
     *         "max_duration": 0
     *       }
     *     }
     */
    FailedUpdate: {
      data: null;
      readonly errors: {
        /**
         * @description A code to act upon
         * @enum {string}
         */
        error:
          | 'VALIDATION'
          | 'UNAUTHENTICATED'
          | 'SIP_NOT_ENABLED'
          | 'ORG_DISABLED'
          | 'READ_ONLY_KEY'
          | 'NOT_FOUND'
          | 'METHOD_NOT_ALLOWED'
          | 'REQUEST_TIMEOUT'
          | 'NUMBER_TAKEN'
          | 'AGENT_IN_USE'
          | 'TOOL_IN_USE'
          | 'LIMIT_REACHED'
          | 'PRECONDITION_FAILED'
          | 'TOO_LARGE'
          | 'UNSUPPORTED_MEDIA_TYPE'
          | 'RATE_LIMITED'
          | 'INTERNAL'
          | 'TOOL_FAILED'
          | 'STORE_UNAVAILABLE'
          | 'GATEWAY_UNAVAILABLE'
          | 'NOT_READY'
          | 'TOOL_TIMEOUT';
        /** @description A sentence for a person */
        message: string;
        /** @description Where in the request; on validation errors only */
        path?: string;
      }[];
      /** @description The settings that could not be updated, as they were given; left out when the body could not be read */
      failed_updates?: {
        [key: string]: unknown;
      };
      message: string;
      /** @constant */
      status: 'error';
    };
    /**
     * @example {
     *       "org_id": "0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52",
     *       "name": "acme",
     *       "sip_enabled": true,
     *       "disabled": false
     *     }
     */
    Organization: {
      disabled: boolean;
      name: string;
      org_id: string;
      sip_enabled: boolean;
    };
    /** @description How a call sounded at one moment of it */
    QualitySample: {
      /** @description Milliseconds after audio began */
      at_ms: number;
      /** @description null: nothing came since the sample before, because the call was held, say */
      from_caller: {
        /** @description Interarrival jitter (RFC 3550 §6.4.1), milliseconds */
        jitter_ms: number;
        /** @description Of the packets since the sample before, 0 to 100 */
        lost_percent: number;
        /** @description Mean opinion score by the E-model, 1.0 to 4.5 */
        mos: number;
      } | null;
      /** @description Milliseconds, by RTCP; null: not known */
      round_trip_ms: number | null;
      /** @description By the caller's RTCP reports; null: none came since the sample before */
      to_caller: {
        /** @description Interarrival jitter (RFC 3550 §6.4.1), milliseconds */
        jitter_ms: number;
        /** @description Of the packets since the sample before, 0 to 100 */
        lost_percent: number;
        /** @description Mean opinion score by the E-model, 1.0 to 4.5 */
        mos: number;
      } | null;
    };
    /**
     * @description Why calls are refused or end
     * @example {
     *       "code": "SOURCE_NOT_ALLOWED",
     *       "sip_status": 403,
     *       "fault": "caller",
     *       "retryable": false,
     *       "explanation": "The number does not take calls from this source address.",
     *       "advice": "Add the carrier's address to allowed_sources of the number, or of the organization, if it is the carrier's."
     *     }
     */
    Reason: {
      /** @description What to do about it */
      advice: string;
      /** @description As it stands in records, logs and SIP answers */
      code: string;
      /** @description What happened, in a sentence */
      explanation: string;
      /**
       * @description Whose doing it was
       * @enum {string}
       */
      fault: 'caller' | 'customer' | 'gateway' | 'agent' | 'nobody';
      /** @description The same INVITE may succeed later, or by another way */
      retryable: boolean;
      /** @description Of the refusal; 200: it only ends answered calls */
      sip_status: number;
    };
    /**
     * @description The SIP configuration of one phone number
     * @example {
     *       "inbound_id": "IN-8f6f6bb0-6a53-4c53-9f5b-0f0d8a2d1c11",
     *       "phone_number": "+15551234567",
     *       "org_id": "0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52",
     *       "inbound": {
     *         "agent_id": null,
     *         "options": {
     *           "allowed_sources": [
     *             "203.0.113.0/24"
     *           ],
     *           "max_concurrent_calls": 100,
     *           "max_calls_per_second": 20,
     *           "media_encryption": "required"
     *         }
     *       },
     *       "outbound": null,
     *       "created_at": "2026-01-01T00:00:00.000Z",
     *       "updated_at": "2026-01-01T00:00:00.000Z"
     *     }
     */
    SipConfiguration: {
      /** @description ISO 8601 */
      created_at: string;
      /** @description null: not attached inbound */
      inbound: {
        agent_id: string | null;
        options: {
          readonly allowed_sources: string[];
          max_calls_per_second: number | null;
          max_concurrent_calls: number | null;
          /** @enum {string} */
          media_encryption: 'required' | 'optional';
        };
      } | null;
      /** @description IN- and a UUID */
      inbound_id: string;
      org_id: string;
      /** @description null: not attached outbound */
      outbound: {
        sip_endpoint: string;
      } | null;
      /** @description E.164 with the plus */
      phone_number: string;
      /** @description ISO 8601 */
      updated_at: string;
    };
    /** @description An HTTP API that an agent may call */
    Tool: {
      /** @description Template with `{{input}}` and `{{input.name}}`; null: the input itself is sent */
      body: {
        [key: string]: unknown;
      } | null;
      description: string;
      input_schema: {
        example: {
          [key: string]: unknown;
        };
        properties: {
          [key: string]: string;
        };
        readonly required: string[];
        /** @constant */
        type: 'object';
      };
      /** @enum {string} */
      method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
      name: string;
      /** @description Names of results, and where they are in the answer (JSONPath) */
      response: {
        [key: string]: string;
      };
      /** @description What the agent says meanwhile; empty: nothing */
      speech: string;
      /** @description Milliseconds */
      timeout: number;
      url: string;
    };
    /**
     * @description A custom tool
     * @example {
     *       "tool_id": "TL-3b0c1f3e-6a53-4c53-9f5b-0f0d8a2d1c11",
     *       "label": "Booking",
     *       "tool": {
     *         "name": "BookTable",
     *         "description": "Books a table. Use it once the caller has named day and time.",
     *         "speech": "One moment, I am looking that up.",
     *         "method": "POST",
     *         "timeout": 10000,
     *         "url": "https://api.example.com/bookings",
     *         "body": {
     *           "day": "{{input.day}}"
     *         },
     *         "input_schema": {
     *           "type": "object",
     *           "example": {
     *             "day": "2026-12-24"
     *           },
     *           "required": [
     *             "day"
     *           ],
     *           "properties": {
     *             "day": "YYYY-MM-DD"
     *           }
     *         },
     *         "response": {
     *           "booking_id": "$.booking.id"
     *         }
     *       },
     *       "public": false
     *     }
     */
    ToolRecord: {
      label: string | null;
      /** @description For an operator key only */
      org_id?: string;
      public: boolean;
      tool: components['schemas']['Tool'];
      /** @description TL- and a UUID */
      tool_id: string;
    };
    /** @description One thing that happened in a call */
    TraceEntry: {
      /** @description ISO 8601, UTC, with milliseconds */
      at: string;
      /** @description Towards the gateway, or from it; null: within it */
      direction: ('in' | 'out') | null;
      /** @enum {string} */
      source: 'sip' | 'rtpengine' | 'agent' | 'gateway';
      /** @description One line */
      summary: string;
      /** @description The message, without keys and credentials; null: the summary is all there is */
      text: string | null;
    };
    /**
     * @example {
     *       "code": 20003,
     *       "message": "Authenticate",
     *       "more_info": "https://www.twilio.com/docs/errors/20003",
     *       "status": 401
     *     }
     */
    TwilioError: {
      /** @description Twilio’s code */
      code: number;
      message: string;
      /** @description Where Twilio explains the code */
      more_info: string;
      /** @description The HTTP status */
      status: number;
    };
    /**
     * @example {
     *       "name": "en-us",
     *       "language": "ENG"
     *     }
     */
    Voice: {
      /** @description A language code; null: not known */
      language: string | null;
      name: string;
    };
  };
  responses: never;
  parameters: never;
  requestBodies: never;
  headers: never;
  pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
  postTwilioCall: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description `AC` and the hex digits of the organization’s id
         * @example AC7c9e6679742540de944be07fc1f90ae7
         */
        accountSid: string;
        /**
         * @description `CA` and the hex digits of the call’s id
         * @example CA153ee54605b94d95bd6df899f082d48b
         */
        callSid: string;
      };
      cookie?: never;
    };
    /** @description Other fields are ignored */
    requestBody: {
      content: {
        /**
         * @example {
         *       "Status": "completed"
         *     }
         */
        'application/x-www-form-urlencoded': {
          /** @enum {string} */
          Status: 'completed' | 'canceled';
        };
      };
    };
    responses: {
      /** @description Twilio's resource of the call */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            /**
             * @description `AC` and the hex digits of the organization’s id
             * @example AC7c9e6679742540de944be07fc1f90ae7
             */
            account_sid: string;
            answered_by: null;
            /** @enum {string} */
            api_version: '2010-04-01';
            caller_name: null;
            /** @description RFC 2822, UTC */
            date_created: string;
            /** @description RFC 2822, UTC */
            date_updated: string;
            /** @enum {string} */
            direction: 'inbound';
            /** @description Seconds since the answer */
            duration: string;
            /** @description RFC 2822, UTC */
            end_time: string;
            /** @description The calling number */
            from: string;
            from_formatted: string;
            parent_call_sid: null;
            phone_number_sid: null;
            price: null;
            price_unit: null;
            /**
             * @description `CA` and the hex digits of the call’s id
             * @example CA153ee54605b94d95bd6df899f082d48b
             */
            sid: string;
            /** @description RFC 2822, UTC */
            start_time: string;
            /** @enum {string} */
            status: 'completed';
            subresource_uris: Record<string, never>;
            /** @description The called number */
            to: string;
            to_formatted: string;
            uri: string;
          };
        };
      };
    };
  };
  getHealthz: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description It does */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: {
              version: string;
            };
            errors: null;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  getOpenapiJson: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description OpenAPI 3.1 */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            openapi: string;
          } & {
            [key: string]: unknown;
          };
        };
      };
    };
  };
  getReadyz: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description Every part is ready */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: {
              /**
               * @example {
               *       "redis": true,
               *       "rtpengine": true,
               *       "sip_server": true
               *     }
               */
              parts: {
                [key: string]: boolean;
              };
            };
            errors: null;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  getSip: {
    parameters: {
      query?: {
        /**
         * @description The record's inbound_id, or the phone number
         * @example +15551234567
         */
        inbound_id?: string;
        /**
         * @description For an operator key: the organization that is asked about, all of them when left out; `none`: calls that belong to none
         * @example 0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52
         */
        org_id?: string;
        /**
         * @description 0 to 10000000, 0 when left out
         * @example 0
         */
        skip?: string;
        /**
         * @description 1 to 1000, 100 when left out
         * @example 100
         */
        take?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description One configuration, null, or an array */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['SipConfiguration'] | components['schemas']['SipConfiguration'][] | null;
            errors: null;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  postSipAttach: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description `etag` of an answer with the record: nothing changes when it is another one by now. `*`: only if there is a record
         * @example "2026-01-01T00:00:00.000Z"
         */
        'if-match'?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': {
          /** @description The agent that answers; null is the built-in test line */
          agent_id?: string | null;
          directions: (
            | ('inbound' | 'outbound')
            | {
                /**
                 * @description A sip: or sips: URI, or host[:port]; at most 256 characters
                 * @example sips:pbx.example.com:5061
                 */
                sip_endpoint?: string;
                /** @enum {string} */
                type: 'inbound' | 'outbound';
              }
          )[];
          /** @description Replaced whole: what is left out gets its default */
          options?: {
            /**
             * @description Where INVITEs may come from; empty is anywhere
             * @default []
             */
            allowed_sources?: string[];
            /**
             * @description New calls a second on this number; null is no limit
             * @default null
             */
            max_calls_per_second?: number | null;
            /**
             * @description Calls in progress on this number; null is no limit
             * @default null
             */
            max_concurrent_calls?: number | null;
            /**
             * @description "optional" also takes calls without SRTP, where the operator allows it
             * @default required
             * @enum {string}
             */
            media_encryption?: 'required' | 'optional';
          };
          /**
           * @description E.164, with or without the plus; `-`, `.` and parentheses between digits are ignored
           * @example +15551234567
           */
          phone_number: string;
          /**
           * @description Always "sip"
           * @enum {string}
           */
          service: 'sip';
          /**
           * @description Required when a direction is outbound, here or in its object
           * @example sips:pbx.example.com:5061
           */
          sip_endpoint?: string;
        };
      };
    };
    responses: {
      /** @description The configuration as it is now */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['SipConfiguration'];
            errors: null;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  postSipCheck: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description E.164, with or without the plus; `-`, `.` and parentheses between digits are ignored
           * @example +15551234567
           */
          phone_number: string;
          /** @description The offer that the INVITE would carry; left out: the SDP is not judged */
          sdp?: string;
          /** @description Where the INVITE would come from; left out: the source is not judged */
          source_ip?: string;
        };
      };
    };
    responses: {
      /** @description The decision */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['CheckResult'];
            errors: null;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  postSipDetach: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description `etag` of an answer with the record: nothing changes when it is another one by now. `*`: only if there is a record
         * @example "2026-01-01T00:00:00.000Z"
         */
        'if-match'?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': {
          directions:
            | ('inbound' | 'outbound')
            | (
                | ('inbound' | 'outbound')
                | {
                    /** @enum {string} */
                    type: 'inbound' | 'outbound';
                  }
              )[];
          /**
           * @description E.164, with or without the plus; `-`, `.` and parentheses between digits are ignored
           * @example +15551234567
           */
          phone_number: string;
          /**
           * @description Always "sip"
           * @enum {string}
           */
          service: 'sip';
        };
      };
    };
    responses: {
      /** @description The configuration that is left; null: none */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['SipConfiguration'] | null;
            errors: null;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  postSipUpdate: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description `etag` of an answer with the record: nothing changes when it is another one by now. `*`: only if there is a record
         * @example "2026-01-01T00:00:00.000Z"
         */
        'if-match'?: string;
      };
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': {
          /**
           * @description E.164, with or without the plus; `-`, `.` and parentheses between digits are ignored
           * @example +15551234567
           */
          phone_number: string;
          updates:
            | {
                /**
                 * @description A sip: or sips: URI, or host[:port]; at most 256 characters
                 * @example sips:pbx.example.com:5061
                 */
                sip_endpoint: string;
                /** @enum {string} */
                type: 'outbound';
              }
            | {
                /** @description The agent that answers; null is the built-in test line */
                agent_id?: string | null;
                /** @description Replaced whole: what is left out gets its default */
                options?: {
                  /**
                   * @description Where INVITEs may come from; empty is anywhere
                   * @default []
                   */
                  allowed_sources?: string[];
                  /**
                   * @description New calls a second on this number; null is no limit
                   * @default null
                   */
                  max_calls_per_second?: number | null;
                  /**
                   * @description Calls in progress on this number; null is no limit
                   * @default null
                   */
                  max_concurrent_calls?: number | null;
                  /**
                   * @description "optional" also takes calls without SRTP, where the operator allows it
                   * @default required
                   * @enum {string}
                   */
                  media_encryption?: 'required' | 'optional';
                };
                /** @enum {string} */
                type: 'inbound';
              };
        };
      };
    };
    responses: {
      /** @description The configuration as it is now */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['SipConfiguration'];
            errors: null;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  getV1Agents: {
    parameters: {
      query?: {
        /**
         * @description `next` of the page before
         * @example MDAxNzY3MjI1NjAwMDAwOjE1M2VlNTQ2LTA1YjktNGQ5NS1iZDZkLWY4OTlmMDgyZDQ4Yg
         */
        before?: string;
        /**
         * @description 1 to 500; 50 when left out. A page of large records may have fewer, and a `next`
         * @example 50
         */
        limit?: string;
        /**
         * @description For an operator key: the organization that is asked about, all of them when left out; `none`: calls that belong to none
         * @example 0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52
         */
        org_id?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A page of agents */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            readonly agents: components['schemas']['Agent'][];
            /** @description Give it back as `before` for the next page; null: there is none */
            next: string | null;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  postV1Agents: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "Front desk",
         *       "prompt": "You are the front desk of Blue Harbor Hotel. Answer questions on rooms and prices, and take bookings.",
         *       "first_sentence": "Blue Harbor Hotel, good day.",
         *       "language": "ENG",
         *       "max_duration": 12,
         *       "analysis_schema": {
         *         "guest_name": "string",
         *         "arrival": "YYYY-MM-DD",
         *         "wants_breakfast": "boolean"
         *       },
         *       "pronunciation_guide": [
         *         {
         *           "word": "ETA",
         *           "pronunciation": "E T A",
         *           "case_sensitive": "true",
         *           "spaced": "true"
         *         }
         *       ]
         *     }
         */
        'application/json': {
          analysis_schema?: {
            [key: string]: string;
          } | null;
          dynamic_data?:
            | (
                | (
                    | {
                        [key: string]: unknown;
                      }
                    | unknown[]
                  )
                | ''
              )
            | null;
          first_sentence?: string | null;
          interruption_threshold?: number | null;
          language?: 'ENG' | null;
          max_duration?: number | null;
          metadata?: {
            [key: string]: unknown;
          } | null;
          model?: ('base' | 'turbo') | null;
          /** @description What you call it */
          name?: string;
          pathway_id?: string | null;
          prompt?: string | null;
          pronunciation_guide?:
            | {
                /** @default false */
                case_sensitive?: boolean | ('true' | 'false');
                pronunciation: string;
                /** @default true */
                spaced?: boolean | ('true' | 'false');
                word: string;
              }[]
            | null;
          stream?:
            | (
                | 'test-line'
                | {
                    bearer_token?: string | null;
                    /**
                     * @default twilio
                     * @enum {string}
                     */
                    format?: 'twilio' | 'pcmu' | 'pcma' | 'pcm16-8000' | 'pcm16-16000';
                    url: string;
                  }
              )
            | null;
          tools?:
            | (
                | string
                | {
                    /** @default null */
                    body?: {
                      [key: string]: unknown;
                    } | null;
                    description: string;
                    /** @default {} */
                    headers?: {
                      [key: string]: string;
                    };
                    /**
                     * @default {
                     *       "type": "object",
                     *       "example": null,
                     *       "required": [],
                     *       "properties": {}
                     *     }
                     */
                    input_schema?: {
                      /** @default null */
                      example?: {
                        [key: string]: unknown;
                      } | null;
                      /** @default {} */
                      properties?: {
                        [key: string]: string;
                      };
                      /** @default [] */
                      required?: string[];
                      /**
                       * @default object
                       * @enum {string}
                       */
                      type?: 'object';
                    };
                    /**
                     * @default POST
                     * @enum {string}
                     */
                    method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
                    name: string;
                    /** @default {} */
                    response?: {
                      [key: string]: string;
                    };
                    /** @default null */
                    speech?: string | null;
                    /** @default 10000 */
                    timeout?: number;
                    url: string;
                  }
              )[]
            | null;
          transfer_list?:
            | (
                | {
                    [key: string]: unknown;
                  }
                | unknown[]
              )
            | null;
          voice?: string | null;
          webhook?: (string | '') | null;
        };
      };
    };
    responses: {
      /** @description The agent */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            agent: components['schemas']['Agent'];
            message: string;
            /** @enum {string} */
            status: 'success';
            /** @description What works otherwise than one might think */
            readonly warnings: {
              message: string;
              path: string;
            }[];
          };
        };
      };
    };
  };
  getV1AgentsAgentId: {
    parameters: {
      query?: {
        /**
         * @description For an operator key: the organization that is asked about, all of them when left out; `none`: calls that belong to none
         * @example 0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52
         */
        org_id?: string;
      };
      header?: never;
      path: {
        /**
         * @description UUID
         * @example 4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11
         */
        agent_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The agent */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            agent: components['schemas']['Agent'];
            message: string;
            /** @enum {string} */
            status: 'success';
            /** @description What works otherwise than one might think */
            readonly warnings: {
              message: string;
              path: string;
            }[];
          };
        };
      };
    };
  };
  postV1AgentsAgentId: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description `etag` of an answer with the record: nothing changes when it is another one by now. `*`: only if there is a record
         * @example "2026-01-01T00:00:00.000Z"
         */
        'if-match'?: string;
      };
      path: {
        /**
         * @description UUID
         * @example 4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11
         */
        agent_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        'application/json': {
          analysis_schema?: {
            [key: string]: string;
          } | null;
          dynamic_data?:
            | (
                | (
                    | {
                        [key: string]: unknown;
                      }
                    | unknown[]
                  )
                | ''
              )
            | null;
          first_sentence?: string | null;
          interruption_threshold?: number | null;
          language?: 'ENG' | null;
          max_duration?: number | null;
          metadata?: {
            [key: string]: unknown;
          } | null;
          model?: ('base' | 'turbo') | null;
          /** @description What you call it */
          name?: string;
          pathway_id?: string | null;
          prompt?: string | null;
          pronunciation_guide?:
            | {
                /** @default false */
                case_sensitive?: boolean | ('true' | 'false');
                pronunciation: string;
                /** @default true */
                spaced?: boolean | ('true' | 'false');
                word: string;
              }[]
            | null;
          stream?:
            | (
                | 'test-line'
                | {
                    bearer_token?: string | null;
                    /**
                     * @default twilio
                     * @enum {string}
                     */
                    format?: 'twilio' | 'pcmu' | 'pcma' | 'pcm16-8000' | 'pcm16-16000';
                    url: string;
                  }
              )
            | null;
          tools?:
            | (
                | string
                | {
                    /** @default null */
                    body?: {
                      [key: string]: unknown;
                    } | null;
                    description: string;
                    /** @default {} */
                    headers?: {
                      [key: string]: string;
                    };
                    /**
                     * @default {
                     *       "type": "object",
                     *       "example": null,
                     *       "required": [],
                     *       "properties": {}
                     *     }
                     */
                    input_schema?: {
                      /** @default null */
                      example?: {
                        [key: string]: unknown;
                      } | null;
                      /** @default {} */
                      properties?: {
                        [key: string]: string;
                      };
                      /** @default [] */
                      required?: string[];
                      /**
                       * @default object
                       * @enum {string}
                       */
                      type?: 'object';
                    };
                    /**
                     * @default POST
                     * @enum {string}
                     */
                    method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
                    name: string;
                    /** @default {} */
                    response?: {
                      [key: string]: string;
                    };
                    /** @default null */
                    speech?: string | null;
                    /** @default 10000 */
                    timeout?: number;
                    url: string;
                  }
              )[]
            | null;
          transfer_list?:
            | (
                | {
                    [key: string]: unknown;
                  }
                | unknown[]
              )
            | null;
          voice?: string | null;
          webhook?: (string | '') | null;
        };
      };
    };
    responses: {
      /** @description What changed */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            /** @description Names the agent */
            message: string;
            /** @enum {string} */
            status: 'success';
            /** @description The settings of the request as they are now, and those that a pathway reset */
            updates: {
              [key: string]: unknown;
            };
            /** @description What works otherwise than one might think */
            readonly warnings: {
              message: string;
              path: string;
            }[];
          };
        };
      };
    };
  };
  deleteV1AgentsAgentId: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description `etag` of an answer with the record: nothing changes when it is another one by now. `*`: only if there is a record
         * @example "2026-01-01T00:00:00.000Z"
         */
        'if-match'?: string;
      };
      path: {
        /**
         * @description UUID
         * @example 4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11
         */
        agent_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description It is deleted */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            message: string;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  getV1Audit: {
    parameters: {
      query?: {
        /**
         * @description The `id` of an entry: what was before it
         * @example 1767225600000-0
         */
        before?: string;
        /**
         * @description For an operator key: the organization that is asked about, all of them when left out; `none`: calls that belong to none
         * @example 0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52
         */
        org_id?: string;
        /**
         * @description 1 to 1000, 100 when left out
         * @example 100
         */
        take?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The changes */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            readonly entries: components['schemas']['AuditEntry'][];
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  getV1Calls: {
    parameters: {
      query?: {
        /**
         * @description `next` of the page before
         * @example MDAxNzY3MjI1NjAwMDAwOjE1M2VlNTQ2LTA1YjktNGQ5NS1iZDZkLWY4OTlmMDgyZDQ4Yg
         */
        before?: string;
        /**
         * @description The caller: `from` of the record; a phone number in any spelling
         * @example +15550100999
         */
        from?: string;
        /**
         * @description 1 to 500; 50 when left out. A page of large records may have fewer, and a `next`
         * @example 50
         */
        limit?: string;
        /**
         * @description For an operator key: the organization that is asked about, all of them when left out; `none`: calls that belong to none
         * @example 0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52
         */
        org_id?: string;
        /**
         * @description The called number, with or without the plus
         * @example +15551234567
         */
        phone_number?: string;
        /**
         * @description Why they ended or were refused: a code of docs/errors.md
         * @example CALLER_HANGUP
         */
        reason?:
          | 'MALFORMED_REQUEST'
          | 'SOURCE_NOT_ALLOWED'
          | 'ORG_NOT_ENTITLED'
          | 'ORG_DISABLED'
          | 'NUMBER_NOT_ATTACHED'
          | 'IDENTITY_STALE'
          | 'IDENTITY_REQUIRED'
          | 'IDENTITY_INFO_BAD'
          | 'IDENTITY_CREDENTIAL_UNSUPPORTED'
          | 'IDENTITY_INVALID'
          | 'INVALID_NUMBER'
          | 'NUMBER_TOO_SHORT'
          | 'METHOD_NOT_ALLOWED'
          | 'NOT_ACCEPTABLE'
          | 'BAD_BODY'
          | 'BAD_SCHEME'
          | 'BAD_EXTENSION'
          | 'NO_DIALOG'
          | 'LOOP_DETECTED'
          | 'NUMBER_CALL_LIMIT'
          | 'NUMBER_RATE_LIMIT'
          | 'ORG_CALL_LIMIT'
          | 'SESSION_INTERVAL_TOO_SMALL'
          | 'ORG_RATE_LIMIT'
          | 'CALLER_CANCELLED'
          | 'SRTP_REQUIRED'
          | 'SRTP_SUITE_UNSUPPORTED'
          | 'NO_COMMON_CODEC'
          | 'BAD_SDP'
          | 'ADDRESS_FAMILY_UNSUPPORTED'
          | 'REQUEST_PENDING'
          | 'EXCHANGE_PENDING'
          | 'AGENT_UNAVAILABLE'
          | 'INTERNAL_ERROR'
          | 'OVERLOADED'
          | 'DRAINING'
          | 'MEDIA_UNAVAILABLE'
          | 'STORE_UNAVAILABLE'
          | 'DECLINED'
          | 'CALLER_HANGUP'
          | 'AGENT_HANGUP'
          | 'MAX_DURATION'
          | 'MEDIA_TIMEOUT'
          | 'SESSION_EXPIRED'
          | 'ACK_TIMEOUT'
          | 'MEDIA_LOST'
          | 'BAD_ANSWER'
          | 'AGENT_LOST'
          | 'TRANSFERRED'
          | 'GATEWAY_RESTARTED'
          | 'API_STOPPED'
          | 'SHUTDOWN';
        /**
         * @description Calls that began at this time or later
         * @example 2026-01-01T00:00:00Z
         */
        since?: string;
        /**
         * @description The carrier's Call-ID, as it came
         * @example a84b4c76e66710@pc33.example.com
         */
        sip_call_id?: string;
        /**
         * @description `ended`, the default: calls that ended or were refused. `live`: all others, on all gateways; `ringing` and `in_progress`: those of them that are not answered yet, and that are
         * @example in_progress
         */
        state?: 'ringing' | 'in_progress' | 'ended' | 'live';
        /**
         * @description Calls that began before this time
         * @example 2027-01-01T00:00:00Z
         */
        until?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A page of calls */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            readonly calls: components['schemas']['Call'][];
            /** @description Give it back as `before` for the next page; null: there is none */
            next: string | null;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  getV1CallsCallId: {
    parameters: {
      query?: {
        /**
         * @description For an operator key: the organization that is asked about, all of them when left out; `none`: calls that belong to none
         * @example 0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52
         */
        org_id?: string;
      };
      header?: never;
      path: {
        /**
         * @description UUID
         * @example 153ee546-05b9-4d95-bd6d-f899f082d48b
         */
        call_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The call */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            call: components['schemas']['CallDetail'];
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  getV1CallsCallIdQuality: {
    parameters: {
      query?: {
        /**
         * @description For an operator key: the organization that is asked about, all of them when left out; `none`: calls that belong to none
         * @example 0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52
         */
        org_id?: string;
      };
      header?: never;
      path: {
        /**
         * @description UUID
         * @example 153ee546-05b9-4d95-bd6d-f899f082d48b
         */
        call_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The samples */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            /** @description Whether the call is in progress */
            live: boolean;
            /** @description Oldest first; about each 5 seconds, of long calls less often */
            readonly samples: components['schemas']['QualitySample'][];
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  postV1CallsCallIdStop: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description UUID
         * @example 153ee546-05b9-4d95-bd6d-f899f082d48b
         */
        call_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /** @example {} */
        'application/json': Record<string, never> | null;
      };
    };
    responses: {
      /** @description The gateway of the call ends it */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            message: string;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  getV1CallsCallIdTrace: {
    parameters: {
      query?: {
        /**
         * @description For an operator key: the organization that is asked about, all of them when left out; `none`: calls that belong to none
         * @example 0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52
         */
        org_id?: string;
      };
      header?: never;
      path: {
        /**
         * @description UUID
         * @example 153ee546-05b9-4d95-bd6d-f899f082d48b
         */
        call_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The trace */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            /** @enum {string} */
            status: 'success';
            readonly trace: components['schemas']['TraceEntry'][];
          };
        };
      };
    };
  };
  getV1Organizations: {
    parameters: {
      query?: {
        /**
         * @description For an operator key: the organization that is asked about, all of them when left out; `none`: calls that belong to none
         * @example 0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52
         */
        org_id?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The organizations */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            /** @description The key is an operator key: it reads of all organizations, and changes nothing */
            operator: boolean;
            readonly organizations: components['schemas']['Organization'][];
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  getV1Reasons: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The reasons */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            readonly reasons: components['schemas']['Reason'][];
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  getV1Throughput: {
    parameters: {
      query?: {
        /**
         * @description For an operator key: the organization that is asked about, all of them when left out; `none`: calls that belong to none
         * @example 0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52
         */
        org_id?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The last 15 minutes */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            /** @description Calls in progress on all gateways */
            in_progress: number;
            /** @description The last 15 minutes, oldest first; the last one is not over yet */
            readonly intervals: {
              /** @description When it began: ISO 8601, UTC */
              at: string;
              /** @description INVITEs to numbers of the organization, those refused later included */
              begun: number;
              /** @description Answered calls that ended */
              ended: number;
              /** @description Calls that ended unanswered: refused, or given up by the caller */
              refused: number;
            }[];
            /** @enum {string} */
            status: 'success';
            /** @description Length of an interval */
            step_seconds: number;
          };
        };
      };
    };
  };
  getV1Tools: {
    parameters: {
      query?: {
        /**
         * @description `next` of the page before
         * @example MDAxNzY3MjI1NjAwMDAwOjE1M2VlNTQ2LTA1YjktNGQ5NS1iZDZkLWY4OTlmMDgyZDQ4Yg
         */
        before?: string;
        /**
         * @description 1 to 500; all when left out. A page of large records may have fewer, and a `next`
         * @example 50
         */
        limit?: string;
        /**
         * @description For an operator key: the organization that is asked about, all of them when left out; `none`: calls that belong to none
         * @example 0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52
         */
        org_id?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The tools */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            /** @description Give it back as `before` for the next page; null: there is none */
            next?: string | null;
            /** @enum {string} */
            status: 'success';
            readonly tools: components['schemas']['ToolRecord'][];
          };
        };
      };
    };
  };
  postV1Tools: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "label": "Booking",
         *       "tool": {
         *         "name": "BookTable",
         *         "description": "Books a table. Use it once the caller has named day and time.",
         *         "speech": "One moment, I am looking that up.",
         *         "url": "https://api.example.com/bookings",
         *         "headers": {
         *           "x-api-key": "yours"
         *         },
         *         "body": {
         *           "day": "{{input.day}}"
         *         },
         *         "input_schema": {
         *           "type": "object",
         *           "example": {
         *             "day": "2026-12-24"
         *           },
         *           "required": [
         *             "day"
         *           ],
         *           "properties": {
         *             "day": "YYYY-MM-DD"
         *           }
         *         },
         *         "response": {
         *           "booking_id": "$.booking.id"
         *         }
         *       }
         *     }
         */
        'application/json':
          | {
              /** @default null */
              label?: string | null;
              /** @default false */
              public?: boolean;
              tool: {
                /** @default null */
                body?: {
                  [key: string]: unknown;
                } | null;
                description: string;
                /** @default {} */
                headers?: {
                  [key: string]: string;
                };
                /**
                 * @default {
                 *       "type": "object",
                 *       "example": null,
                 *       "required": [],
                 *       "properties": {}
                 *     }
                 */
                input_schema?: {
                  /** @default null */
                  example?: {
                    [key: string]: unknown;
                  } | null;
                  /** @default {} */
                  properties?: {
                    [key: string]: string;
                  };
                  /** @default [] */
                  required?: string[];
                  /**
                   * @default object
                   * @enum {string}
                   */
                  type?: 'object';
                };
                /**
                 * @default POST
                 * @enum {string}
                 */
                method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
                name: string;
                /** @default {} */
                response?: {
                  [key: string]: string;
                };
                /** @default null */
                speech?: string | null;
                /** @default 10000 */
                timeout?: number;
                url: string;
              };
            }
          | {
              /** @default null */
              body?: {
                [key: string]: unknown;
              } | null;
              description: string;
              /** @default {} */
              headers?: {
                [key: string]: string;
              };
              /**
               * @default {
               *       "type": "object",
               *       "example": null,
               *       "required": [],
               *       "properties": {}
               *     }
               */
              input_schema?: {
                /** @default null */
                example?: {
                  [key: string]: unknown;
                } | null;
                /** @default {} */
                properties?: {
                  [key: string]: string;
                };
                /** @default [] */
                required?: string[];
                /**
                 * @default object
                 * @enum {string}
                 */
                type?: 'object';
              };
              /** @default null */
              label?: string | null;
              /**
               * @default POST
               * @enum {string}
               */
              method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
              name: string;
              /** @default false */
              public?: boolean;
              /** @default {} */
              response?: {
                [key: string]: string;
              };
              /** @default null */
              speech?: string | null;
              /** @default 10000 */
              timeout?: number;
              url: string;
            };
      };
    };
    responses: {
      /** @description The tool */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            message: string;
            /** @enum {string} */
            status: 'success';
            tool: components['schemas']['ToolRecord'];
          };
        };
      };
    };
  };
  deleteV1ToolsToolId: {
    parameters: {
      query?: never;
      header?: {
        /**
         * @description `etag` of an answer with the record: nothing changes when it is another one by now. `*`: only if there is a record
         * @example "2026-01-01T00:00:00.000Z"
         */
        'if-match'?: string;
      };
      path: {
        /**
         * @description TL- and a UUID
         * @example TL-3b0c1f3e-6a53-4c53-9f5b-0f0d8a2d1c11
         */
        tool_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description It is deleted */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            message: string;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  postV1ToolsToolIdInvoke: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description TL- and a UUID
         * @example TL-3b0c1f3e-6a53-4c53-9f5b-0f0d8a2d1c11
         */
        tool_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "input": {
         *         "day": "2026-12-24"
         *       }
         *     }
         */
        'application/json': {
          /** @description What an agent would give */
          input: {
            [key: string]: unknown;
          };
        };
      };
    };
    responses: {
      /** @description What the tool answered */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            /** @description What the tool answered with */
            http_status: number;
            /** @description By the names of `response`; the whole answer without them, or when the tool answered 300 or more */
            result: unknown;
            /** @enum {string} */
            status: 'success';
            took_ms: number;
          };
        };
      };
    };
  };
  getV1Voices: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The voices */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            /** @enum {string} */
            status: 'success';
            readonly voices: components['schemas']['Voice'][];
          };
        };
      };
    };
  };
  getV1WebhooksDeadLetters: {
    parameters: {
      query?: {
        /**
         * @description `next` of the page before
         * @example MDAxNzY3MjI1NjAwMDAwOjE1M2VlNTQ2LTA1YjktNGQ5NS1iZDZkLWY4OTlmMDgyZDQ4Yg
         */
        before?: string;
        /**
         * @description 1 to 500; 50 when left out. A page of large records may have fewer, and a `next`
         * @example 50
         */
        limit?: string;
        /**
         * @description For an operator key: the organization that is asked about, all of them when left out; `none`: calls that belong to none
         * @example 0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52
         */
        org_id?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description A page of them */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            readonly dead_letters: components['schemas']['DeadLetter'][];
            /** @description Give it back as `before` for the next page; null: there is none */
            next: string | null;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  postV1WebhooksDeadLettersDeliveryIdResend: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description Of a dead letter
         * @example 153ee546-05b9-4d95-bd6d-f899f082d48b
         */
        delivery_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description It is sent again */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            message: string;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  getV2Batches: {
    parameters: {
      query?: {
        /**
         * @description For an operator key: the organization that is asked about, all of them when left out; `none`: calls that belong to none
         * @example 0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52
         */
        org_id?: string;
        /**
         * @description 0 to 10000000, 0 when left out
         * @example 0
         */
        skip?: string;
        /**
         * @description 1 to 1000, 100 when left out
         * @example 100
         */
        take?: string;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The batches */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            readonly data: components['schemas']['Batch'][];
            errors: null;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  postV2Batches: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "name": "Reminders"
         *     }
         */
        'application/json': {
          name: string;
        };
      };
    };
    responses: {
      /** @description The batch */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['Batch'];
            errors: null;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  getV2BatchesBatchIdLogs: {
    parameters: {
      query?: {
        /**
         * @description Oldest first, or newest first
         * @example asc
         */
        direction?: 'asc' | 'desc';
        /**
         * @description For an operator key: the organization that is asked about, all of them when left out; `none`: calls that belong to none
         * @example 0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52
         */
        org_id?: string;
        /**
         * @description 0 to 10000000, 0 when left out
         * @example 0
         */
        skip?: string;
        /**
         * @description 1 to 1000, 100 when left out
         * @example 100
         */
        take?: string;
      };
      header?: never;
      path: {
        /**
         * @description UUID
         * @example 7f9d7a3e-6a53-4c53-9f5b-0f0d8a2d1c11
         */
        batch_id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      /** @description The entries */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            readonly data: components['schemas']['BatchLogEntry'][];
            errors: null;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
  postV2BatchesBatchIdLogs: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        /**
         * @description UUID
         * @example 7f9d7a3e-6a53-4c53-9f5b-0f0d8a2d1c11
         */
        batch_id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        /**
         * @example {
         *       "event_type": "lifecycle",
         *       "payload": {
         *         "message": "100 requested, 0 dispatched",
         *         "state_change": "in_progress"
         *       }
         *     }
         */
        'application/json': {
          /** @description `lifecycle`, `complete`, or another one */
          event_type: string;
          /** @description `lifecycle`: message, state_change. `complete`: calls_total, calls_failed, calls_successful */
          payload: {
            [key: string]: unknown;
          };
          /**
           * Format: date-time
           * @description Now, when left out
           */
          timestamp?: string;
        };
      };
    };
    responses: {
      /** @description The entry */
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          'application/json': {
            data: components['schemas']['BatchLogEntry'];
            errors: null;
            /** @enum {string} */
            status: 'success';
          };
        };
      };
    };
  };
}
