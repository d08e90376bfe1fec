import { beforeEach, describe, expect, it } from 'vitest';
import { parseE164 } from '../../../../src/gateway/model/e164.js';
import type { Result } from '../../../../src/lib/result.js';
import { openApi, type ApiFixture } from './api-fixture.js';

const FROM = '+15550100555';
let api: ApiFixture;
let refusal: string | null;
let priceOf: (to: string) => Result<number, string>;

beforeEach(async () => {
  refusal = null;
  priceOf = () => ({ ok: true, value: 0.01 });
  api = await openApi({
    placeCall: {
      kept: () => Promise.resolve(),
      fromRefusal: () => refusal,
      priceOf: ({ to }) => priceOf(to),
      refusal: () => null,
      place: ({ callId }) => ({ ok: true, value: callId }),
    },
  });
  await api.stores.numbers.attach(api.orgId, parseE164(FROM)!, { outbound: { sip_endpoint: 'a.example' } });
});

interface Made {
  readonly batch_id: string;
  readonly state: string;
  readonly plan: Readonly<Record<string, unknown>>;
  readonly counts: Readonly<Record<string, number>>;
  readonly preview: Readonly<Record<string, unknown>>;
  readonly refused_rows: readonly object[];
}
const post = async (body: object, headers: Record<string, string> = {}) => {
  const answer = await api.send({
    method: 'POST',
    url: '/v2/batches',
    headers: { authorization: api.key, 'content-type': 'application/json', ...headers },
    payload: JSON.stringify({ name: 'March', from: FROM, ...body }),
  });
  return { status: answer.status, made: answer.body.data as Made, errors: answer.failure.errors };
};
const log = async (id: string) =>
  (await api.get(`/v2/batches/${id}/logs?direction=asc`)).body.data as { event_type: string; payload: object }[];

