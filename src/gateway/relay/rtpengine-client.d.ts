// The package has no types: these are the used parts of rtpengine-client 0.4.12 (lib/Client.js and lib/BaseClient.js).
declare module 'rtpengine-client' {
  import type { Socket } from 'node:dgram';
  import type { EventEmitter } from 'node:events';

  export interface NgMessage {
    readonly id: string;
    readonly data: Record<string, unknown>;
  }

  export class Client extends EventEmitter {
    constructor(options: { localAddress: string; localPort?: number; timeout: number });
    protected socket: Socket;
    protected messages: Map<string, (error: unknown, data?: Record<string, unknown>) => void>;
    protected remoteHost: string;
    protected remotePort: number;
    protected send_internal(command: string, args: object, callback: (error: unknown, data?: Record<string, unknown>) => void): this;
    protected _onMessage(message: Buffer): void;
    protected _onParsedMessage(message: NgMessage): void;
    close(): void;
  }
}
