/** Reads a setting with earlier secrets, which stay valid while they are replaced: comma-separated, newest first. */

export function readPrevious(text: string | undefined): string[] {
  return (text ?? "")
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
}
