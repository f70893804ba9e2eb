/** Times, sizes and names as people read them. Pure. */

export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${units[unit] ?? ""}`;
}

export function mebibytes(count: number): string {
  return bytes(count * 1024 * 1024);
}

// Made once: making a format costs more than a row of a table otherwise does.
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "short" });

/** The time on this clock, with the day where it is another one. */
export function time(text: string | undefined | null, now: number = Date.now()): string {
  if (text === undefined || text === null) return "–";
  const at = new Date(text);
  const isToday = at.toDateString() === new Date(now).toDateString();
  return isToday ? clock.format(at) : `${day.format(at)} ${clock.format(at)}`;
}

/** How long between two times: `3 m 20 s`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${seconds % 60} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} m`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
}

/** The last word of an event's type. */
export function eventName(type: string): string {
  return type.replace("sandbox.lifecycle.", "");
}

/** Pairs of an object in one line, for people. */
export function pairs(object: object | null | undefined): string {
  return Object.entries(object ?? {})
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("  ");
}
