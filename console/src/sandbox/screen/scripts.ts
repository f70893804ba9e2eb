/** What the page runs in a sandbox to show its screen, or to hand it over. Pure. */

/** The exit status of the scripts where the sandbox lacks the programs. */
export const NO_SCREEN = 3;
/** The screen of templates that are made of `desktop`. */
export const DISPLAY = ":0";

/** Prints a picture of the screen, with the pointer. */
export const TAKE_PICTURE = `
command -v scrot >/dev/null || exit ${NO_SCREEN}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
scrot --pointer "$work/screen.png" && cat "$work/screen.png"
`;

interface Places {
  /** Where noVNC is. */
  readonly page: string;
  /** Ports of the sandbox: of the server of the screen, which nobody outside reaches, and of noVNC's page. */
  readonly serverPort: number;
  readonly pagePort: number;
}

/** Other ports than those of `@e2b/desktop`, so that its stream goes on beside this one. */
export const PLACES: Places = { page: "/opt/noVNC", serverPort: 5910, pagePort: 6090 };

/** Ends what `handOver` has started, and whoever watches or has taken over is cut off. */
export const END = `
place=$HOME/.cache/svc-screen
for name in screen-server novnc_proxy; do
  process=$(cat "$place/$name.pid" 2>/dev/null) || continue
  rm -f "$place/$name.pid"
  # After a boot from the disk another process may have this number.
  tr '\\0' ' ' <"/proc/$process/cmdline" 2>/dev/null | grep -q "$name" || continue
  kill -TERM -- "-$process" 2>/dev/null
  # One that has ended may have a number until its parent asks.
  for try in $(seq 50); do grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$process/status" || break; sleep 0.1; done
done
`;

/**
 * Starts a server of the screen and noVNC's page, in place of those that it has started before, and prints two passwords, a line each:
 * with the first one somebody takes over, with the second one somebody watches only, which the server itself sees to. The passwords
 * are in no argument of a program, and on the disk until the server has read them.
 */
export function handOver({ page, serverPort, pagePort }: Places = PLACES): string {
  return `
command -v x11vnc >/dev/null && [ -x ${page}/utils/novnc_proxy ] || exit ${NO_SCREEN}
${END}
umask 077
mkdir -p "$place" && cd "$place" || exit 1
secret() { LC_ALL=C tr -dc 'a-hj-km-np-z2-9' </dev/urandom | head -c 8; }
takes=$(secret)
watches=$(secret)
printf '%s\\n' "$takes" __BEGIN_VIEWONLY__ "$watches" >passwords
# By another name, because @e2b/desktop looks for its own server by that of the program.
ln -sf "$(command -v x11vnc)" screen-server
setsid ./screen-server -norc -display "$DISPLAY" -rfbport ${serverPort} -localhost -forever -shared -wait 50 \\
  -passwdfile rm:passwords >server.log 2>&1 </dev/null &
echo $! >screen-server.pid
setsid ${page}/utils/novnc_proxy --vnc 127.0.0.1:${serverPort} --listen ${pagePort} --web ${page} >page.log 2>&1 </dev/null &
echo $! >novnc_proxy.pid
answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
for try in $(seq 100); do
  if answers ${serverPort} && answers ${pagePort}; then
    printf '%s\\n%s\\n' "$takes" "$watches"
    exit 0
  fi
  sleep 0.1
done
tail -n 5 server.log page.log >&2
exit 4
`;
}

export interface Passwords {
  readonly takes: string;
  readonly watches: string;
}

/** @throws {Error} what was printed is something else */
export function passwordsOf(printed: string): Passwords {
  const [, takes, watches] = /^([a-z2-9]{8})\n([a-z2-9]{8})\n$/.exec(printed) ?? [];
  if (takes === undefined || watches === undefined)
    throw new Error("the program that hands the screen over printed no passwords");
  return { takes, watches };
}
