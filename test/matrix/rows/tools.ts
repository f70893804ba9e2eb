/** What developers and their agents have open: servers that watch files, editors, multiplexers, transfers half way, debuggers. */

import { type Program, program } from "../program.ts";
import { BASH, JAVA } from "./languages.ts";

/** Prints the number in its text each time that it is started, and stays. The identity is that of what starts it again. */
const restarted = (n: number | string) => `console.log(process.ppid, ${n}); setInterval(() => undefined, 1_000_000);`;

/** Puts the next number into the file, and waits for the answer of what watches it. */
const changes = (file: string) => `numbers() { grep -aoE '[0-9]+ [0-9]+$' out | tail -n 1; }
n=$(($(numbers | cut -d ' ' -f 2) + 1))
echo "${restarted("$n")}" >${file}
until [ "$(numbers | cut -d ' ' -f 2)" = "$n" ]; do sleep 0.1; done
numbers`;

/** Serves a registry with one package, whose archive comes byte by byte and without an end: empty blocks of a compressed file. */
const SLOW_REGISTRY = `import http.server, json, time
class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        if not self.path.endswith(".tgz"):
            dist = {"tarball": "http://127.0.0.1:8241/endless.tgz"}
            body = json.dumps({"name": "endless", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "endless", "version": "1.0.0", "dist": dist}}}).encode()
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_header("content-length", "1000000")
        self.end_headers()
        self.wfile.write(b"\\x1f\\x8b\\x08\\0\\0\\0\\0\\0\\0\\x03")
        for n in range(900000):
            self.wfile.write(b"\\0\\0\\0\\xff\\xff"[n % 5 : n % 5 + 1])
            self.wfile.flush()
            with open("sent", "w") as sent: sent.write(str(n))
            time.sleep(0.1)
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 8241), Registry).serve_forever()
`;

/** Stands for ssh: what git sends arrives, and what it gets comes slowly. */
const SLOW_SSH = `#!/usr/bin/env python3
import os, subprocess, sys, time
served = subprocess.Popen(sys.argv[-1], shell=True, stdout=subprocess.PIPE)
n = 0
while True:
    part = os.read(served.stdout.fileno(), 64)
    if not part: break
    os.write(1, part)
    n += len(part)
    with open(os.environ["SENT"] + ".new", "w") as sent: sent.write(str(n))
    os.replace(os.environ["SENT"] + ".new", os.environ["SENT"])
    time.sleep(0.05)
`;

