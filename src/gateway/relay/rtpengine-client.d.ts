// The package has no types: these are the used parts of rtpengine-client 0.4.12 (lib/Client.js and lib/BaseClient.js).
declare module 'rtpengine-client' {
  import type { Socket } from 'node:dgram';
  import type { EventEmitter } from 'node:events';

  export class Client extends EventEmitter {
    constructor(options: { localAddress: string; localPort?: number; timeout: number });
    protected socket: Socket;
    /** By cookie. */
    protected messages: {
      get(cookie: string): ((error: unknown, data?: Record<string, unknown>) => void) | undefined;
      set(cookie: string, callback: (error: unknown, data?: Record<string, unknown>) => void): void;
      delete(cookie: string): boolean;
    };
    protected _onMessage(message: Buffer): void;
    /** Throws when it is no `<36 characters of cookie> <bencode>`. */
    static decodeMessage(message: Buffer): { readonly id: string; readonly data: Record<string, unknown> };
    close(): void;
  }
}
