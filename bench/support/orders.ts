/**
 * Carries out what the benchmark's main process orders, each with one answer, and says that it is ready to.
 * @param port where it is reached otherwise
 */
export function takeOrders(obey: (order: never) => Promise<unknown>, port?: number): void {
  process.on('message', (order) => {
    obey(order as never).then(
      (result) => process.send?.({ result }),
      (error: unknown) => process.send?.({ error: error instanceof Error ? (error.stack ?? error.message) : 'failed' }),
    );
  });
  process.send?.({ port });
}
