/** What a server of the benchmark is told. */
export interface Fields {
  /** The product's Redis. */
  readonly redisUrl: string;
  readonly numbers: number;
  /** What the bare route answers: as large as a real answer. */
  readonly record: object;
}

/** What it says when it listens. */
export interface Served {
  readonly port: number;
  readonly key: string;
  readonly numbers: readonly string[];
}
