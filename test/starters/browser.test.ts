/** The template browser: its Chromium driven from outside through the sandbox's port and from inside, and copies of a session. */

import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { Sandbox } from "e2b";
import { type Browser, chromium } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { api, checkout, openPlatform } from "../support/platform/platform.ts";
import { killedAfterwards } from "../support/sandbox/sdk.ts";

const platform = openPlatform();
const LIVES = { timeoutMs: 900_000 };
const PORT = 9222;
const COPIES = 10;

/** A site with a log-in: a form sets a cookie, and then every page says who one is and how often it was asked. */
const SITE = `
from http.server import BaseHTTPRequestHandler, HTTPServer
from http.cookies import SimpleCookie
from urllib.parse import parse_qs
class Site(BaseHTTPRequestHandler):
    def who(self):
        found = SimpleCookie(self.headers.get("cookie", "")).get("who")
        return found.value if found else None
    def page(self, text, *fields):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        for name, value in fields: self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())
    def do_GET(self):
        who = self.who()
        if who is None: return self.page("<form method=post><input name=who><button>Log in</button></form>")
        self.page(f"<title>{who}</title><p id=who>{who}</p><input id=field><div style='height:5000px'></div>")
    def do_POST(self):
        who = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())["who"][0]
        self.page("<a href=/>in</a>", ("set-cookie", f"who={who}; Path=/"))
    def log_message(self, *_): pass
HTTPServer(("127.0.0.1", 8000), Site).serve_forever()
`;

interface Reached {
  readonly sandbox: Sandbox;
  readonly headers: Record<string, string>;
}

const reach = (sandbox: Sandbox): Reached => ({
  sandbox,
  headers: {
    "e2b-sandbox-id": sandbox.sandboxId,
    "e2b-sandbox-port": String(PORT),
    ...(sandbox.trafficAccessToken === undefined ? {} : { "e2b-traffic-access-token": sandbox.trafficAccessToken }),
  },
});

async function driven({ headers }: Reached): Promise<Browser> {
  const browser = await chromium.connectOverCDP(platform.sandboxUrl, { headers });
  onTestFinished(() => browser.close());
  return browser;
}

test("Chromium is driven from outside, with the sandbox's token where its traffic is not public", async () => {
  const began = performance.now();
  const sandbox = killedAfterwards(
    await Sandbox.create("browser", { ...LIVES, network: { allowPublicTraffic: false } }),
  );
  const { headers } = reach(sandbox);
  const browser = await driven({ sandbox, headers });
  console.log(`a driven browser after ${Math.round(performance.now() - began)} ms`);
  const page = await (await browser.newContext()).newPage();
  await page.setContent("<title>from outside</title>");
  expect(await page.title()).toBe("from outside");
  expect((await page.screenshot()).length).toBeGreaterThan(1_000);
  const { "e2b-traffic-access-token": _token, ...without } = headers;
  expect((await fetch(`${platform.sandboxUrl}/json/version`, { headers: without })).status).toBe(403);
  // By its own host name, as users have it; the name decides where the socket leads.
  const own = `${PORT}-${sandbox.sandboxId}.localhost:${new URL(platform.sandboxUrl).port}`;
  const answer = await fetch(`${platform.sandboxUrl}/json/version`, { headers: { ...headers, host: own } });
  const version = (await answer.json()) as { Browser: string; webSocketDebuggerUrl: string };
  expect(version.Browser).toMatch(/Chrome\/\d+/);
});

