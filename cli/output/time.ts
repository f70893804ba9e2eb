/** Times and sizes for people, and durations as people write them. Pure. */

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Seconds of `90`, `90s`, `5m`, `1h30m`, `2d`; undefined: it is none of these. */
export function secondsOf(text: string): number | undefined {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  if (!/^(?:\d{1,10}[smhd])+$/.test(text)) return undefined;
  return [...text.matchAll(/(\d+)([smhd])/g)].reduce(
    (sum, [, count, unit = "s"]) => sum + Number(count) * (UNITS[unit] ?? 1),
    0,
  );
}

/** As kubectl shows ages: `45s`, `3m12s`, `5h`, `3d`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`;
  if (hours < 48) return `${hours}h`;
  return `${Math.floor(hours / 24)}d`;
}

/** Since a time of the API. */
export function age(time: string | null | undefined, now = Date.now()): string {
  const at = time === null || time === undefined ? Number.NaN : Date.parse(time);
  return Number.isNaN(at) ? "-" : duration(now - at);
}

/** Until a time of the API; `-` where it has passed. */
export function until(time: string | null | undefined, now = Date.now()): string {
  const at = time === null || time === undefined ? Number.NaN : Date.parse(time);
  return Number.isNaN(at) || at <= now ? "-" : duration(at - now);
}

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) return "-";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)}${units[unit]}`;
}
