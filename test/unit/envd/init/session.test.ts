import { describe, expect, test } from "vitest";
import { NO_SETTINGS, Session } from "../../../../envd/init/session.ts";
import { findUser, parsePasswd, Users } from "../../../../envd/system/users.ts";

const BASE = "root:x:0:0::/root:/bin/sh\n";

const PASSWD = `${BASE}user:x:1000:1000::/home/user:/bin/sh\nann:x:5:5::/ann:/bin/sh\n`;

function session(passwd = PASSWD, language?: string): Session {
  const users = new Users("/nonexistent");
  users.find = (name) => findUser(name, parsePasswd(passwd), []);
  return new Session(users, { path: "/bin:/opt/bin", language });
}

describe("whose request it is", () => {
  test("a request is the named user's, else the configured user's, else `user`'s, else root's", () => {
    const named = session();
    expect(named.user("ann").name).toBe("ann");
    expect(named.user(undefined).name).toBe("user");
    named.apply({ ...NO_SETTINGS, defaultUser: "ann" });
    expect(named.user("").name).toBe("ann");
    expect(session(BASE).user(undefined).name).toBe("root");
  });

  test("a configured user that does not exist is not replaced silently", () => {
    const broken = session();
    broken.apply({ ...NO_SETTINGS, defaultUser: "ghost" });
    expect(() => broken.user(undefined)).toThrow("invalid username: 'ghost'");
  });
});

describe("the environment of a command", () => {
  test("has only the base variables without /init", () => {
    const plain = session();
    expect(plain.environment(plain.user("ann"), {})).toEqual({
      PATH: "/bin:/opt/bin",
      SHELL: "/bin/sh",
      HOME: "/ann",
      USER: "ann",
      LOGNAME: "ann",
      E2B_SANDBOX: "true",
      SVC_SANDBOX: "true",
    });
  });

  test("has LANG of the image, unless /init or the request sets it, and none where the image has none", () => {
    const set = session(PASSWD, "C.UTF-8");
    expect(set.environment(set.user("ann"), {})).toMatchObject({ LANG: "C.UTF-8" });
    expect(set.environment(set.user("ann"), { LANG: "de_DE.UTF-8" })).toMatchObject({ LANG: "de_DE.UTF-8" });
    set.apply({ ...NO_SETTINGS, envVars: { LANG: "C" } });
    expect(set.environment(set.user("ann"), {})).toMatchObject({ LANG: "C" });
    const without = session(PASSWD, "");
    expect(without.environment(without.user("ann"), {})).not.toHaveProperty("LANG");
  });

  test("has SHELL of the user, unless the request sets it, and none of a user who does not log in or has no such file", () => {
    const shells = session(`${PASSWD}www:x:33:33::/var/www:/usr/sbin/nologin\nzed:x:9:9::/z:/opt/no/such/zsh\n`);
    const shellOf = (name: string, requested = {}) => shells.environment(shells.user(name), requested)["SHELL"];
    expect(shellOf("ann")).toBe("/bin/sh");
    expect(shellOf("ann", { SHELL: "/bin/other" })).toBe("/bin/other");
    for (const name of ["www", "zed", "65532"]) expect(shellOf(name), name).toBeUndefined();
  });

  test("takes the request's variables before those of /init, and the sandbox's identity before both", () => {
    const set = session();
    set.apply({
      ...NO_SETTINGS,
      sandboxId: "i1",
      templateId: "t1",
      envVars: { A: "init", B: "init", E2B_SANDBOX_ID: "forged" },
    });
    const environment = set.environment(set.user("ann"), { B: "request", PATH: "/mine" });
    expect(environment).toMatchObject({
      A: "init",
      B: "request",
      PATH: "/mine",
      E2B_SANDBOX_ID: "i1",
      SVC_TEMPLATE_ID: "t1",
    });
  });

  test("has the variables of the company's network unless the caller sets one of them, in either case", () => {
    const set = session();
    const networkVariables = { http_proxy: "node", HTTP_PROXY: "node", https_proxy: "node", HTTPS_PROXY: "node" };
    set.apply({ ...NO_SETTINGS, networkVariables, envVars: { HTTP_PROXY: "mine" } });
    const environment = set.environment(set.user("ann"), { https_proxy: "" });
    expect(environment).toMatchObject({ HTTP_PROXY: "mine", https_proxy: "" });
    expect(Object.keys(environment).filter((name) => /proxy/i.test(name))).toEqual(["HTTP_PROXY", "https_proxy"]);
    expect(set.globalVariables()).toMatchObject({ HTTP_PROXY: "mine", https_proxy: "node", HTTPS_PROXY: "node" });
    expect(set.globalVariables()).not.toHaveProperty("http_proxy");
  });

  test("is replaced by a second /init, not merged with the first", () => {
    const twice = session();
    twice.apply({ ...NO_SETTINGS, envVars: { A: "1" } });
    twice.apply({ ...NO_SETTINGS, envVars: { B: "2" } });
    expect(twice.globalVariables()).toEqual({ B: "2", E2B_SANDBOX: "true", SVC_SANDBOX: "true" });
  });
});

test("a path with a zero byte is refused", () => {
  const any = session();
  expect(() => any.path("a\0b", any.user("ann"))).toThrow("zero byte");
});
