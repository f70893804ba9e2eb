/** Takes secrets out of what is shown. In their place stands the variable that a program reads them from. Pure. */

/** A value that a program reads from its environment. */
export class FromEnvironment {
  readonly name: string;

  constructor(name: string) {
    // What a shell and the SDKs' languages take as a name.
    this.name = name
      .toUpperCase()
      .replaceAll(/[^A-Z0-9]/g, "_")
      .replace(/^(?=\d|$)/, "_");
  }
}

/** Fields that hold a secret, wherever they are. */
const FIELDS: Readonly<Record<string, string>> = { signatureSecret: "SIGNATURE_SECRET", password: "PROXY_PASSWORD" };
const SECRET_NAME = /key|token|secret|passw|credential|auth|cookie|private|_url$|_uri$|dsn/i;
const PLACEHOLDER = /\$\{(?:e2b|svc)\.[^{}]*\}/g;

/**
 * Whether the value of a header may be shown: its secret part is a placeholder, which names a secret and does not have it, and
 * the rest is the word of a scheme, such as `Bearer`.
 */
export function isOpenHeader(value: string): boolean {
  return (
    value === "" || (value.search(PLACEHOLDER) >= 0 && /^[A-Za-z]{0,10} ?$/.test(value.replaceAll(PLACEHOLDER, "")))
  );
}

/** The body of a request to this path, with a `FromEnvironment` for each secret. */
export function withoutSecrets(body: unknown, path: string): unknown {
  return walked(body, { names: /^\/secrets(\/|$)/.test(path) ? { ...FIELDS, value: "SECRET_VALUE" } : FIELDS });
}

interface Place {
  /** Fields that hold secrets here. */
  readonly names: Readonly<Record<string, string>>;
  /** The field whose entries these are. */
  readonly within?: string;
}

function walked(value: unknown, place: Place): unknown {
  if (Array.isArray(value)) return value.map((each: unknown) => walked(each, place));
  if (typeof value !== "object" || value === null || value instanceof FromEnvironment) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]: [string, unknown]) => [
      name,
      typeof each === "string" ? shown(name, each, place) : walked(each, { ...place, within: name }),
    ]),
  );
}

function shown(name: string, value: string, { names, within }: Place): string | FromEnvironment {
  if (within === "headers") return isOpenHeader(value) ? value : new FromEnvironment(name);
  if (within === "envVars") return SECRET_NAME.test(name) ? new FromEnvironment(name) : value;
  const field = Object.hasOwn(names, name) ? names[name] : undefined;
  return field === undefined ? value : new FromEnvironment(field);
}
