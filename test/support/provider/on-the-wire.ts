/**
 * A library's type of a message as it stands on the wire: a member of an enum is its text. Google's enums are written in small letters too,
 * as in the types of JSON Schema.
 */
export type OnTheWire<Message> = Message extends string
  ? Message | `${Message}` | Lowercase<`${Message}`>
  : Message extends (...given: never[]) => unknown
    ? never
    : Message extends readonly (infer Item)[]
      ? OnTheWire<Item>[]
      : Message extends object
        ? { [Key in keyof Message]: OnTheWire<Message[Key]> }
        : Message;
