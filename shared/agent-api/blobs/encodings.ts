/** How programs of different versions agree on the packing of blobs: each names what it reads, and nobody writes anything else for it. Pure. */

/** What this version reads, in the words of a node's report and of a request to another node. */
export const BLOB_ENCODINGS = "deflate, zstd";

/** The entry of a node's report, among the details of its capabilities, which an older orchestrator takes as they are. */
export const ENCODINGS_DETAIL = "blobEncodings";

/** The header of a request for a blob; another node that does not know it sends deflate. */
export const ENCODINGS_HEADER = "svc-blob-encodings";

/** @param encodings absent: an older agent, which reads deflate alone */
export function readsZstd(encodings: string | readonly string[] | undefined): boolean {
  const named = typeof encodings === "string" ? encodings : (encodings ?? []).join();
  return named.split(",").some((one) => one.trim() === "zstd");
}
