import { describe, expect, test } from "vitest";
import { checkPostgresVersion } from "../../../../orchestrator/store/postgres/version.ts";

describe("a PostgreSQL server's version", () => {
  test.each([150_000, 150_004, 160_010, 180_001])("%i is new enough", (version) => {
    expect(() => checkPostgresVersion(version)).not.toThrow();
  });

  test.each([
    [149_999, "14.9999"],
    [140_009, "14.9"],
    [100_023, "10.23"],
    [90_624, "9.6.24"],
  ])("%i is refused as %s, and the error says what is needed", (version, name) => {
    expect(() => checkPostgresVersion(version)).toThrow(
      `PostgreSQL ${name} is too old: DATABASE_URL needs version 15 or newer`,
    );
  });
});
