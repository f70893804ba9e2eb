import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readAgentConfig, readBlobPlace } from "../../../../agent/config.ts";

const S3 = {
  SVC_BLOB_STORE: "s3://bucket/some/folder",
  SVC_BLOB_STORE_URL: "https://s3.example.test:9000",
  SVC_BLOB_STORE_ACCESS_KEY: "name",
  SVC_BLOB_STORE_SECRET: "secret",
};

const placeOf = (environment: NodeJS.ProcessEnv) => readBlobPlace(readAgentConfig(environment));

test("without a setting snapshots stay on their node", () => {
  expect(placeOf({})).toBeUndefined();
});

test("a directory is a store", () => {
  expect(placeOf({ SVC_BLOB_STORE: "/mnt/shared" })).toEqual({ is: "directory", directory: "/mnt/shared" });
});

test("a bucket of a service is a store, with or without a prefix, and its secret may be in a file", () => {
  expect(placeOf(S3)).toEqual({
    is: "s3",
    at: {
      endpoint: "https://s3.example.test:9000",
      bucket: "bucket",
      prefix: "some/folder",
      region: "us-east-1",
    },
    secrets: { accessKeyId: "name", secretAccessKey: "secret" },
  });
  const directory = mkdtempSync(join(tmpdir(), "svc-place-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, "secret");
  writeFileSync(file, "of the file\n");
  const { SVC_BLOB_STORE_SECRET: _, ...rest } = S3;
  expect(placeOf({ ...rest, SVC_BLOB_STORE: "s3://bucket", SVC_BLOB_STORE_SECRET_FILE: file })).toMatchObject({
    at: { prefix: "" },
    secrets: { secretAccessKey: "of the file" },
  });
});

test.each([
  {
    given: { SVC_BLOB_STORE: "s3://bucket", SVC_BLOB_STORE_ACCESS_KEY: "name" },
    says: "SVC_BLOB_STORE_URL is required with SVC_BLOB_STORE s3://bucket; SVC_BLOB_STORE_SECRET is required",
  },
  {
    given: { SVC_BLOB_STORE: "/mnt/shared", SVC_BLOB_STORE_SECRET: "secret" },
    says: "SVC_BLOB_STORE_SECRET is for a service of S3, and SVC_BLOB_STORE names none (s3://BUCKET)",
  },
  {
    given: { ...S3, SVC_BLOB_STORE_URL: "http://192.0.2.7:9000" },
    says: "SVC_BLOB_STORE_URL http://192.0.2.7:9000 would send what sandboxes hold to another machine in clear",
  },
  { given: { SVC_BLOB_STORE: "shared" }, says: "SVC_BLOB_STORE must match pattern" },
  { given: { SVC_BLOB_STORE: "s3://bucket/../other" }, says: "SVC_BLOB_STORE must match pattern" },
  { given: { ...S3, SVC_BLOB_STORE_URL: "https://host/path" }, says: "SVC_BLOB_STORE_URL must match pattern" },
  { given: { SVC_BLOB_KEY: "short" }, says: "SVC_BLOB_KEY must not have fewer than 32 characters" },
])("settings that make no store are refused (%o)", ({ given, says }) => {
  expect(() => readAgentConfig(given as NodeJS.ProcessEnv)).toThrow(says);
});

test("a service in clear on another machine is a store for what is encrypted", () => {
  const given = { ...S3, SVC_BLOB_STORE_URL: "http://192.0.2.7:9000", SVC_BLOB_KEY: "k".repeat(32) };
  expect(placeOf(given)).toMatchObject({ is: "s3" });
});