export const TOOLS: readonly Program[] = [
  program({
    name: "Node with --watch",
    files: { "server.cjs": `${restarted(0)}\n` },
    start: "counter node --watch server.cjs",
    ask: changes("server.cjs"),
  }),
  program({
    name: "tsx watch",
    files: { "server.ts": `${restarted(0)}\n` },
    packages: ["tsx"],
    start: "counter node node_modules/tsx/dist/cli.mjs watch --clear-screen=false server.ts",
    ask: changes("server.ts"),
  }),
  program({
    name: "vite",
    files: {
      "package.json": '{"type":"module"}\n',
      "index.html": "<script type=module src=/main.js></script>\n",
      "main.js": "export const n = 0;\n",
    },
    packages: ["vite"],
    start: `apart node node_modules/vite/bin/vite.js --host 127.0.0.1 --port 8242 --strictPort
tail -n 1 pids >vite.pid
reached curl -fsS http://127.0.0.1:8242/main.js`,
    ask: `served() { curl -fsS http://127.0.0.1:8242/main.js | grep -oE 'n = [0-9]+' | cut -d ' ' -f 3; }
n=$(($(served) + 1))
echo "export const n = $n;" >main.js
# Again and again, because it may read a file that is half written, and sees no change before its watch is ready.
until [ "$(served)" = "$n" ]; do sleep 0.3; touch main.js; done
kill -0 "$(cat vite.pid)" && echo "$(cat vite.pid) $n"`,
  }),
  program({
    name: "next",
    files: {
      "package.json": '{"private":true}\n',
      "pages/api/n.js": "export default (_request, answer) => answer.send('n = 0');\n",
    },
    morePackages: ["next", "react", "react-dom"],
    start: `apart env NEXT_TELEMETRY_DISABLED=1 node node_modules/next/dist/bin/next dev --hostname 127.0.0.1 --port 8244
tail -n 1 pids >next.pid
reached curl -fsS http://127.0.0.1:8244/api/n`,
    ask: `served() { curl -fsS http://127.0.0.1:8244/api/n | grep -oE 'n = [0-9]+' | cut -d ' ' -f 3; }
n=$(($(served) + 1))
echo "export default (_request, answer) => answer.send('n = $n');" >pages/api/n.js
until [ "$(served)" = "$n" ]; do sleep 0.3; touch pages/api/n.js; done
kill -0 "$(cat next.pid)" && echo "$(cat next.pid) $n"`,
  }),
  program({
    name: "Java with a debugger (jdb)",
    files: { "Count.java": JAVA },
    start: `counter java -agentlib:jdwp=transport=dt_socket,server=y,suspend=n,quiet=y,address=127.0.0.1:8243 Count.java
[ -p commands ] || mkfifo commands
setsid jdb -attach 127.0.0.1:8243 <>commands >>debugger 2>&1 &
echo $! | tee -a pids >jdb.pid
reached grep -q Initializing debugger`,
    ask: `bytes=$(wc -c <debugger)
echo threads 1<>commands
until [ "$(wc -c <debugger)" -gt "$bytes" ]; do sleep 0.1; done
kill -0 "$(cat jdb.pid)"
answer`,
  }),
  program({
    name: "npm install, half way",
    files: { "registry.py": SLOW_REGISTRY, "package.json": '{"dependencies":{"endless":"1.0.0"}}\n' },
    start: `rm -f sent
apart python3 registry.py
reached curl -fsS http://127.0.0.1:8241/endless
apart npm install --registry http://127.0.0.1:8241/ --cache "$PWD/cache" --no-audit --no-fund
tail -n 1 pids >npm.pid
reached test -s sent`,
    ask: `kill -0 "$(cat npm.pid)"
echo "$(cat npm.pid) $(cat sent)"`,
    counts: "time",
  }),
  program({
    name: "git clone, half way",
    files: { "slow-ssh": SLOW_SSH },
    start: `chmod +x slow-ssh
rm -rf clone sent
if [ ! -d source.git ]; then
  git init -q --bare source.git
  git init -q work
  head -c 4000000 /dev/urandom >work/bytes
  git -C work add bytes
  git -C work -c user.name=a -c user.email=a@example.org commit -q -m bytes
  git -C work push -q "$PWD/source.git" HEAD:refs/heads/main
fi
apart env GIT_SSH="$PWD/slow-ssh" GIT_SSH_VARIANT=simple SENT="$PWD/sent" git clone -q "ssh://there$PWD/source.git" clone
tail -n 1 pids >git.pid
reached test -s sent`,
    ask: `kill -0 "$(cat git.pid)"
echo "$(cat git.pid) $(cat sent)"`,
    counts: "time",
  }),
  program({
    name: "A build with make, half way",
    // Each file is compiled by a program of its own, and there are more of them than anybody waits for.
    files: { Makefile: "all: $(patsubst %,%.o,$(shell seq 100000))\n%.o:\n\techo 'int n$*;' | gcc -x c -c -o $@ -\n" },
    start: `rm -f ./*.o
apart make -s -j 2
tail -n 1 pids >make.pid
reached test -s 1.o`,
    ask: `kill -0 "$(cat make.pid)"
echo "$(cat make.pid) $(find . -name '*.o' | wc -l)"`,
    counts: "time",
  }),
  program({
    name: "vi in tmux",
    files: { note: "first\n" },
    start: `tmux -S "$PWD/socket" new-session -d -x 80 -y 24 vi -n -u NONE note
reached bash -c 'tmux -S socket capture-pane -p | grep -q first'`,
    ask: `n=$(wc -l <note)
tmux -S "$PWD/socket" send-keys Escape o more Escape :w Enter
until [ "$(wc -l <note)" -gt "$n" ]; do sleep 0.1; done
echo "$(tmux -S "$PWD/socket" display-message -p '#{pane_pid}') $(wc -l <note)"`,
  }),
  program({
    name: "GNU screen",
    files: { "count.sh": BASH },
    start: `export SCREENDIR=$PWD/screens
mkdir -p -m 700 "$SCREENDIR"
: >out
screen -wipe >>log 2>&1 || true
screen -dmS matrix bash -c 'bash count.sh >>out'
reached test -s out`,
    ask: `export SCREENDIR=$PWD/screens
n=$(wc -l <out)
screen -S matrix -p 0 -X stuff "$(printf '\\r')"
until [ "$(wc -l <out)" -gt "$n" ]; do sleep 0.1; done
tail -n 1 out`,
  }),
  program({
    name: "Emacs as a server",
    start: `emacs -Q --daemon="$PWD/socket" 2>>log
emacsclient -s "$PWD/socket" --eval '(setq counted 0)' >>log`,
    ask: `emacsclient -s "$PWD/socket" --eval '(format "%s %s" (emacs-pid) (setq counted (1+ counted)))' | tr -d '"'`,
  }),
  program({
    name: "ffmpeg",
    start: `apart ffmpeg -nostdin -v error -re -f lavfi -i testsrc=size=320x240 -c:v mpeg4 -f null -progress "file:$PWD/progress" -
tail -n 1 pids >ffmpeg.pid
reached grep -q '^frame=' progress`,
    ask: `kill -0 "$(cat ffmpeg.pid)"
echo "$(cat ffmpeg.pid) $(grep '^frame=' progress | tail -n 1 | tr -cd '0-9')"`,
    counts: "time",
  }),
  program({
    name: "A program under gdb",
    files: { "count.sh": BASH },
    start: `counter gdb -q -batch -ex run --args bash count.sh
reached grep -qE '^[0-9]+ [0-9]+$' out`,
    ask: "answer",
    refused: /being debugged/,
  }),
  program({
    name: "A program under strace",
    files: { "count.sh": BASH },
    start: "counter strace -f -o trace bash count.sh",
    ask: "answer",
    refused: /being debugged/,
  }),
];
