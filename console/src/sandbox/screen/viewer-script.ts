/** The program that the page runs in a sandbox to show its screen live. Pure. */

import { NO_SCREEN } from "./scripts.ts";

/** A page from which nothing has come for so long is gone: it gives a sign of life far more often. */
export const SILENCE_S = 90;

/**
 * Passes on between its own input and output and a socket, which x11vnc takes for the connection of one client: nothing listens, and no
 * password is needed. Ends with the page and with the server; what that has said of its end is printed as an error.
 */
const RELAY = `
import os, select, signal, socket, subprocess, sys, tempfile, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
ours, servers = socket.socketpair()
with tempfile.TemporaryDirectory() as place:
    # By another name, because @e2b/desktop looks for its own server by that of the program.
    name, log = os.path.join(place, "screen-viewer"), os.path.join(place, "log")
    os.symlink(sys.argv[1], name)
    server = subprocess.Popen([name, *sys.argv[2:], "-o", log], stdin=servers, stdout=servers, stderr=subprocess.DEVNULL)
    servers.close()
    try:
        heard = time.monotonic()
        while time.monotonic() - heard < ${SILENCE_S}:
            ready = select.select([0, ours], [], [], 5)[0]
            if 0 in ready:
                heard = time.monotonic()
                came = os.read(0, 65536)
                if not came: break
                ours.sendall(came)
            if ours in ready:
                left = ours.recv(65536)
                if not left: break
                while left: left = left[os.write(1, left):]
    except (BrokenPipeError, ConnectionResetError): pass
    finally:
        ours.close()
        try: server.wait(5)
        except subprocess.TimeoutExpired: server.kill()
    try: sys.stderr.write(open(log, errors="replace").read()[-1000:])
    except OSError: pass
    sys.exit(4)
`;

/**
 * Shows the screen to the page that reads its output. Who only watches has a server that takes neither keys nor the mouse; keys that
 * somebody holds who leaves a screen are let go by the server.
 */
export function viewer(takesOver: boolean): string {
  return `
server=$(command -v x11vnc) && command -v python3 >/dev/null || exit ${NO_SCREEN}
exec python3 -c '${RELAY}' "$server" -inetd -display "$DISPLAY" -norc -nopw -nosel -nobell -wait 30 ${takesOver ? "-clear_keys" : "-viewonly"}
`;
}
