import { describe, expect, it } from 'vitest';
import { pii } from '../../../../src/lib/pii.js';
import { createLogger, SECRET_FIELDS } from '../../../../src/observability/log/logger.js';

function logged(write: (log: ReturnType<typeof createLogger>) => void, level: 'debug' | 'warn' = 'debug'): Record<string, unknown>[] {
  const lines: string[] = [];
  write(createLogger('test', level, { write: (line: string) => void lines.push(line) }));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('createLogger', () => {
  it('hides personal data and secrets, at the top level, one below, and in a child', () => {
    const personal = ['from', 'to', 'caller', 'called', 'phoneNumber', 'phone_number', 'digit', 'digits', 'any'];
    const fields = {
      ...Object.fromEntries(SECRET_FIELDS.map((name) => [name, 'SECRET-VALUE'])),
      ...Object.fromEntries(personal.map((name) => [name, pii('SECRET-VALUE')])),
    };
    const lines = logged((log) => {
      log.info({ ...fields, nested: fields }, 'event');
      log.child(fields).info({}, 'event');
    });
    expect(JSON.stringify(lines)).not.toContain('SECRET-VALUE');
    expect(lines[0]).toMatchObject({ apiKey: '[redacted]', nested: { to: '[redacted]' } });
  });

  it('writes one event a line with time, level and process, and respects its level', () => {
    const lines = logged((log) => {
      log.info({}, 'quiet');
      log.warn({ callId: 'c' }, 'call.refused');
    }, 'warn');
    expect(lines).toEqual([expect.objectContaining({ level: 'warn', process: 'test', callId: 'c', msg: 'call.refused' })]);
    expect(Date.parse(String(lines[0]?.['time']))).not.toBeNaN();
  });
});
