import { z } from 'zod';

// What records say of themselves in the OpenAPI document beyond what is checked when they are read.

/** A whole number. @param meaning with its unit */
export const whole = (meaning: string) => z.number().meta({ type: 'integer', description: meaning });

/** A whole number that may be larger than 32 bits. */
export const large = (meaning: string) => z.number().meta({ type: 'integer', format: 'int64', description: meaning });

/** How the document writes a union that generators of clients cannot read: as one schema that allows the same values. */
export const writtenAs = (schema: Readonly<Record<string, unknown>>) => ({ anyOf: undefined, ...schema });

/** Which field tells the variants of a union apart. @param variants the title of the variant for each of its values */
export const discriminator = (propertyName: string, variants: Readonly<Record<string, string>>) => ({
  discriminator: {
    propertyName,
    mapping: Object.fromEntries(Object.entries(variants).map(([value, title]) => [value, `#/components/schemas/${title}`])),
  },
});

/** An id that the gateway made. */
export const uuid = (meaning?: string) => z.string().meta({ format: 'uuid', ...(meaning === undefined ? {} : { description: meaning }) });

/** A time in ISO 8601, UTC. */
export const moment = (meaning?: string) =>
  z.string().meta({ format: 'date-time', ...(meaning === undefined ? {} : { description: meaning }) });
