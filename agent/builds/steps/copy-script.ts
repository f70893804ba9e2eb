/** The parts of a COPY step that run inside the container, and how its source is read. */

/**
 * Unpacks the archive with the image's own tar, as root: its first argument is the directory with `archive.tar`. What comes out
 * is put into its place by `envd/steps/copy.ts`.
 */
export const UNPACK_SCRIPT = `set -e
command -v tar >/dev/null 2>&1 || { echo "the image has no tar, which COPY needs" >&2; exit 1; }
mkdir "$1/files"
tar -xpf "$1/archive.tar" -C "$1/files"
rm -f "$1/archive.tar"`;

/** Removes the directory of a COPY step, also after a failure. */
export const REMOVE_SCRIPT = `rm -rf "$1"`;

/** Splits a source at its first wildcard. Pure. */
export function splitSource(source: string): { readonly from: string; readonly wild: boolean } {
  const parts = source.split("/").filter((part) => part !== "" && part !== ".");
  const wildcard = parts.findIndex((part) => /[*?[\]{}!]/.test(part));
  const kept = wildcard < 0 ? parts : parts.slice(0, wildcard);
  return { from: kept.length === 0 ? "." : kept.join("/"), wild: wildcard >= 0 };
}
