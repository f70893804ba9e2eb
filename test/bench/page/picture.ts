/** Draws lines over a few named places as SVG, with both axes logarithmic where that fits. Pure. */

export interface Line {
  readonly name: string;
  /** One value for each place; undefined: not measured. */
  readonly values: readonly (number | undefined)[];
}

export interface Picture {
  readonly title: string;
  readonly unit: string;
  readonly places: readonly string[];
  readonly lines: readonly Line[];
}

const WIDTH = 720;
const HEIGHT = 360;
const LEFT = 70;
const RIGHT = 170;
const TOP = 50;
const BOTTOM = 50;
/** Distinct also without colours: each line has its own dashes. */
const STYLES = [
  { colour: "#0b6", dashes: "" },
  { colour: "#06c", dashes: "8 4" },
  { colour: "#b40", dashes: "2 4" },
];

export function draw({ title, unit, places, lines }: Picture): string {
  const all = lines.flatMap(({ values }) => values).filter((value) => value !== undefined);
  const decades = [Math.floor(Math.log10(Math.min(...all))), Math.ceil(Math.log10(Math.max(...all) * 1.01))] as const;
  const x = (index: number) => LEFT + ((WIDTH - LEFT - RIGHT) * index) / Math.max(1, places.length - 1);
  const y = (value: number) =>
    HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * (Math.log10(value) - decades[0])) / (decades[1] - decades[0]);
  const ticks = Array.from({ length: decades[1] - decades[0] + 1 }, (_, index) => 10 ** (decades[0] + index));
  const parts = [
    text(LEFT, 26, title, 'font-size="15" font-weight="bold"'),
    text(LEFT - 8, TOP - 10, unit, 'text-anchor="end"'),
    ...ticks.flatMap((tick) => [
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${round(y(tick))}" y2="${round(y(tick))}" stroke="#8886"/>`,
      text(LEFT - 8, y(tick) + 4, tick.toLocaleString("en"), 'text-anchor="end"'),
    ]),
    ...places.map((place, index) => text(x(index), HEIGHT - BOTTOM + 22, place, 'text-anchor="middle"')),
    ...lines.flatMap((line, index) =>
      drawn(line, { x, y, ...(STYLES[index % STYLES.length] ?? { colour: "#888", dashes: "" }) }),
    ),
  ];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" font-family="sans-serif" font-size="12">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

interface Style {
  readonly x: (index: number) => number;
  readonly y: (value: number) => number;
  readonly colour: string;
  readonly dashes: string;
}

function drawn({ name, values }: Line, { x, y, colour, dashes }: Style): string[] {
  const points = values.flatMap((value, index) => (value === undefined ? [] : [{ at: [x(index), y(value)], value }]));
  const last = points.at(-1);
  const line = points.map(({ at }) => at.map(round).join(",")).join(" ");
  return [
    `<polyline points="${line}" fill="none" stroke="${colour}" stroke-width="2" stroke-dasharray="${dashes}"/>`,
    ...points.flatMap(({ at: [left = 0, top = 0], value }) => [
      `<circle cx="${round(left)}" cy="${round(top)}" r="3" fill="${colour}"/>`,
      text(left, top - 8, shown(value), `text-anchor="middle" fill="${colour}" font-size="10"`),
    ]),
    ...(last === undefined ? [] : [text((last.at[0] ?? 0) + 14, (last.at[1] ?? 0) + 4, name, `fill="${colour}"`)]),
  ];
}

function shown(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
}

function text(x: number, y: number, content: string, more: string): string {
  return `<text x="${round(x)}" y="${round(y)}" ${more}>${escaped(content)}</text>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
