"""Formats, imports, pictures and the refresh, in an IPython shell without a server."""

import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

from IPython.core.interactiveshell import InteractiveShell

import svc_kernel
from svc_kernel.halves import packing, whole
from svc_kernel.plain import dumps


class Plain(unittest.TestCase):
    def test_floats_stay_floats_and_what_is_no_number_is_null(self):
        self.assertEqual(dumps([5.0, 5, float("nan"), float("inf"), "ü"]), '[5.0,5,null,null,"\\u00fc"]')

    def test_numpy_and_keys_that_are_no_texts_are_serialised(self):
        import numpy

        value = {1: numpy.float64(2), None: numpy.int8(3), 2.5: numpy.datetime64("2024-01-01"), False: numpy.arange(2)}
        self.assertEqual(dumps(value), '{"1":2.0,"null":3,"2.5":"2024-01-01","false":[0,1]}')

    def test_any_key_is_text_where_other_values_are(self):
        self.assertEqual(dumps([{(1, 2): 3, 4: {b"x": 5}}], str), '[{"(1, 2)":3,"4":{"b\'x\'":5}}]')

    def test_other_values_are_refused(self):
        for value in ([object()], {(1, 2): 3}, {"a": {1}}):
            with self.subTest(value=value), self.assertRaises(TypeError):
                dumps(value)

    def test_a_loop_ends(self):
        loop = []
        loop.append(loop)
        with self.assertRaises(RecursionError):
            dumps(loop)


class Formats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shell = InteractiveShell.instance()
        svc_kernel.load_ipython_extension(cls.shell)

    def formats(self, value):
        return self.shell.display_formatter.format(value)[0]

    def test_lists_and_dicts_have_json(self):
        self.assertEqual(self.formats({"a": 1.0})["application/json"], '{"a":1.0}')
        self.assertNotIn("application/json", self.formats([object()]))
        self.assertNotIn("application/json", self.formats("text"))

    def test_objects_may_describe_themselves(self):
        class Own:
            def _repr_e2b_data_(self):
                return {"a": [1.0]}

            def _repr_e2b_chart_(self):
                return {"type": "own"}

            def _repr_json_(self):
                return {"b": 2.0}

        shown = self.formats(Own())
        self.assertEqual(
            (shown["e2b/data"], shown["e2b/chart"], shown["application/json"]),
            ('{"a":[1.0]}', '{"type":"own"}', '{"b":2.0}'),
        )

    def test_a_data_frame_has_its_columns(self):
        import pandas

        frame = pandas.DataFrame({"n": [1.0, None], "when": pandas.to_datetime(["2024-01-02", None]), 3: ["x", pandas.NA]})
        frame["span"] = pandas.to_timedelta([1, 2], "D")
        shown = self.formats(frame)
        self.assertEqual(
            json.loads(shown["e2b/data"]),
            {"n": [1.0, None], "when": ["2024-01-02T00:00:00", None], "3": ["x", None], "span": ["1 days 00:00:00", "2 days 00:00:00"]},
        )
        self.assertIn("text/html", shown)

    def test_a_figure_has_a_chart_and_a_font_for_all_scripts(self):
        import matplotlib

        matplotlib.use("agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots()
        axes.plot([1, 2], [3, 4])
        self.assertEqual(json.loads(self.formats(figure)["e2b/chart"])["type"], "line")
        self.assertGreater(len(matplotlib.rcParams["font.family"]), 1)
        pyplot.close("all")

    def test_a_saved_image_is_displayed_and_show_starts_no_viewer(self):
        from PIL import Image

        shown = []
        self.shell.display_pub.publish = lambda data, **_: shown.append(sorted(data))
        self.addCleanup(delattr, self.shell.display_pub, "publish")
        with tempfile.TemporaryDirectory() as directory:
            Image.new("RGB", (1, 1)).save(os.path.join(directory, "a.png"))
            self.assertEqual(len(shown), 1)
            Image.new("RGB", (1, 1)).save(io.BytesIO(), "png")
            self.assertEqual(len(shown), 1)
            import matplotlib

            matplotlib.use("agg")
            from matplotlib import pyplot

            pyplot.figure().savefig(os.path.join(directory, "b.png"))
            pyplot.close("all")
            self.assertEqual(len(shown), 1)
        Image.new("RGB", (1, 1)).show()
        self.assertEqual(len(shown), 2)
        self.assertIn("image/png", shown[1])


class Halves(unittest.TestCase):
    def test_two_are_a_character_and_one_is_none(self):
        value = {"a\ud83d\ude80": ["\ud83d", ("\udc80b", 1, None, b"x")], "c": "\U0001f680\u00fc"}
        self.assertEqual(whole(value), {"a\U0001f680": ["\ufffd", ["\ufffdb", 1, None, b"x"]], "c": "\U0001f680\u00fc"})

    def test_what_can_be_packed_stays_as_it_is(self):
        asked = []

        def pack(value):
            asked.append(value)
            return value.encode()

        self.assertEqual((packing(pack)("\u00fc"), packing(pack)("\ud83d\ude80")), ("\u00fc".encode(), "\U0001f680".encode()))
        self.assertEqual(asked, ["\u00fc", "\ud83d\ude80", "\U0001f680"])


class Refresh(unittest.TestCase):
    def test_it_sets_and_removes_variables(self):
        os.environ["SVC_OLD"] = "1"
        svc_kernel.refresh(json.dumps({"set": {"SVC_NEW": "it's \"ü\"\n"}, "remove": ["SVC_OLD", "SVC_NEVER"]}))
        self.addCleanup(os.environ.pop, "SVC_NEW")
        self.assertEqual((os.environ["SVC_NEW"], "SVC_OLD" in os.environ), ("it's \"ü\"\n", False))

    def test_it_changes_the_directory_if_there_is_one(self):
        self.addCleanup(os.chdir, os.getcwd())
        svc_kernel.refresh('{"cwd": "/"}')
        svc_kernel.refresh('{"cwd": "/no/such/directory"}')
        svc_kernel.refresh('{"cwd": null}')
        self.assertEqual(os.getcwd(), "/")

    def test_it_gives_other_random_numbers_when_asked(self):
        import numpy

        def drawn(reseed):
            random.seed(1)
            numpy.random.seed(1)
            svc_kernel.refresh(json.dumps({"reseed": reseed}))
            return random.random(), numpy.random.random()

        first, second = drawn(False), drawn(False)
        self.assertEqual(first, second)
        for one, other in zip(drawn(True), drawn(True)):
            self.assertNotEqual(one, other)


class Imports(unittest.TestCase):
    def test_nothing_is_imported_before_it_is_used(self):
        program = (
            "import sys; from IPython.core.interactiveshell import InteractiveShell as S; import svc_kernel;"
            "svc_kernel.load_ipython_extension(S.instance()); S.instance().display_formatter.format([1, 'a']);"
            "print([n for n in ('pandas', 'numpy', 'matplotlib', 'PIL') if n in sys.modules])"
        )
        answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        self.assertEqual(answer.stdout, "[]\n")


if __name__ == "__main__":
    unittest.main()
