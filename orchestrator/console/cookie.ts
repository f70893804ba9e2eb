/** The console's cookies: opaque, for this host alone, and out of reach of scripts. Pure. */

export interface Place {
  readonly isTls: boolean;
  /** `name:port`, because browsers send a cookie to every port of a host. */
  readonly host: string;
}

/** `login`: of a browser that is logging in at a provider, from whose pages it must come back with it. */
type Purpose = "session" | "login";

const FORMS = { session: /^[\w-]{43}$/, login: /^[\w.-]{1,256}$/ } as const;

function cookieName({ isTls, host }: Place, purpose: Purpose): string {
  const name = purpose === "session" ? "svc_console" : "svc_console_login";
  return isTls ? `__Host-${name}` : `${name}_${/:(\d+)$/.exec(host)?.[1] ?? "80"}`;
}

/** @param maxAgeSeconds 0 deletes the cookie */
export function cookieHeader(place: Place, value: string, maxAgeSeconds: number, purpose: Purpose = "session"): string {
  const where = place.isTls ? "Path=/; Secure" : "Path=/console";
  const sites = purpose === "session" ? "Strict" : "Lax";
  return `${cookieName(place, purpose)}=${value}; ${where}; HttpOnly; SameSite=${sites}; Max-Age=${maxAgeSeconds}`;
}

/** Undefined where there is none, and where there are several: one of them may be another host's. */
export function readCookie(place: Place, header: string | undefined, purpose: Purpose = "session"): string | undefined {
  const start = `${cookieName(place, purpose)}=`;
  const given = (header ?? "").split(";").flatMap((pair) => {
    const text = pair.trim();
    return text.startsWith(start) ? [text.slice(start.length)] : [];
  });
  const [value] = given;
  return given.length === 1 && value !== undefined && FORMS[purpose].test(value) ? value : undefined;
}
