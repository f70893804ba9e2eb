/** Which servers a PostgreSQL URL names. */

import { expect, test } from "vitest";
import { urlsOfHosts } from "../../../../orchestrator/store/postgres/hosts.ts";

test.each([
  ["postgresql://db.internal/svc", ["postgresql://db.internal/svc"]],
  ["postgresql://me:p%40ss@db:5433/svc?sslmode=require", ["postgresql://me:p%40ss@db:5433/svc?sslmode=require"]],
  ["postgresql://me@localhost/svc?host=%2Frun%2Fa,b", ["postgresql://me@localhost/svc?host=%2Frun%2Fa,b"]],
  ["postgresql://me:a,b@db/svc", ["postgresql://me:a,b@db/svc"]],
  [
    "postgres://me:p,w@one:5432,[::1]:5433/svc?sslmode=require",
    ["postgres://me:p,w@one:5432/svc?sslmode=require", "postgres://me:p,w@[::1]:5433/svc?sslmode=require"],
  ],
  ["postgresql://one,two,three", ["postgresql://one", "postgresql://two", "postgresql://three"]],
])("the servers of %s are %j", (url, expected) => {
  expect(urlsOfHosts(url)).toEqual(expected);
});

test.each(["postgresql://one,/svc", "postgresql://,two/svc", "postgresql://one,:5433/svc"])(
  "%s is refused, because one of its servers has no name",
  (url) => {
    expect(() => urlsOfHosts(url)).toThrow("of which one has no name");
  },
);

test("the refusal of a list of servers does not tell the password", () => {
  expect(() => urlsOfHosts("postgresql://me:secret@one,/svc")).not.toThrow("secret");
});
