/** A chart over time: what is used, and its limit. Its code comes with the first chart. */

import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";

interface Series {
  readonly times: readonly number[];
  readonly used: readonly number[];
  readonly limit?: readonly number[] | undefined;
}

export interface Chart {
  show(series: Series): void;
  remove(): void;
}

const HEIGHT_PX = 140;

export function drawChart(place: HTMLElement, text: (value: number) => string): Chart {
  const colour = (name: string) => getComputedStyle(place).getPropertyValue(name);
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 } };
  const chart = new UPlot(
    {
      width: place.clientWidth,
      height: HEIGHT_PX,
      legend: { show: false },
      cursor: { show: false },
      scales: { y: { range: (_chart, _least, most) => [0, Math.max(most, 1) * 1.1] } },
      axes: [axis, { ...axis, size: 70, values: (_chart, values) => values.map((value) => text(value)) }],
      series: [{}, { stroke: colour("--accent"), width: 2 }, { stroke: colour("--danger"), width: 1, dash: [4, 4] }],
    },
    [[], [], []],
    place,
  );
  const resized = new ResizeObserver(() => chart.setSize({ width: place.clientWidth, height: HEIGHT_PX }));
  resized.observe(place);
  return {
    show: ({ times, used, limit }) =>
      chart.setData([[...times], [...used], limit === undefined ? times.map(() => null) : [...limit]]),
    remove() {
      resized.disconnect();
      chart.destroy();
    },
  };
}
