/** Bodies of answers of which no field is forgotten: a field that may be absent is written down as `undefined`. Pure. */

/** Every field of `T`, the optional ones too: a field that is added to the schema does not compile until it is filled. */
export type Complete<T> = {
  readonly [Field in keyof Required<T>]: object extends Pick<T, Field & keyof T> ? T[Field] | undefined : T[Field];
};

/** The body that is sent: without the fields that are `undefined`. */
export function answer<T extends object>(fields: Complete<T>): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}