describe('POST /v2/batches with numbers', () => {
  it('is answered with what would be dialled, and every refused row with its number and reason; nothing is dialled before its start', async () => {
    await api.post('/v1/do-not-call', { phone_numbers: ['+4930123459'] });
    priceOf = (to) => (to.startsWith('+49') ? { ok: true, value: 0.02 } : { ok: false, error: `${to} begins with no prefix` });
    const zoned = { phone_number: '+4930123457', time_zone: 'Mars/Base' };
    const numbers = ['+49 30 123456', '4930123456', zoned, 'abc', '+4930123458', '+4930123459', '+33123456789', '+88312345678901'];
    const { status, made } = await post({ numbers, max_duration: 10 });
    expect([status, made.state, made.counts]).toMatchObject([200, 'ready', { requested: 8, validated: 2, waiting: 2, dispatched: 0 }]);
    const rows = [
      { row: 1, phone_number: '+4930123456', reason: 'DUPLICATE', message: 'is there already' },
      { row: 2, reason: 'INVALID_TIME_ZONE', message: 'Mars/Base is not a time zone, such as Europe/Berlin' },
      { row: 3, phone_number: 'abc', reason: 'INVALID_NUMBER', message: expect.stringContaining('in E.164 form') as unknown },
      { row: 5, phone_number: '+4930123459', reason: 'DO_NOT_CALL' },
      { row: 6, phone_number: '+33123456789', reason: 'DIAL_NOT_ALLOWED', message: '+33123456789 begins with no prefix' },
      { row: 7, phone_number: '+88312345678901', reason: 'DIAL_NOT_ALLOWED' },
    ];
    expect(made.refused_rows).toMatchObject(rows);
    // Midnight of UTC, 1 January 2026: Berlin's 09:00 comes.
    const first_call_at = '2026-01-01T08:00:00.000Z';
    expect(made.preview).toEqual({ refused: 6, callable_now: 0, callable_later: 2, first_call_at, reserved_cost: 0.4 });
    expect((await log(made.batch_id)).map(({ payload }) => payload)).toMatchObject([
      { state_change: 'created' },
      { state_change: 'validating' },
      { rows, refused_total: 6 },
      { state_change: 'ready', message: '8 requested, 2 validated, 0 dispatched, 1 calls per second' },
    ]);
    const started = await api.post(`/v2/batches/${made.batch_id}/start`, {});
    expect(started.body.data).toMatchObject({ state: 'in_progress', preview: { refused: 6 } });
    expect((await api.stores.audit.list(api.orgId, { take: 2 })).map(({ action }) => action)).toEqual(['batch.start', 'batch.create']);
  });

  it('begins at once with start: true, unless a row is refused', async () => {
    expect((await post({ start: true, numbers: ['+4930123456'] })).made.state).toBe('in_progress');
    expect((await post({ start: true, numbers: ['+4930123456', '12'] })).made.state).toBe('ready');
  });

  it('names numbers that have no hour in which they may be called', async () => {
    priceOf = () => ({ ok: true, value: 0 });
    const { made } = await post({ numbers: ['+88312345678901', '+4930123456'] });
    expect(made.refused_rows).toMatchObject([{ row: 0, reason: 'OUTSIDE_HOURS', message: 'has no known time zone: give one' }]);
  });

  it('names 2,000 refused rows and counts the others', async () => {
    const numbers = ['+4930123456', ...Array.from({ length: 2_100 }, () => '12')];
    const { made } = await post({ numbers });
    expect([made.preview['refused'], made.refused_rows.length, made.refused_rows.at(-1)]).toMatchObject([2_100, 2_000, { row: 2_000 }]);
  });

  it('fails when none is valid', async () => {
    const { made } = await post({ numbers: ['1', '2'] });
    expect([made.state, made.refused_rows.length]).toEqual(['failed', 2]);
    expect((await log(made.batch_id)).at(-1)).toMatchObject({ event_type: 'complete', payload: { calls_total: 0 } });
  });

  it('has hours and a pace by default, and nothing else', async () => {
    const { made } = await post({ numbers: ['+4930123456'] });
    expect(made.plan).toEqual({
      from: FROM,
      agent_id: null,
      calls_per_second: 1,
      max_concurrent_calls: 10,
      retries: {},
      do_not_call_digit: null,
      hours: { from: '09:00', to: '20:00', days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat'] },
      ring_timeout: 60,
      detect_answerer: false,
      max_duration: null,
      metadata: null,
      webhook: null,
    });
  });

  it.each([
    [{ numbers: ['+4930123456'], csv: 'phone_number' }, 'csv'],
    [{ numbers: [] }, 'numbers'],
    [{}, 'numbers'],
    [{ start: true }, 'numbers'],
    [{ numbers: ['+4930123456'], from: '+15550100556' }, 'from'],
    [{ numbers: ['+4930123456'], agent_id: '4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11' }, 'agent_id'],
    [{ numbers: ['+4930123456'], webhook: 'http://10.0.0.1/' }, 'webhook'],
    [{ numbers: ['+4930123456'], hours: { from: '20:00', to: '09:00', days: ['mon'] } }, 'hours.to'],
    [{ numbers: ['+4930123456'], retries: { CALLER_HANGUP: { times: 1, after_seconds: 1 } } }, 'retries.CALLER_HANGUP'],
    [{ numbers: ['+4930123456'], calls_per_second: 0 }, 'calls_per_second'],
  ])('refuses %j', async (body, path) => {
    const { status, errors } = await post(body);
    expect([status, errors.map((one) => one.path)]).toEqual([400, [path]]);
  });

  it('answers 403 when the operator does not allow it', async () => {
    refusal = 'Not dialled: no';
    expect(await post({ numbers: ['+4930123456'] })).toMatchObject({ status: 403, errors: [{ error: 'DIAL_NOT_ALLOWED' }] });
  });

  it('creates one batch for one idempotency-key', async () => {
    const key = { 'idempotency-key': 'march' };
    const [one, other] = [await post({ numbers: ['+4930123456', '12'] }, key), await post({ numbers: ['+4930123456', '12'] }, key)];
    expect(other.made).toEqual(one.made);
    const send = (fields: object) =>
      api.send({
        method: 'POST',
        url: '/v2/batches',
        headers: { authorization: api.key, 'content-type': 'application/json', 'idempotency-key': 'order' },
        payload: JSON.stringify(fields),
      });
    const first = await send({
      name: 'March',
      from: FROM,
      numbers: [{ phone_number: '+4930123456', metadata: { a: 1, b: { c: 1, d: 2 } } }],
    });
    const again = await send({
      from: FROM,
      numbers: [{ metadata: { b: { d: 2, c: 1 }, a: 1 }, phone_number: '+4930123456' }],
      name: 'March',
    });
    expect([again.status, again.body.data, again.headers['idempotent-replayed']]).toEqual([200, first.body.data, 'true']);
    expect(first.headers['idempotent-replayed']).toBeUndefined();
    expect(await post({ numbers: ['+4930123457'] }, key)).toMatchObject({ status: 409, errors: [{ error: 'IDEMPOTENCY_KEY_REUSED' }] });
  });

  it('dials nothing when another request has the key by then', async () => {
    const { placements } = api.stores;
    placements.keep = () => Promise.resolve(false);
    const { made } = await post({ numbers: ['+4930123456'] }, { 'idempotency-key': 'late' });
    expect(made.state).toBe('failed');
    expect(JSON.stringify(await log(made.batch_id))).toContain('its idempotency-key has expired meanwhile');
    // Nor is a batch told that may not be complete.
    expect(await post({ numbers: ['+4930123456'] }, { 'idempotency-key': 'late' })).toMatchObject({
      status: 503,
      errors: [{ error: 'NOT_READY' }],
    });
  });
});

describe('POST /v2/batches with a body of CSV', () => {
  const send = async (query: Readonly<Record<string, string>>, payload: string, type = 'text/csv', path = '/v2/batches') => {
    const url = `${path}?${new URLSearchParams(query).toString()}`;
    const answer = await api.send({ method: 'POST', url, headers: { authorization: api.key, 'content-type': type }, payload });
    return { status: answer.status, made: answer.body.data as Made, errors: answer.failure.errors };
  };

  it.each(['text/csv', 'text/csv; charset=utf-8; header=present'])('takes the other fields from its query: %s', async (type) => {
    const query = { name: '2026', from: FROM, calls_per_second: '5', retries: '{"BUSY":{"times":2,"after_seconds":600}}' };
    const { status, made } = await send(query, 'phone_number,name\n+4930123456,Ada\n4930,Bob\n', type);
    expect([status, made.plan]).toMatchObject([200, { from: FROM, calls_per_second: 5, retries: { BUSY: { times: 2 } } }]);
    expect(made.counts).toMatchObject({ requested: 2, validated: 1 });
  });

  it.each([
    ['no sender', { name: 'March' }, 'from'],
    ['no number', { name: 'March', from: FROM, calls_per_second: 'many' }, 'calls_per_second'],
    ['an unknown field', { name: 'March', from: FROM, pace: '5' }, ''],
    ['a key that changes prototypes', { name: 'March', from: FROM, retries: '{"__proto__":{"times":2}}' }, 'retries'],
  ])('is refused with %s', async (_what, query, path) => {
    const { status, errors } = await send(query, '+4930123456\n');
    expect([status, errors.map((error) => error.path)]).toEqual([
      400,
      expect.arrayContaining([expect.stringContaining(path) as string]) as string[],
    ]);
  });

  it('is accepted by no other route', async () => {
    expect((await send({}, '+4930123456\n', 'text/csv', '/v1/calls')).status).toBe(415);
    expect((await send({}, '+4930123456\n', 'text/plain')).status).toBe(415);
  });
});

describe('POST /v2/batches with CSV', () => {
  it.each([
    [
      'semicolons, a byte order mark, empty lines',
      ['\uFEFFphone_number;time_zone;name', '+4930123456;Europe/Berlin;"Ada; B."', '', '+4930123457;;Bob'],
    ],
    ['tabs', ['phone_number\ttime_zone\tname', '+4930123456\tEurope/Berlin\tAda, B.', '+4930123457\t\tBob', '\t\t']],
    ['a list without a first line', ['+49 30 123456', '+49 (30) 123-457']],
    ['Phone_Number', ['Name,Phone_Number,Time Zone', 'Ada,+49 30 123456,Europe/Berlin', 'Bob,+4930123457,']],
    ['phone', ['name,phone', 'Ada,+49\u00a030 123456', 'Bob,+4930123457', ',']],
  ])('is read with %s', async (_what, lines) => {
    const { made } = await post({ csv: lines.join('\r\n') });
    expect([made.counts, made.refused_rows]).toMatchObject([{ requested: 2, validated: 2 }, []]);
  });

  it('names every row that cannot be read together with those that are no numbers, and goes on behind each', async () => {
    const rows = [
      'phone_number,name',
      '+4930123456,Ada',
      '+4930123457',
      '+4930123458,A"da"x',
      '12,Bob',
      '',
      `+4930123459,${'x'.repeat(1_001)}`,
    ];
    const { made } = await post({
      csv: [...rows, '+4930123450,"Cid" x', '+4930123451,Dora', '+4930123452,"Eve', '+4930123453,Fay'].join('\n'),
    });
    expect(made.refused_rows).toMatchObject([
      { row: 3, phone_number: '+4930123457', reason: 'UNREADABLE_ROW', message: 'has 1 columns, and the first line has 2' },
      { row: 4, reason: 'UNREADABLE_ROW', message: expect.stringContaining('has a quote within a cell') as unknown },
      { row: 5, phone_number: '12', reason: 'INVALID_NUMBER' },
      { row: 7, phone_number: '+4930123459', reason: 'UNREADABLE_ROW', message: 'column 2 has more than 1000 characters' },
      { row: 8, reason: 'UNREADABLE_ROW', message: expect.stringContaining('has a quote within a cell') as unknown },
      { row: 10, reason: 'UNREADABLE_ROW', message: 'has a quote that is never closed' },
    ]);
    expect(made.counts).toMatchObject({ requested: 9, validated: 3 });
  });

  it('goes on behind a quote that swallows more than a record may have', async () => {
    const more = Array.from({ length: 2_000 }, (_none, row) => `+4930${String(1_000_000 + row)},x`);
    const { made } = await post({ csv: ['phone_number,name', '+4930123456,"Ada', ...more].join('\n') });
    expect(made.refused_rows).toMatchObject([{ row: 2, message: 'has more than 16384 bytes, or a quote that is never closed' }]);
    expect(made.counts).toMatchObject({ requested: 2_001, validated: 2_000 });
  });

  it('is refused with more than 100 rows whose quotes do not match', async () => {
    const { status, errors } = await post({ csv: `phone_number,name\n${'+4930123456,"x" y\n'.repeat(101)}` });
    expect([status, errors[0]?.message]).toEqual([
      400,
      expect.stringMatching(/^has more than 100 rows whose quotes do not match, at the lines 2, 3/),
    ]);
  });

  it.each([
    ['name\nAda', /^line 1: has no column phone_number/],
    ['phone_number,Phone\n1,2', /^line 1: column 2 needs a name of its own: column 1 is phone_number, too/],
    ['phone_number,"x\n1,2', /^line 1: .*[Qq]uote/],
    ['phone_number\n', /has no numbers/],
    ['', /has no numbers/],
  ])('names the place of the fault in %j', async (csv, message) => {
    const { status, errors } = await post({ csv });
    expect([status, errors[0]?.path, errors[0]?.message]).toEqual([400, 'csv', expect.stringMatching(message)]);
  });

  it('says everything that is wrong with the first line', async () => {
    const { errors } = await post({ csv: 'phone_number,a=b,,phone\n' });
    expect(errors.map(({ message }) => message.slice(0, 16))).toEqual(['line 1: column 2', 'line 1: column 3', 'line 1: column 4']);
  });

  const csv = (count: number): string => Array.from({ length: count }, (_, row) => `+4930${String(1_000_000 + row)}`).join('\n');

  it('accepts 100,000 numbers', async () => {
    expect((await post({ csv: csv(100_000) })).made.counts).toMatchObject({ requested: 100_000, validated: 100_000 });
  });

  it('refuses more than 100,000 numbers', async () => {
    expect((await post({ csv: csv(100_001) })).errors[0]?.message).toBe('line 100001: has more than 100000 numbers');
  });
});

describe('a dialling batch', () => {
  const move = async (id: string, action: string) => {
    const { status, body, failure } = await api.post(`/v2/batches/${id}/${action}`, {});
    return status === 200 ? (body.data as Made).state : failure.errors[0]?.error;
  };

  it('is paused, resumed and stopped, and stays so once it is over', async () => {
    const { made } = await post({ numbers: ['+4930123456'] });
    const id = made.batch_id;
    expect(await move(id, 'pause')).toBe('BATCH_STATE');
    expect(await move(id, 'start')).toBe('in_progress');
    expect(await move(id, 'start')).toBe('in_progress');
    expect(await move(id, 'pause')).toBe('paused');
    expect(await move(id, 'pause')).toBe('paused');
    expect(await move(id, 'resume')).toBe('in_progress');
    expect(await move(id, 'stop')).toBe('stopped');
    expect(await move(id, 'resume')).toBe('BATCH_STATE');
    expect((await api.get(`/v2/batches/${id}`)).body.data).toMatchObject({ state: 'stopped', name: 'March' });
    const actions = (await api.stores.audit.list(api.orgId, { take: 3 })).map(({ action }) => action);
    expect(actions).toEqual(['batch.stop', 'batch.resume', 'batch.pause']);
  });

  it('answers with an error when it has only a log, or does not exist', async () => {
    const { body } = await api.post('/v2/batches', { name: 'Log' });
    expect(await move((body.data as Made).batch_id, 'stop')).toBe('BATCH_STATE');
    expect(await move('4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11', 'stop')).toBe('NOT_FOUND');
  });
});

describe('the do-not-call list', () => {
  it('grows, is read, and shrinks', async () => {
    const added = await api.post('/v1/do-not-call', { phone_numbers: ['+4930123456', '4930123456', '+4930123457'] });
    expect(added).toMatchObject({ status: 200, body: { message: '2 numbers added to the do-not-call list' } });
    const listed = async () => ((await api.get('/v1/do-not-call')).body as unknown as { numbers: { phone_number: string }[] }).numbers;
    expect((await listed()).map((one) => one.phone_number)).toEqual(['+4930123457', '+4930123456']);
    expect((await api.delete('/v1/do-not-call/+4930123457')).status).toBe(200);
    expect((await api.delete('/v1/do-not-call/+4930123457')).status).toBe(404);
    expect(await listed()).toHaveLength(1);
  });

  it('is checked before a call is placed', async () => {
    await api.post('/v1/do-not-call', { phone_numbers: ['+4930123456'] });
    const { status, failure } = await api.post('/v1/calls', { phone_number: '+4930123456', from: FROM });
    expect([status, failure.message]).toEqual([403, 'Not dialled: +4930123456 is on the do-not-call list']);
  });
});

describe('an organization with many numbers that wait', () => {
  it('may add numbers up to a million, and the answer has how many wait', async () => {
    const counts = { waiting: 999_990 };
    api = await openApi({
      placeCall: {
        kept: () => Promise.resolve(),
        fromRefusal: () => null,
        priceOf: () => ({ ok: true, value: 0.01 }),
        refusal: () => null,
        place: ({ callId }) => ({ ok: true, value: callId }),
      },
      replace: ({ batchRuns }) => ({
        batchRuns: {
          begin: (...given) => batchRuns.begin(...given),
          add: (...given) => batchRuns.add(...given),
          show: (...given) => batchRuns.show(...given),
          move: (...given) => batchRuns.move(...given),
          read: async (...given) => (await batchRuns.read(...given)).map((run) => run && { ...run, counts: { ...run.counts, ...counts } }),
        },
      }),
    });
    await api.stores.numbers.attach(api.orgId, parseE164(FROM)!, { outbound: { sip_endpoint: 'a.example' } });
    const numbers = (count: number) => Array.from({ length: count }, (_none, row) => `+49301${String(100_000 + row)}`);
    expect((await post({ numbers: numbers(1) })).status).toBe(200);
    expect((await post({ numbers: numbers(10) })).status).toBe(200);
    counts.waiting = 499_995;
    const refused = await api.send({
      method: 'POST',
      url: '/v2/batches',
      headers: { authorization: api.key, 'content-type': 'application/json' },
      payload: JSON.stringify({ name: 'March', from: FROM, numbers: numbers(11) }),
    });
    expect([refused.status, refused.failure.message]).toEqual([
      409,
      'An organization has at most 1000000 numbers that wait to be dialled; 999990 do so now',
    ]);
  });
});
