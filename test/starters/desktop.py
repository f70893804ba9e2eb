"""Every method of Python's package e2b-desktop, on the template desktop. Prints what it has found, as JSON."""

import json
import time

from e2b_desktop import Sandbox

PNG = b"\x89PNG"


def until(look, wanted, seconds=60):
    """The first answer of `look` that `wanted` takes."""
    end = time.monotonic() + seconds
    while True:
        try:
            found = look()
        except Exception as error:  # a window that is not there yet
            found = error
        if not isinstance(found, Exception) and wanted(found):
            return found
        if time.monotonic() > end:
            raise AssertionError(f"it is {found!r}")
        time.sleep(0.3)


def raises(call):
    try:
        call()
    except Exception:
        return True
    return False


def screen(desktop):
    pictures = {kind: desktop.screenshot(kind) for kind in ("bytes", "stream")}
    return {
        "size": desktop.get_screen_size(),
        "bytes": bytes(pictures["bytes"][:4]) == PNG,
        "stream": b"".join(pictures["stream"])[:4] == PNG,
    }


def mouse(desktop):
    note = desktop.commands.run("exec stdbuf -oL xev -geometry 500x400+300+200 >events", background=True, timeout=0)
    note.disconnect()
    window = until(lambda: desktop.commands.run("xdotool search --onlyvisible --name 'Event Tester'").stdout.strip(), str.isdigit)
    desktop.commands.run(f"xdotool windowactivate --sync {window}")
    desktop.move_mouse(200, 300)
    at = [desktop.get_cursor_position()]
    desktop.left_click(500, 400)
    desktop.right_click(510, 410)
    desktop.middle_click(520, 420)
    desktop.double_click(530, 430)
    desktop.scroll("up", 2)
    desktop.scroll("down")
    desktop.mouse_press("right")
    desktop.mouse_release("right")
    desktop.drag((400, 450), (600, 500))
    at.append(desktop.get_cursor_position())
    desktop.wait(100)
    pressed = "awk '/^Button/ { what = $1 } /, button/ && what == \"ButtonPress\" { sub(/.*, button /, \"\"); print $1 + 0 }' events"
    buttons = until(lambda: desktop.commands.run(pressed).stdout.split(), lambda found: len(found) >= 10, 15)
    return {"at": at, "pressed": [int(button) for button in buttons]}


def keyboard(desktop):
    desktop.files.write("/home/user/note.txt", "")
    desktop.launch("org.xfce.mousepad", "/home/user/note.txt")
    windows = until(lambda: desktop.get_application_windows("mousepad"), lambda found: found[-1].isdigit())
    desktop.commands.run(f"xdotool windowactivate --sync {windows[-1]}")
    desktop.write("it's 42%")
    desktop.press(["ctrl", "s"])
    text = until(lambda: desktop.files.read("/home/user/note.txt"), lambda found: "42%" in found)
    return {
        "text": text.strip(),
        "title": "note.txt" in desktop.get_window_title(windows[-1]),
        "current": desktop.get_current_window_id().isdigit(),
    }


def opened(desktop):
    desktop.files.write("/home/user/page.html", "<title>a page of Python</title>")
    desktop.open("/home/user/page.html")
    search = "xdotool search --onlyvisible --name 'a page of Python'"
    return until(lambda: desktop.commands.run(search).stdout.split(), bool, 120)[0].isdigit()


def stream(desktop):
    desktop.stream.start(require_auth=True)
    key = desktop.stream.get_auth_key()
    found = {
        "url": desktop.stream.get_url(auth_key=key).endswith(f"/vnc.html?autoconnect=true&resize=scale&password={key}"),
        "second": raises(desktop.stream.start),
        "listens": desktop.commands.run("netstat -tuln | grep -c ':6080 '").stdout.strip() != "0",
    }
    desktop.stream.stop()
    found["stopped"] = until(lambda: desktop.commands.run("pgrep -x x11vnc || true").stdout, lambda left: left == "") == ""
    return found


def main():
    found = {}
    desktop = Sandbox.create(timeout=900)
    try:
        for part in (screen, mouse, keyboard, opened, stream):
            found[part.__name__] = part(desktop)
        found["sessions"] = len(desktop.commands.run("pgrep -x xfce4-session").stdout.split())
    finally:
        desktop.kill()
    other = Sandbox.create(resolution=(1280, 720), dpi=120, timeout=900)
    try:
        found["other"] = other.get_screen_size()
    finally:
        other.kill()
    print(json.dumps(found))


main()
