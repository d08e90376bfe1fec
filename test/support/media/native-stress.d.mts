/** Resolves with the packets of each thread that came through whole. */
export function stressInThreads(addon: string, threads: number, sessions: number, packets: number): Promise<number[]>;
