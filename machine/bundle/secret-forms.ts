/** What a secret looks like: those that have a form of their own wherever they stand, and each way to write one that is known. Pure. */

export const GONE = "[redacted]";
/** A shorter value would take ordinary words with it. */
const LEAST = 6;
/** An encoded value has no end where its neighbours begin in the same byte: shorter ones would be found in other text. */
const LEAST_ENCODED = 12;
/** Characters at either end of base64 that depend on what is beside the value. */
const EDGE = 4;
/** A shorter value over two lines would be found in ordinary ones. */
const LEAST_BROKEN = 16;

/** What looks like a secret wherever it stands. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|$)/g, GONE],
  // The same in a line of JSON, whose line breaks are escaped, is taken by the form above.
  [/\b(?:svc|e2b)_[A-Za-z0-9]{20,}|\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}/g, GONE],
  [/\b(svcjoin1\.[0-9a-f]+\.[a-z0-9]+\.)[A-Za-z0-9_-]+/g, `$1${GONE}`],
  [/\bsk-[A-Za-z0-9_-]{16,}|\bwhsec_[A-Za-z0-9+/=_-]{16,}/g, GONE],
  [
    /\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bgl(?:pat|ptt|rt|dt|cbt|soat)-[A-Za-z0-9_-]{16,}/g,
    GONE,
  ],
  [/\b(?:xox[abeprs]|xapp)-[A-Za-z0-9-]{10,}/g, GONE],
  [/(\/services\/T[A-Z0-9]{6,}\/B[A-Z0-9]{6,}\/)[A-Za-z0-9]{16,}/g, `$1${GONE}`],
  [/\b(?:npm|hf)_[A-Za-z0-9]{30,}|\bdckr_pat_[A-Za-z0-9_-]{20,}|\bpypi-[A-Za-z0-9_-]{40,}/g, GONE],
  [/\bAIza[A-Za-z0-9_-]{35}|\bya29\.[A-Za-z0-9_-]{20,}|\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}/g, GONE],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, GONE],
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?/g, GONE],
  // Credentials in a URL, and in its query. A port is none.
  [/([a-z][a-z0-9+.-]*:\/\/)[^\s/@:"']*:(?!\d{1,5}\/)[^\s@"']*@/gi, `$1${GONE}@`],
  [/([a-z][a-z0-9+.-]*:\/\/)(?=[^\s/@:"']*\d)[^\s/@:"']{20,}@/gi, `$1${GONE}@`],
  [
    /([?&#](?:token|access_token|api[-_]?key|key|secret|password|auth|signature|sig|x-amz-signature|x-amz-credential|x-amz-security-token|code)=)[^\s&"'#]+/gi,
    `$1${GONE}`,
  ],
  [/\b((?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:digest|aws4-hmac-sha256)\s)[^\r\n]+/gi, `$1${GONE}`],
  [
    /\b((?:proxy-)?authorization["']?\s*[:=]\s*["']?)(?:(?:bearer|basic|digest|token)\s+|[a-z][a-z0-9-]*[ \t]+)?[^\s"',;}]+/gi,
    `$1${GONE}`,
  ],
  [/\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}/gi, `$1 ${GONE}`],
  // A cookie's value may be in quotes.
  [/\b((?:set-)?cookie["']?\s*[:=]\s*["']?)(?:[^\r\n"']|(?<==)"[^"\r\n]*")+/gi, `$1${GONE}`],
  [/(\blogin\s+\S+\s+password\s+|\bmachine\s+\S+\s+password\s+)\S+/g, `$1${GONE}`],
  // Options of one letter, whose meaning is the program's.
  [/(\b(?:curl|wget)\b[^\n]*?\s(?:-u|-U|--user|--proxy-user)[= ]?["']?[^\s:"']+:)[^\s"']+/g, `$1${GONE}`],
  [/(\bsshpass\s+-p\s*|\b(?:mysql|mysqldump|mariadb)\b[^\n]*?\s-p)[^\s"']+/g, `$1${GONE}`],
];

/** Docker and npm keep a name and a password in base64 under this name. */
const LOG_IN = /((?<![A-Za-z0-9])_?auth["']?\s*[:=]\s*["']?)([A-Za-z0-9+/_-]{6,}={0,2})/g;

/** Takes out what looks like a secret, wherever it stands. */
export function withoutForms(text: string): string {
  const left = FORMS.reduce((rest, [form, put]) => rest.replaceAll(form, put), text);
  return left.replaceAll(LOG_IN, (all, start: string, value: string) =>
    isLogIn("auth", value) ? `${start}${GONE}` : all,
  );
}

/** Whether it is a name and a password in base64, under the name that Docker and npm have for it. */
export const isLogIn = (name: string, value: unknown): boolean =>
  /^_?auth$/i.test(name) &&
  typeof value === "string" &&
  /^[!-~]+:[ -~]+$/.test(Buffer.from(value, "base64").toString());

/** @returns what takes these values out of a text: as they stand, encoded, and over two lines */
export function withoutValues(values: readonly string[]): (text: string) => string {
  const known = [...new Set(values.flatMap(formsOf))].filter((value) => value.length >= LEAST);
  const longestFirst = known.toSorted((a, b) => b.length - a.length);
  return (text) => {
    let left = text;
    // A log is taken string by string, and most of them are short.
    for (const value of longestFirst) {
      if (value.length <= left.length) left = left.replaceAll(value, GONE);
    }
    if (!left.includes("\n")) return left;
    const inOneLine = left.replaceAll(/\r?\n[ \t]*/g, "");
    for (const value of longestFirst) {
      if (value.length >= LEAST_BROKEN && inOneLine.includes(value)) left = left.replaceAll(brokenForm(value), GONE);
    }
    return left;
  };
}

/** A value with line breaks in it, as of what folds long lines. */
function brokenForm(value: string): RegExp {
  const characters = Array.from(value, (character) => character.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  return new RegExp(characters.join("(?:\\r?\\n[ \\t]*)?"), "g");
}

/** A value as it stands, in a URL, in JSON, in base64 wherever it begins there, and in hexadecimal digits. */
function formsOf(value: string): readonly string[] {
  if (value.length < LEAST) return [];
  const json = JSON.stringify(value).slice(1, -1);
  const base64 = ["", "x", "xx"].map((before) => Buffer.from(`${before}${value}`).toString("base64"));
  const inner = base64.map((one) => one.replace(/=+$/, "").slice(EDGE, -EDGE));
  const hex = Buffer.from(value).toString("hex");
  const encoded = [...inner, ...inner.map(inUrls), hex, hex.toUpperCase()];
  const whole = (base64[0] ?? "").replace(/=+$/, "");
  return [
    value,
    json,
    encodeURIComponent(value),
    whole,
    inUrls(whole),
    ...encoded.filter((one) => one.length >= LEAST_ENCODED),
  ];
}

const inUrls = (base64: string) => base64.replaceAll("+", "-").replaceAll("/", "_");
