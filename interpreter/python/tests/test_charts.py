"""Charts of real figures. Run where matplotlib is: in a sandbox of the template."""

import datetime
import unittest

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from svc_kernel.charts import chart_of
from svc_kernel.charts.labels import unit
from svc_kernel.charts.wedges import rounded


class Charts(unittest.TestCase):
    def setUp(self):
        self.figure, self.axes = plt.subplots()
        self.addCleanup(plt.close, "all")

    def chart(self):
        return chart_of(self.figure)

    def test_a_line_has_points_ticks_and_units(self):
        self.axes.plot([1, 2, 3], [1.5, 2.0, 5.0], label="speed")
        self.axes.plot([1, 2, 3], [0, 1, 0])
        self.axes.axhline(2)
        self.axes.set(title="Ride", xlabel="Time (s)", ylabel="Speed [m/s]")
        chart = self.chart()
        self.assertEqual(
            {name: chart[name] for name in ("type", "title", "x_label", "x_unit", "y_label", "y_unit")},
            {
                "type": "line",
                "title": "Ride",
                "x_label": "Time (s)",
                "x_unit": "s",
                "y_label": "Speed [m/s]",
                "y_unit": "m/s",
            },
        )
        self.assertEqual((chart["x_scale"], chart["y_scale"]), ("linear", "linear"))
        self.assertEqual([one["label"] for one in chart["elements"]], ["speed", "Line 1"])
        self.assertEqual(chart["elements"][0]["points"], [[1.0, 1.5], [2.0, 2.0], [3.0, 5.0]])
        self.assertTrue(all(type(tick) is float for tick in chart["x_ticks"] + chart["y_ticks"]))
        self.assertEqual(len(chart["x_ticks"]), len(chart["x_tick_labels"]))

    def test_dates_are_texts_and_their_scale_is_datetime(self):
        days = [datetime.datetime(2024, 1, day) for day in (1, 2, 3)]
        self.axes.plot(days, [1, 2, 3])
        chart = self.chart()
        self.assertEqual(chart["x_scale"], "datetime")
        self.assertEqual(chart["elements"][0]["points"][0], ["2024-01-01T00:00:00", 1.0])
        self.assertTrue(chart["x_ticks"][0].startswith("2024-01-01T00:00:00"))

    def test_dates_of_numpy_are_texts_to_the_second(self):
        self.axes.plot(pd.date_range("2024-01-01", periods=2, freq="s").values, [1, 2])
        self.assertEqual([x for x, _ in self.chart()["elements"][0]["points"]], ["2024-01-01T00:00:00", "2024-01-01T00:00:01"])

    def test_periods_that_pandas_plots_are_dates(self):
        pd.Series([1.0, 2.0, 3.0], index=pd.date_range("2024-01-01", periods=3)).plot(ax=self.axes)
        chart = self.chart()
        self.assertEqual(chart["x_scale"], "datetime")
        self.assertEqual(chart["elements"][0]["points"][2], ["2024-01-03T00:00:00", 3.0])
        self.assertTrue(chart["x_ticks"][0].startswith("2024-01-01T"), chart["x_ticks"])

    def test_names_make_a_categorical_scale(self):
        self.axes.plot(["a", "b", "c"], [1, 2, 3])
        chart = self.chart()
        self.assertEqual((chart["x_scale"], chart["x_tick_labels"]), ("categorical", ["a", "b", "c"]))
        self.assertEqual(chart["elements"][0]["points"][1], ["b", 2.0])

    def test_a_logarithmic_scale_is_named(self):
        self.axes.plot([1, 2], [1, 1000])
        self.axes.set_yscale("log")
        self.assertEqual(self.chart()["y_scale"], "log")

    def test_missing_numbers_keep_their_place(self):
        self.axes.plot(np.ma.masked_equal([1.0, 2.0], 2.0), [1, 2])
        self.assertEqual(self.chart()["elements"][0]["points"][1], [None, 2.0])

    def test_scattered_marks_are_points(self):
        self.axes.scatter([1, 2], [3, 4], label="one")
        self.axes.axvline(1)
        chart = self.chart()
        self.assertEqual(chart["type"], "scatter")
        self.assertEqual(chart["elements"], [{"label": "one", "points": [[1.0, 3.0], [2.0, 4.0]]}])

    def test_bars_have_groups(self):
        places = np.arange(2)
        self.axes.bar(places - 0.2, [5, 10], 0.4, label="men")
        self.axes.bar(places + 0.2, [7, 12], 0.4)
        self.axes.set_xticks(places, ["A", "B"])
        chart = self.chart()
        self.assertEqual(chart["type"], "bar")
        self.assertEqual(
            [(one["label"], one["group"], one["value"]) for one in chart["elements"]],
            [("A", "men", 5.0), ("B", "men", 10.0), ("A", "Group 1", 7.0), ("B", "Group 1", 12.0)],
        )

    def test_lying_bars_have_their_axes_swapped(self):
        self.axes.barh(["A", "B"], [5, 10])
        self.axes.set(xlabel="Weight (kg)", ylabel="Who")
        chart = self.chart()
        self.assertEqual((chart["x_label"], chart["y_label"], chart["y_unit"]), ("Who", "Weight (kg)", "kg"))
        self.assertEqual([(one["label"], one["value"]) for one in chart["elements"]], [("A", 5.0), ("B", 10.0)])

    def test_standing_bars_of_one_height_stand(self):
        self.axes.bar(["A", "B"], [5, 5])
        self.assertEqual([one["value"] for one in self.chart()["elements"]], [5.0, 5.0])

    def test_bars_beside_ticks_are_named_by_their_number(self):
        self.axes.bar([10.5, 20.25], [1, 2])
        self.assertEqual([one["label"] for one in self.chart()["elements"]][1], "20.25")

    def test_wedges_of_a_pie_are_whole_angles(self):
        self.axes.pie([90, 10], labels=["much", "little"], autopct="%1.0f%%")
        elements = self.chart()["elements"]
        self.assertEqual([(one["label"], one["angle"]) for one in elements], [("much", 324.0), ("little", 36.0)])
        self.assertEqual((elements[0]["radius"], rounded(323.9999914), rounded(0)), (1.0, 324.0, 0.0))

    def test_boxes_have_their_five_numbers(self):
        for vert in (True, False):
            for notch in (True, False):
                with self.subTest(vert=vert, notch=notch):
                    figure, axes = plt.subplots()
                    data = [[1, 2, 3, 4, 5, 20], [2, 2, 2, 3, 9]]
                    axes.boxplot(data, patch_artist=True, labels=["p", "q"], vert=vert, notch=notch, showmeans=True)
                    chart = chart_of(figure)
                    self.assertEqual(chart["type"], "box_and_whisker")
                    self.assertEqual(
                        chart["elements"],
                        [
                            {"label": "p", "min": 1.0, "first_quartile": 2.25, "median": 3.5, "third_quartile": 4.75, "max": 5.0, "outliers": [20.0]},
                            {"label": "q", "min": 2.0, "first_quartile": 2.0, "median": 2.0, "third_quartile": 3.0, "max": 3.0, "outliers": [9.0]},
                        ],
                    )

    def test_several_axes_are_one_superchart(self):
        figure, (one, two) = plt.subplots(1, 2)
        one.plot([1, 2], [1, 3])
        two.pie([1])
        figure.suptitle("Both")
        chart = chart_of(figure)
        self.assertEqual((chart["type"], chart["title"]), ("superchart", "Both"))
        self.assertEqual([part["type"] for part in chart["elements"]], ["line", "pie"])

    def test_what_is_no_chart_is_unknown_and_what_is_empty_is_nothing(self):
        self.assertEqual(self.chart(), {})
        self.axes.imshow([[1, 2], [3, 4]])
        self.assertEqual(self.chart(), {"type": "unknown", "title": None, "elements": []})

    def test_a_unit_stands_in_brackets(self):
        self.assertEqual(
            [unit(name) for name in ("Speed (m/s)", "Speed [km]", "f(x)", "Speed", "", None)],
            ["m/s", "km", None, None, None, None],
        )


if __name__ == "__main__":
    unittest.main()
