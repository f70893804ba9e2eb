/** Makes bodies of answers in which no field is forgotten: code writes `undefined` for a field that is absent. Pure. */

/** Every field of `T`, the optional ones too: code does not compile until it fills a field that was added to the schema. */
export type Complete<T> = {
  readonly [Field in keyof Required<T>]: object extends Pick<T, Field & keyof T> ? T[Field] | undefined : T[Field];
};

/** The body that is sent: without the fields that are `undefined`. */
export function answer<T extends object>(fields: Complete<T>): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}
