/**
 * The object that says whose a store is. Garbage is what this platform's database does not name, so a collector in a store of
 * another platform would delete all of it; and an empty directory where a share should be mounted is not the store either.
 */

import { type Static, Type } from "typebox";
import { Compile } from "typebox/compile";
import { BlobError, isFault } from "../content/blob-error.ts";
import { ALL_BLOBS } from "../content/refs.ts";
import type { BlobStore } from "./store.ts";

const CLAIM_KEY = "store";
const FORMAT = 1;

const Claim = Type.Object({
  format: Type.Integer(),
  /** Id of the platform. */
  owner: Type.String({ minLength: 1 }),
});
type Claim = Static<typeof Claim>;

const valid = Compile(Claim);

/**
 * Resolves when the store is the owner's. A store with nothing in it becomes the owner's.
 * @param usedBefore the owner has blobs in this store, so an empty one is not it
 * @throws {BlobError} foreign, and those of the store
 */
export async function claimStore(
  store: BlobStore,
  { owner, usedBefore }: { readonly owner: string; readonly usedBefore: boolean },
  signal: AbortSignal,
): Promise<void> {
  const found = await readClaim(store, signal);
  if (found === undefined && usedBefore)
    throw new BlobError("foreign", `${store.name} is empty, and was not before: is its share mounted?`);
  const claim = found ?? (await writeClaim(store, owner, signal));
  if (claim?.owner !== owner)
    throw new BlobError("foreign", `${store.name} belongs to another platform, ${claim?.owner ?? "which left again"}`);
}

async function writeClaim(store: BlobStore, owner: string, signal: AbortSignal): Promise<Claim | undefined> {
  const { found } = await store.list(ALL_BLOBS, "", signal);
  if (found.length > 0)
    throw new BlobError("foreign", `${store.name} holds blobs, and no object that says which platform they are of`);
  const own: Claim = { format: FORMAT, owner };
  await store.put(CLAIM_KEY, Buffer.from(JSON.stringify(own)), signal);
  // Another platform may have been first.
  return readClaim(store, signal);
}

async function readClaim(store: BlobStore, signal: AbortSignal): Promise<Claim | undefined> {
  let bytes: Buffer;
  try {
    bytes = await store.get(CLAIM_KEY, signal);
  } catch (error) {
    if (isFault(error, "missing")) return undefined;
    throw error;
  }
  const value = parsed(bytes.toString("utf8"));
  if (!valid.Check(value))
    throw new BlobError("foreign", `${store.name} does not say whose it is in a way that is understood`);
  if (value.format !== FORMAT)
    throw new BlobError("foreign", `${store.name} has format ${value.format}, and this version knows ${FORMAT}`);
  return value;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