test("Playwright drives both programs from inside, and Firefox takes a picture of a page", async () => {
  const sandbox = killedAfterwards(await Sandbox.create("browser", LIVES));
  const program = `
    import { chromium } from "playwright-core";
    for (const options of [{ channel: "chrome" }, { executablePath: "/usr/bin/chromium" }]) {
      const browser = await chromium.launch(options);
      const page = await browser.newPage();
      await page.setContent("<title>inside</title>");
      console.log(await page.title());
      await browser.close();
    }`;
  await sandbox.files.write("inside.mjs", program);
  expect((await sandbox.commands.run("node inside.mjs", { timeoutMs: 120_000 })).stdout).toBe("inside\ninside\n");
  await sandbox.files.write("page.html", "<h1>hello</h1>");
  await sandbox.commands.run("firefox-esr --headless --screenshot ~/shot.png file:///home/user/page.html", {
    timeoutMs: 120_000,
  });
  expect((await sandbox.commands.run("file shot.png")).stdout).toContain("PNG image data");
});

test("a page in the browser gets nothing of the DevTools of its own browser, by whatever name it asks them", async () => {
  const sandbox = killedAfterwards(await Sandbox.create("browser", LIVES));
  const run = async (command: string) => (await sandbox.commands.run(command)).stdout;
  const about = await run("curl -fsS http://localhost:9222/json/version");
  const { webSocketDebuggerUrl } = JSON.parse(about) as { webSocketDebuggerUrl: string };
  expect(webSocketDebuggerUrl).toMatch(/^ws:\/\/localhost:9222\/devtools\/browser\//);
  await sandbox.files.write("site/index.html", "<title>a page</title>");
  const serve = "exec python3 -m http.server 8000 --bind 127.0.0.1 --directory site >served 2>&1";
  await (await sandbox.commands.run(serve, { background: true, timeoutMs: 0 })).disconnect();
  const browser = await driven(reach(sandbox));
  const page = await (await browser.newContext()).newPage();
  const visit = () => page.goto("http://127.0.0.1:8000/").then(() => "there", String);
  await expect.poll(visit, { timeout: 30_000 }).toBe("there");
  const asked = await page.evaluate(`(async () => {
    const said = (asking) => asking.then((answer) => answer.text()).then(() => "answered", () => "refused");
    const socket = new WebSocket(${JSON.stringify(webSocketDebuggerUrl)});
    // Before anything is waited for, so that it misses no event.
    const opened = new Promise((resolve) => {
      socket.onopen = () => resolve("answered");
      socket.onerror = () => resolve("refused");
    });
    return [
      await said(fetch("http://localhost:9222/json/version")),
      await said(fetch("http://localhost:9222/json/new?about:blank", { method: "PUT" })),
      await opened,
    ];
  })()`);
  expect(asked).toEqual(["refused", "refused", "refused"]);
  // What such a page sends, whose name somebody lets lead here: there the browser's own rules would not hold.
  const status =
    "curl -s -o /dev/null -w '%{http_code}' -H 'Host: rebind.test:9222' http://127.0.0.1:9222/json/version";
  expect(await run(status)).toBe("403");
});

test("Chromium's own sandbox, by namespaces, cannot be made in a sandbox of the platform, and it says so", async () => {
  const sandbox = killedAfterwards(await Sandbox.create("browser", LIVES));
  const start =
    "timeout 60 /usr/lib/chromium/chromium --headless=new --disable-gpu --user-data-dir=/tmp/own --dump-dom about:blank";
  const { stdout } = await sandbox.commands.run(`${start} 2>&1; echo "ended with $?"`, { timeoutMs: 90_000 });
  expect(stdout).toMatch(/no usable sandbox|failed to move to new namespace/i);
  expect(stdout).not.toMatch(/^ended with (0|124)$/m);
});

test("ten copies of a browser that is logged in have its cookies, fields and scroll, and each goes its own way", async () => {
  const sandbox = killedAfterwards(await Sandbox.create("browser", LIVES));
  await sandbox.files.write("site.py", SITE);
  await (await sandbox.commands.run("python3 site.py", { background: true, timeoutMs: 0 })).disconnect();
  const browser = await driven(reach(sandbox));
  const [context] = browser.contexts();
  if (context === undefined) throw new Error("Chromium has no usual context");
  // Of Chromium's own context: what a client makes beside it ends with the client.
  const page = await context.newPage();
  const visit = () => page.goto("http://127.0.0.1:8000/").then(() => "there", String);
  await expect.poll(visit, { timeout: 30_000 }).toBe("there");
  await page.fill("input", "alice");
  await page.click("button");
  await page.click("a");
  await page.fill("#field", "half of a sentence");
  await page.evaluate("scrollTo(0, 1234)");
  // One client at a time: the copies' clients come after it.
  await browser.close();

  const began = performance.now();
  const copies = await sandbox.fork({ count: COPIES, timeoutMs: 600_000, requestTimeoutMs: 600_000 });
  console.log(`${COPIES} forks of a logged-in browser took ${Math.round(performance.now() - began)} ms`);
  for (const copy of copies) {
    if (!(copy instanceof Sandbox)) throw copy;
    killedAfterwards(copy);
  }
  for (const [index, copy] of [...(copies as Sandbox[]), sandbox].entries()) {
    const own = await driven(reach(copy));
    const found = own
      .contexts()
      .flatMap((one) => one.pages())
      .find((one) => one.url().includes(":8000"));
    if (found === undefined) throw new Error("the page is not there");
    expect(await found.textContent("#who")).toBe("alice");
    expect(await found.inputValue("#field")).toBe("half of a sentence");
    expect(await found.evaluate("Math.round(scrollY)")).toBe(1234);
    await found.context().addCookies([{ name: "who", value: `copy-${index}`, url: "http://127.0.0.1:8000/" }]);
    await found.reload();
    expect(await found.title()).toBe(`copy-${index}`);
  }
});

test("a browser is paused, goes on, and is rewound to before a click", async () => {
  const sandbox = killedAfterwards(await Sandbox.create("browser", LIVES));
  const shown = async () => {
    const browser = await driven(reach(sandbox));
    const pages = browser.contexts().flatMap((one) => one.pages());
    return { browser, page: pages.find((one) => one.url().startsWith("data:")), context: browser.contexts()[0] };
  };
  const first = await shown();
  const page = await first.context?.newPage();
  await page?.goto("data:text/html,<button onclick='this.textContent=`clicked`'>fresh</button>");
  await first.browser.close();
  const paused = performance.now();
  await sandbox.pause();
  console.log(`pause of a browser ${Math.round(performance.now() - paused)} ms`);
  await Sandbox.connect(sandbox.sandboxId, LIVES);
  const { snapshotId } = await sandbox.createSnapshot();
  onTestFinished(async () => {
    await Sandbox.deleteSnapshot(snapshotId);
  });
  const clicked = await shown();
  await clicked.page?.click("button");
  expect(await clicked.page?.textContent("button")).toBe("clicked");
  await clicked.browser.close();
  const answer = await api(platform, "POST", `/sandboxes/${sandbox.sandboxId}/rewind`, {
    body: { snapshotID: snapshotId },
  });
  expect(answer.status, answer.text).toBeLessThan(300);
  const rewound = await shown();
  expect(await rewound.page?.textContent("button")).toBe("fresh");
});

test("the program of the documentation tries each action from one state of a browser", async () => {
  const page = await readFile(`${checkout}docs/using.md`, "utf8");
  const program = /### Explore actions from one state\n[^]*?```js\n([^]*?)```/.exec(page)?.[1] ?? "";
  // Beside the tests, where the SDK is found.
  const file = `${checkout}test/starters/actions-${process.pid}.mjs`;
  await writeFile(file, program);
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [file]);
    const lines = stdout.trim().split("\n");
    expect(lines).toHaveLength(10);
    expect(lines[0]).toBe("Buy: 1 in the cart");
    expect(lines.at(-1)).toBe("Log out: nobody");
    // A copy that was not made, or was not driven, has another text there.
    expect(program.match(/^ {2}(\w+|"Log out"): "[^"]+",$/gm)?.map((line) => line.replaceAll(/^ +|[",]/g, ""))).toEqual(
      lines,
    );
  } finally {
    await rm(file);
  }
});
