/** Settings of the agent's blob store, where snapshots outlive their node. */

import { Type } from "typebox";

/** `s3://BUCKET` or `s3://BUCKET/PREFIX`. */
const S3 = "s3://[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*";

export const blobSettings = {
  blobStore: Type.Optional(
    Type.String({
      pattern: `^(/.*|${S3})$`,
      maxLength: 4096,
      description:
        "Where snapshots are stored beyond this node: a directory that nodes share (mounted, with room, and empty at first), or s3://BUCKET[/PREFIX]. Every node of a platform has the same one. Default: nowhere",
    }),
  ),
  blobStoreUrl: Type.Optional(
    Type.String({
      pattern: "^https?://[^/@]+$",
      maxLength: 1024,
      description: "Address of the S3-compatible service of SVC_BLOB_STORE: https://HOST[:PORT]",
    }),
  ),
  blobStoreRegion: Type.String({
    default: "us-east-1",
    pattern: "^[A-Za-z0-9-]{1,64}$",
    description: "Region that requests to the S3-compatible service are signed for",
  }),
  blobStoreAccessKey: Type.Optional(
    Type.String({ minLength: 1, maxLength: 256, description: "Name of the key that SVC_BLOB_STORE_SECRET belongs to" }),
  ),
  blobStoreSecret: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 1024,
      description: "Secret that signs requests to the S3-compatible service",
    }),
  ),
  blobKey: Type.Optional(
    Type.String({
      minLength: 32,
      maxLength: 1024,
      description:
        "Secret that encrypts what goes to the blob store, the same on every node; whoever loses it loses what is stored. Default: not encrypted",
    }),
  ),
  blobKeyPrevious: Type.Optional(
    Type.String({
      maxLength: 16_384,
      description: "Earlier secrets of that kind, which still decrypt: comma-separated, newest first",
    }),
  ),
  blobStorePaused: Type.Boolean({
    default: false,
    description: "Paused sandboxes go to the blob store too; named snapshots always do",
  }),
};
