/** The console's cookie: opaque, for this host alone, and out of reach of scripts. Pure. */

interface Place {
  readonly isTls: boolean;
  /** `name:port`, because browsers send a cookie to every port of a host. */
  readonly host: string;
}

function cookieName({ isTls, host }: Place): string {
  return isTls ? "__Host-svc_console" : `svc_console_${/:(\d+)$/.exec(host)?.[1] ?? "80"}`;
}

/** @param maxAgeSeconds 0 deletes the cookie */
export function cookieHeader(place: Place, value: string, maxAgeSeconds: number): string {
  const where = place.isTls ? "Path=/; Secure" : "Path=/console";
  return `${cookieName(place)}=${value}; ${where}; HttpOnly; SameSite=Strict; Max-Age=${maxAgeSeconds}`;
}

/** Undefined where there is none, and where there are several: one of them may be another host's. */
export function readCookie(place: Place, header: string | undefined): string | undefined {
  const start = `${cookieName(place)}=`;
  const given = (header ?? "").split(";").flatMap((pair) => {
    const text = pair.trim();
    return text.startsWith(start) ? [text.slice(start.length)] : [];
  });
  const [value] = given;
  return given.length === 1 && value !== undefined && /^[\w-]{43}$/.test(value) ? value : undefined;
}
