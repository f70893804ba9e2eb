/** Browsers and the desktop, in the templates that come with them up. */

import { type Program, program } from "../program.ts";

/** In the context that Chromium has itself: what a client makes beside it ends with the client. */
const CHROMIUM = `import { createRequire } from "node:module";
const { chromium } = createRequire("/home/user/")("playwright-core");
const browser = await chromium.connectOverCDP("http://localhost:9222");
const [context] = browser.contexts();
const address = "data:text/html,<title>matrix</title><script>var me = Math.floor(Math.random() * 1e9), n = 0</script>";
const found = context.pages().find((page) => page.url().startsWith("data:"));
const page = found ?? (await context.newPage());
if (found === undefined) await page.goto(address);
else console.log(await page.evaluate("me + ' ' + ++n"));
process.exit(0);
`;

/** A page that counts by itself, and tells a server in the sandbox, by requests and by a server's events. */
const TICKS = `import http.server, threading, time
PAGE = b"""<script>
const me = Math.floor(Math.random() * 1e9);
let n = 0, heard = 0;
new EventSource("/events").onmessage = () => heard++;
setInterval(() => { n++; if (heard > 0) fetch("/tick?" + me + "+" + n) }, 200);
</script>"""
class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        if self.path.startswith("/tick?"):
            with open("ticks", "a") as ticks: ticks.write(self.path[6:].replace("+", " ") + "\\n")
        self.send_header("content-type", "text/event-stream" if self.path == "/events" else "text/html")
        self.end_headers()
        if self.path == "/": self.wfile.write(PAGE)
        while self.path == "/events":
            self.wfile.write(b"data: x\\n\\n")
            self.wfile.flush()
            time.sleep(0.5)
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 8251), Site).serve_forever()
`;

export const SCREENS: readonly Program[] = [
  program({
    name: "Chromium, headless",
    template: "browser",
    files: { "ask.mjs": CHROMIUM },
    start: `reached curl -fsS http://localhost:9222/json/version
node ask.mjs`,
    ask: "node ask.mjs",
  }),
  program({
    name: "Firefox, headless",
    template: "browser",
    files: { "site.py": TICKS },
    start: `: >ticks
mkdir -p profile
apart python3 site.py
reached curl -fsS http://127.0.0.1:8251/
apart firefox-esr --headless --profile "$PWD/profile" http://127.0.0.1:8251/
reached test -s ticks`,
    ask: "tail -n 1 ticks",
    counts: "time",
  }),
  program({
    name: "Chromium on a desktop",
    template: "desktop",
    files: { "site.py": TICKS },
    start: `export DISPLAY=:0
reached pgrep -x xfdesktop
: >ticks
rm -rf profile
apart python3 site.py
reached curl -fsS http://127.0.0.1:8251/
apart chromium --user-data-dir="$PWD/profile" http://127.0.0.1:8251/
reached test -s ticks`,
    ask: "tail -n 1 ticks",
    counts: "time",
  }),
  program({
    name: "Xfce with an editor",
    template: "desktop",
    files: { "note.txt": "first\n" },
    start: `export DISPLAY=:0
reached pgrep -x xfdesktop
apart mousepad "$PWD/note.txt"
reached bash -c 'xdotool search --onlyvisible --name note.txt'`,
    ask: `export DISPLAY=:0
before=$(wc -c <note.txt)
xdotool search --onlyvisible --name note.txt windowactivate --sync
xdotool type --delay 20 more
xdotool key ctrl+s
until [ "$(wc -c <note.txt)" -gt "$before" ]; do sleep 0.1; done
echo "$(pgrep -x xfce4-session) $(wc -c <note.txt)"`,
    counts: "time",
  }),
];
