// Marks on charts: dashed lines with their figures.

import { color } from './colors.js';

/** Pixels of a text: its font, the ground behind it, and the space beside it. */
const [FONT, GROUND, BESIDE] = [12, 18, 6];

/** The dashes and gaps of a line, in pixels. */
export const DASH = [4, 3];

/** Calls `act` with a function that turns CSS pixels into those of the canvas. */
function drawn({ ctx }, act) {
  ctx.save();
  ctx.font = `${FONT * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  act((pixels) => pixels * devicePixelRatio);
  ctx.restore();
}

function dashed({ ctx }, of, name, from, to) {
  ctx.strokeStyle = color(name);
  ctx.lineWidth = of(1);
  ctx.setLineDash(DASH.map(of));
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(...to);
  ctx.stroke();
}

/** A text on a plain ground, because the bands below have all colors. `right` is its right end. */
function label({ ctx }, of, text, name, { left = null, right = null, top }) {
  const { width } = ctx.measureText(text);
  const start = left ?? right - width;
  ctx.fillStyle = color('page');
  ctx.fillRect(start - of(3), top, width + of(6), of(GROUND));
  ctx.fillStyle = color(name);
  ctx.fillText(text, start, top + of(GROUND / 2));
}

/** A vertical line at a position, with its text at the top, where the chart leaves room for it. */
export function markPosition(plot, at, text) {
  drawn(plot, (of) => {
    const { bbox } = plot;
    const x = plot.valToPos(at, 'x', true);
    dashed(plot, of, 'text', [x, bbox.top], [x, bbox.top + bbox.height]);
    const side = x > bbox.left + bbox.width / 2 ? { right: x - of(BESIDE) } : { left: x + of(BESIDE) };
    label(plot, of, text, 'text', { ...side, top: bbox.top });
  });
}

/** A horizontal line at a value. Its text is in the legend, because it would cover the bands. */
export function markValue(plot, value, name) {
  drawn(plot, (of) => {
    const { bbox } = plot;
    const y = plot.valToPos(value, 'y', true);
    dashed(plot, of, name, [bbox.left, y], [bbox.left + bbox.width, y]);
  });
}

/** The text of a line of a value: below it or, at the bottom, above it. */
export function nameValue(plot, value, text, name) {
  drawn(plot, (of) => {
    const { bbox } = plot;
    const y = plot.valToPos(value, 'y', true);
    const isLow = y + of(GROUND + 2) > bbox.top + bbox.height;
    label(plot, of, text, name, { right: bbox.left + bbox.width - of(3), top: isLow ? y - of(GROUND + 1) : y + of(2) });
  });
}
