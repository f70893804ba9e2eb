"""A kernel as the server starts it: over Unix sockets, through `launch.py`."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

import svc_kernel
from jupyter_client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

LAUNCH = os.path.join(os.path.dirname(os.path.dirname(svc_kernel.__file__)), "launch.py")
LIMIT_S = 60


class Launch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        file = os.path.join(cls.directory, "c.json")
        write_connection_file(file, transport="ipc", ip=os.path.join(cls.directory, "k"), key=b"secret")
        cls.kernel = subprocess.Popen([sys.executable, LAUNCH, "-f", file], cwd=cls.directory)
        cls.addClassCleanup(cls.kernel.wait)
        cls.addClassCleanup(cls.kernel.kill)
        cls.client = BlockingKernelClient()
        cls.client.load_connection_file(file)
        cls.client.start_channels(hb=False)
        cls.addClassCleanup(cls.client.stop_channels)
        cls.client.wait_for_ready(timeout=LIMIT_S)

    def run_code(self, code, **options):
        messages = []
        reply = self.client.execute_interactive(
            code, stop_on_error=False, allow_stdin=False, timeout=LIMIT_S, output_hook=lambda message: messages.append(message), **options
        )
        return reply["content"], [(message["msg_type"], message["content"]) for message in messages]

    def results(self, code):
        return [content["data"] for kind, content in self.run_code(code)[1] if kind in ("execute_result", "display_data")]

    def test_a_figure_is_one_result_with_picture_text_and_chart(self):
        [shown] = self.results("import matplotlib.pyplot as plt\nplt.plot([1, 2], [3.0, 5.5])\nplt.show()")
        self.assertEqual(sorted(shown), ["e2b/chart", "image/png", "text/plain"])
        self.assertRegex(shown["text/plain"], "^<Figure size")
        self.assertIn('"points":[[1.0,3.0],[2.0,5.5]]', shown["e2b/chart"])

    def test_a_figure_of_a_cell_that_failed_is_shown(self):
        _, messages = self.run_code("import matplotlib.pyplot as plt\nplt.plot([1, 2])\n1 / 0")
        kinds = [kind for kind, _ in messages if kind in ("display_data", "error")]
        self.assertEqual(sorted(kinds), ["display_data", "error"])

    def test_texts_of_other_scripts_need_no_warning(self):
        self.run_code("import matplotlib.pyplot as plt")
        _, messages = self.run_code("plt.plot([1])\nplt.title('\u6f22\u5b57 \u304b\u306a \ud55c\uae00')\nplt.show()")
        self.assertEqual([content["text"] for kind, content in messages if kind == "stream"], [])

    def test_json_arrives_as_text(self):
        self.assertEqual(self.results("[5.0, 2**60]")[0]["application/json"], f"[5.0,{2**60}]")
        self.assertNotIn("application/json", self.results("[print]")[0])

    def test_long_sequences_are_whole(self):
        self.assertTrue(self.results("list(range(5000))")[0]["text/plain"].endswith("4999]"))

    def test_errors_have_no_colours(self):
        reply, _ = self.run_code("int('x')")
        self.assertEqual((reply["ename"], "\x1b" in "".join(reply["traceback"])), ("ValueError", False))

    def test_halves_of_characters_are_printed_as_characters(self):
        _, messages = self.run_code("print('\\ud83d\\ude80 \\ud83d.')")
        self.assertEqual("".join(content["text"] for kind, content in messages if kind == "stream"), "\U0001f680 \ufffd.\n")

    def test_what_plotly_needs_to_show_a_figure_is_there(self):
        self.assertEqual(self.results("import nbformat; nbformat.__name__")[0]["text/plain"], "'nbformat'")

    def test_the_last_image_is_a_picture(self):
        [shown] = self.results("from PIL import Image\nImage.new('RGB', (2, 2))")
        self.assertIn("image/png", shown)

    def test_a_silent_refresh_does_not_count(self):
        before, _ = self.run_code("0")
        text = json.dumps({"set": {"SVC_A": "'\"\\"}, "cwd": "/", "reseed": True})
        reply, messages = self.run_code(f"__import__('svc_kernel').refresh({text!r})", silent=True, store_history=False)
        self.assertEqual((reply["status"], [kind for kind, _ in messages if kind != "status"]), ("ok", []))
        after, _ = self.run_code("0")
        self.assertEqual(after["execution_count"], before["execution_count"] + 1)
        self.assertEqual(self.results("import os; (os.environ['SVC_A'], os.getcwd())")[0]["text/plain"], repr(("'\"\\", "/")))

    def test_the_debugger_can_be_imported_but_is_not(self):
        self.assertEqual(self.results("import sys; 'debugpy' in sys.modules")[0]["text/plain"], "False")
        self.assertEqual(self.results("import debugpy; debugpy.__name__")[0]["text/plain"], "'debugpy'")

    def test_a_magic_and_top_level_await_work(self):
        _, messages = self.run_code("!echo from the shell")
        self.assertIn("from the shell", "".join(content["text"] for kind, content in messages if kind == "stream"))
        self.assertEqual(self.results("import asyncio\n(await asyncio.sleep(0, 42))")[0]["text/plain"], "42")

    def test_a_kernel_ends_with_what_started_it(self):
        file = os.path.join(self.directory, "d.json")
        write_connection_file(file, transport="ipc", ip=os.path.join(self.directory, "l"), key=b"secret")
        program = (
            "import subprocess, sys, time\n"
            f"kernel = subprocess.Popen([sys.executable, {LAUNCH!r}, '-f', {file!r}])\n"
            "print(kernel.pid, flush=True)\ntime.sleep(60)"
        )
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
            pid = int(parent.stdout.readline())
            client = BlockingKernelClient()
            client.load_connection_file(file)
            client.start_channels(hb=False)
            client.wait_for_ready(timeout=LIMIT_S)
            client.stop_channels()
            parent.kill()
            until = time.monotonic() + LIMIT_S
            while _runs(pid) and time.monotonic() < until:
                time.sleep(0.05)
        self.assertFalse(_runs(pid))


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    unittest.main()
