import { OK, RedisError } from '../reply.js';
import type { Commands } from './command.js';

/** `execute` puts what comes between MULTI and EXEC into the connection's queue. */
export const TRANSACTION_COMMANDS: Commands = {
  multi: {
    arity: 1,
    noScript: true,
    run: ({ connection }) => {
      if (connection.transaction !== null) throw new RedisError('ERR MULTI calls can not be nested');
      connection.transaction = { queued: [], isBroken: false };
      return OK;
    },
  },
  exec: {
    arity: 1,
    noScript: true,
    run: ({ connection }) => {
      const { transaction } = connection;
      connection.transaction = null;
      if (transaction === null) throw new RedisError('ERR EXEC without MULTI');
      if (transaction.isBroken) throw new RedisError('EXECABORT Transaction discarded because of previous errors.');
      return transaction.queued.map((run) => run());
    },
  },
  discard: {
    arity: 1,
    noScript: true,
    run: ({ connection }) => {
      if (connection.transaction === null) throw new RedisError('ERR DISCARD without MULTI');
      connection.transaction = null;
      return OK;
    },
  },
};
