import { describe, expect, test } from "vitest";
import { findUser, parseGroup, parsePasswd } from "../../../../envd/system/users.ts";

const PASSWD = [
  "root:x:0:0:root:/root:/bin/bash",
  "user:x:1000:1001::/home/user:/bin/bash",
  "# comment:x:5:5::/:/bin/sh",
  "broken line",
  "negative:x:-1:0::/:/bin/sh",
  "homeless:x:2000:2000:::/bin/sh",
  "",
].join("\n");
const GROUP = ["root:x:0:", "user:x:1001:", "sudo:x:27:user,other", "docker:x:999:other, user", "bad"].join("\n");

describe("passwd and group", () => {
  test("malformed lines are skipped", () => {
    expect(parsePasswd(PASSWD).map(({ name }) => name)).toEqual(["root", "user", "homeless"]);
    expect(parseGroup(GROUP).map(({ name }) => name)).toEqual(["root", "user", "sudo", "docker"]);
  });

  test("a user without a home gets the root directory", () => {
    expect(parsePasswd(PASSWD).find(({ name }) => name === "homeless")?.home).toBe("/");
  });

  test("a user has its supplementary groups, and its primary one once", () => {
    expect(findUser("user", parsePasswd(PASSWD), parseGroup(GROUP))).toEqual({
      name: "user",
      uid: 1000,
      gid: 1001,
      home: "/home/user",
      shell: "/bin/bash",
      groups: [27],
    });
  });

  test("a user whose entry names no shell has that of the system, as in libc, and a mere number has none", () => {
    const users = parsePasswd("a:x:5:5::/\nb:x:6:6::/:\nc:x:7:7::/:/bin/zsh\r\n");
    expect(users.map(({ shell }) => shell)).toEqual(["/bin/sh", "/bin/sh", "/bin/zsh"]);
    expect(findUser("65532", users, [])).not.toHaveProperty("shell");
  });

  test("root exists in an image without any user database", () => {
    expect(findUser("root", [], [])).toEqual({ name: "root", uid: 0, gid: 0, home: "/root", groups: [] });
  });

  test("a number is a user: its entry where there is one, else itself with group 0", () => {
    expect(findUser("1000", parsePasswd(PASSWD), [])?.name).toBe("user");
    expect(findUser("65532", parsePasswd(PASSWD), [])).toMatchObject({ uid: 65532, gid: 0, home: "/" });
  });

  test.each(["nobody-here", "", "99999999999", "-1", "4294967296"])("%j is no user", (name) => {
    expect(findUser(name, parsePasswd(PASSWD), parseGroup(GROUP))).toBeUndefined();
  });
});
