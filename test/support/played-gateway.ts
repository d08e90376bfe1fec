import type { AgentAnswer, AgentRequest } from '../../src/gateway/model/agent.js';
import type { CallRecord } from '../../src/gateway/model/call-record.js';
import type { TraceEntry } from '../../src/gateway/model/call-trace.js';
import type { LegEvent } from '../../src/gateway/model/media.js';
import type { Route } from '../../src/gateway/model/records.js';
import type { SipServer } from '../../src/sip-server/server.js';
import type { EndedCall } from '../../src/gateway/ports/ports.js';
import type { Inbound, InboundServices } from '../../src/gateway/drachtio/inbound.js';
import { createSrfApp } from '../../src/gateway/drachtio/srf-facade.js';
import { type SrfApp } from '../../src/gateway/ports/signalling.js';
import { testCertificates } from './certificates.js';
import { playedInbound, type Played } from './played-services.js';
import { ROUTE } from './route.js';
import { SipPeer } from './sip-peer.js';
import { startSipServer } from './sip-server.js';
import { HANG_GUARD_MS } from './hang-guard.js';

/** The gateway's calls on the real SIP server, with a carrier at its other side; store, relay, media and the agent are played. */
export class PlayedGateway {
  readonly records: CallRecord[] = [];
  /** What happened in the call that ended last. */
  trace: readonly TraceEntry[] = [];
  /** What the agent was told. */
  readonly told: AgentAnswer[] = [];
  /** Agents that were told to talk. */
  started = 0;
  readonly #agents = new Map<string, (event: LegEvent) => void>();

  private constructor(
    private readonly server: SipServer,
    private readonly srf: SrfApp,
    readonly peer: SipPeer,
    readonly inbound: Inbound,
  ) {}

  static async start(route: Route = ROUTE, more: Partial<InboundServices> = {}): Promise<PlayedGateway> {
    const server = await startSipServer();
    const { ca } = await testCertificates();
    const peer = await SipPeer.connect(server.portOf('TLS') ?? 0, ca);
    const srf = createSrfApp();
    const played: { gateway?: PlayedGateway } = {};
    const inbound = playedInbound(
      srf,
      playedPorts(() => played.gateway),
      more,
      route,
    );
    const gateway = new PlayedGateway(server, srf, peer, inbound);
    played.gateway = gateway;
    srf.connect({ host: '127.0.0.1', port: server.controlPort, secret: 'test-secret', tags: ['gw:played'] });
    await inbound.whenConnected(HANG_GUARD_MS, 'the test');
    return gateway;
  }

  /** The agent of the one call in progress asks for something. */
  agentSays(request: AgentRequest): void {
    for (const tell of this.#agents.values()) tell({ type: 'agent-request', request });
  }

  /** The calls that have an agent. */
  get callIds(): readonly string[] {
    return [...this.#agents.keys()];
  }

  start(): void {
    this.started += 1;
  }

  connect(callId: string, onEvent: (event: LegEvent) => void): void {
    this.#agents.set(callId, onEvent);
  }

  write({ record, trace }: EndedCall): void {
    this.records.push(record);
    this.trace = trace;
  }

  leave(callId: string): void {
    this.#agents.delete(callId);
  }

  async stop(): Promise<void> {
    this.peer.close();
    this.srf.disconnect();
    await this.server.close();
  }
}

function playedPorts(gateway: () => PlayedGateway | undefined): Played {
  return {
    calls: { write: (call) => Promise.resolve(gateway()?.write(call)) },
    endpoint: {
      connectAgent: (callId, _agent, onEvent) => Promise.resolve(gateway()?.connect(callId, onEvent)),
      send: (_callId, command) => {
        if (command.do === 'notify-agent') gateway()?.told.push(command.answer);
        if (command.do === 'start') gateway()?.start();
      },
      close: (callId) => {
        gateway()?.leave(callId);
        return Promise.resolve(null);
      },
    },
  };
}
