// Memory over time, block by block: a chart with bands, zoom, and details of a block.

import { axis, chart, sample, upwards } from './charts.js';
import { Blocks, rankSites } from './blocks-model.js';
import { BlockTime } from './blocks-time.js';
import { bands, colored, EMPTY, REST, visible } from './blocks-picture.js';
import { category, categoryVariable, color, kindColor, kindVariable, KINDS, pixel, variable } from './colors.js';
import { breakable, el, part, table } from './dom.js';
import { both, counted, exact, size } from './format.js';
import { DASH, markPosition, markValue } from './marks.js';
import { snippet, stack } from './sources.js';

const HEIGHT = 340;
const MOST_TICKS = 8;
/** Pixels of the vertical axis and the right margin of a chart. */
const MARGINS = 96;
const LARGEST = 20;
const SETUP = KINDS.indexOf('set-up');
/** Pixels between the hint and the pointer, and between it and the band of its block. */
const [BESIDE, NEAR] = [14, 6];
const isTouched = matchMedia('(hover: none) and (pointer: coarse)');

export function blockChart(parent, { space, held, iterations }, tree) {
  if (!held.lifetimes || held.lifetimes.born.length === 0) return null;
  const blocks = new Blocks(held.lifetimes, tree);
  return new BlockChart(parent, { space, held, blocks, tree, baseline: iterations?.baseline ?? null });
}

class BlockChart {
  /** `baseline` is the peak of the baseline, or null. */
  constructor(parent, { space, held, blocks, tree, baseline }) {
    Object.assign(this, { space, held, blocks, tree, baseline });
    this.time = new BlockTime(held.lifetimes);
    // The positions that are shown. One place holds them, because uPlot computes the scale of the bytes
    // before it has updated that of the time.
    this.range = [0, this.time.width];
    this.byKind = true;
    this.withSetup = true;
    this.selected = EMPTY;
    this.hovered = EMPTY;
    this.sites = rankSites(blocks, tree);
    this.hint = el('div', { class: 'hint', role: 'tooltip', hidden: true });
    this.legend = el('ul', { class: 'legend' });
    this.details = el('aside', { class: 'details', 'aria-live': 'polite', 'aria-label': 'Selected block' },
      el('p', { class: 'muted' }, 'Select a block to see its call stack, and below the chart the call stacks of that moment.'));
    const box = part(`Memory over time in ${space}`, 'open', el('p', null, this.describe()), this.tools());
    parent.append(box);
    this.area = el('div', { class: 'blocks' });
    box.append(this.area, this.legend, this.details, this.largest());
    this.load();
    this.draw();
    this.listen();
  }

  describe() {
    const { lifetimes, peak, when } = this.held;
    const left = lifetimes.left_out;
    const hasEnd = lifetimes.ended !== null && lifetimes.events > lifetimes.ended;
    const end = !hasEnd ? '' : ' After \u201cend\u201d, the last iteration is over and the test drops its memory.';
    const others = left > 0 ? ` The ${counted(left, 'smallest block is', 'smallest blocks are')} one band.` : '';
    const equal = this.blocks.iterates ? ' Each iteration has the same width.' : '';
    return `${counted(this.blocks.count + left, 'block', 'blocks')} over ${exact(lifetimes.events)} `
      + `allocations and frees; the peak is ${both(peak)}${when}.${others}${equal}${end}`;
  }

  tools() {
    const toggle = (text, title, act) => {
      const button = el('button', {
        type: 'button', 'aria-pressed': false, title,
        onclick: () => {
          const now = button.getAttribute('aria-pressed') !== 'true';
          button.setAttribute('aria-pressed', now);
          act(now);
        },
      }, text);
      return button;
    };
    const press = (text, act, name = null) =>
      el('button', { type: 'button', onclick: act, title: name, 'aria-label': name }, text);
    return el('div', { class: 'tools of-chart', role: 'group', 'aria-label': 'Chart' },
      toggle('By call site', 'Color by call site', (now) => { this.byKind = !now; this.repaint(); }),
      this.blocks.iterates && this.blocks.kind.includes(SETUP)
        ? toggle('Hide set-up', null, (now) => { this.withSetup = !now; this.load(); this.zoom(null); }) : null,
      // They go to another row together.
      el('span', { role: 'group', 'aria-label': 'Zoom' },
        press('+', () => this.zoomBy(0.5), 'Zoom in'), press('\u2212', () => this.zoomBy(2), 'Zoom out'),
        press('\u2190', () => this.pan(-0.25), 'Earlier'), press('\u2192', () => this.pan(0.25), 'Later'),
        press('Peak', () => this.zoomToPeak()), press('Reset', () => this.zoom(null))));
  }

  load() {
    const isShown = this.withSetup ? () => true : (block) => this.blocks.kind[block] !== SETUP;
    const timeline = this.blocks.timeline(isShown);
    this.timeline = { ...timeline, at: this.time.positions(timeline.times) };
    this.cache = null;
    this.plot?.setData([this.timeline.at, this.timeline.total]);
  }

  draw() {
    const vertical = upwards({ most: MOST_TICKS, highest: () => this.highest() });
    this.plot = chart(this.area, this.describe(), {
      height: HEIGHT,
      cursor: {
        y: false, points: { show: false }, drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => this.zoom(null) },
      },
      scales: {
        x: { time: false, range: () => this.range },
        y: vertical.scale,
      },
      axes: [
        // Lines at the beginnings of iterations, and texts at their middles.
        axis({ size: 8, splits: (plot) => this.ticks(plot).lines, values: (_, splits) => splits.map(() => '') }),
        vertical.axis,
        axis({
          scale: 'x', side: 2, size: 26, gap: 0, grid: { show: false }, ticks: { show: false },
          label: this.blocks.iterates ? 'iteration' : 'allocations and frees',
          splits: (plot) => this.ticks(plot).at, values: (plot) => this.ticks(plot).texts,
        }),
      ],
      // The bands are painted.
      series: [{}, { points: { show: false }, paths: () => null }],
      hooks: {
        drawAxes: [(plot) => this.paint(plot)], draw: [(plot) => this.mark(plot)],
        setSelect: [(plot) => this.zoomToSelection(plot)],
      },
    }, [this.timeline.at, this.timeline.total]);
    this.area.querySelector('.u-over').append(this.hint);
    this.repaint();
  }

  /** The highest live bytes in the visible part. The whole also has the peak of the baseline. */
  highest() {
    const { at, total } = this.timeline;
    const [from, to] = this.range;
    let [best, before] = [0, 0];
    for (let index = 0; index < at.length; index += 1) {
      if (at[index] < from) before = total[index];
      else if (at[index] <= to) best = Math.max(best, total[index]);
    }
    const isWhole = from <= 0 && to >= this.time.width;
    return Math.max(best, before, isWhole ? this.baseline ?? 0 : 0);
  }

  ticks(plot) {
    return this.time.ticks(this.range, plot.width - MARGINS);
  }

  paint(plot) {
    const { left, top, width, height } = plot.bbox;
    const [columns, rows] = [Math.round(width), Math.round(height)];
    if (columns < 1 || rows < 1) return;
    const [from, to] = this.range;
    const { max: highest } = plot.scales.y;
    this.area.dataset.range = [from, to].map((at) => Math.round(this.time.event(at))).join(' ');
    this.area.dataset.highest = Math.round(highest);
    const { texts, lines } = this.ticks(plot);
    this.area.dataset.ticks = texts.join('|');
    this.area.dataset.lines = lines.join('|');
    const key = [from, to, highest, columns, rows].join();
    if (this.cache?.key !== key) {
      const area = { from, to, highest, width: columns, height: rows };
      const ids = bands(this.blocks, this.timeline, area);
      this.cache = { key, area, ids, visible: visible(ids) };
      this.explainColors();
    }
    const marked = this.hovered !== EMPTY ? this.hovered : this.selected;
    const image = colored(this.cache.ids, this.cache.area, this.colorOf(), pixel(color('edge')),
      marked === EMPTY ? NaN : marked, pixel(color('mark')));
    this.canvas ??= document.createElement('canvas');
    Object.assign(this.canvas, { width: columns, height: rows });
    this.canvas.getContext('2d').putImageData(image, 0, 0);
    plot.ctx.drawImage(this.canvas, Math.round(left), Math.round(top));
  }

  colorOf() {
    const rest = pixel(color('rest'));
    const kinds = this.blocks.kinds.map((kind) => pixel(kindColor(kind)));
    if (this.byKind) return (block) => (block === REST ? rest : kinds[this.blocks.kind[block]]);
    const sites = this.sites.map((_, index) => pixel(category(index + 1)));
    return (block) => {
      if (block === REST) return rest;
      return sites[this.siteOf(block)] ?? rest;
    };
  }

  siteOf(block) {
    this.siteOfPlace ??= this.tree.places.map((place) => this.sites.indexOf(this.tree.siteText(place.stack)));
    return this.siteOfPlace[this.blocks.place[block]];
  }

  /** The moment of the peak, and the peak of the baseline. */
  mark(plot) {
    const marks = [];
    if (this.baseline !== null && this.baseline <= plot.scales.y.max) {
      marks.push(`baseline ${size(this.baseline)}`);
      markValue(plot, this.baseline, 'text');
    }
    const peak = this.time.position(this.held.lifetimes.peak);
    const [min, max] = this.range;
    if (peak >= min && peak <= max) {
      marks.push(`peak ${size(this.held.peak)}`);
      markPosition(plot, peak, marks.at(-1));
    }
    this.area.dataset.marks = marks.join('|');
  }

  repaint() {
    this.plot.redraw(false, true);
    this.explainColors();
  }

  /** The legend: only the colors that the chart shows. */
  explainColors() {
    if (!this.cache) return;
    const blocks = [...this.cache.visible].filter((block) => block !== REST);
    const others = [['other call sites', variable('rest')]];
    const items = this.byKind
      ? this.blocks.kinds.map((kind) => [kind, kindVariable(kind)])
      : [...this.sites.map((site, index) => [site, categoryVariable(index + 1)]), ...others];
    const indexOf = (block) => (this.byKind ? this.blocks.kind[block] : this.siteOf(block));
    const used = new Set(blocks.map(indexOf).map((index) => (index < 0 ? items.length - 1 : index)));
    const shown = items.filter((_, index) => used.has(index));
    if (this.cache.visible.has(REST)) shown.push(['smaller blocks', variable('rest')]);
    this.legend.replaceChildren(...shown.map(([text, fill]) => {
      const swatch = el('span', { class: 'swatch', 'aria-hidden': 'true' });
      swatch.style.background = fill;
      return el('li', null, swatch, text);
    }));
    if (this.baseline !== null && this.baseline <= this.plot.scales.y.max) {
      this.legend.append(el('li', null, sample({ color: 'text', width: 1, dash: DASH }),
        `baseline ${size(this.baseline)}`));
    }
  }

  /** The block at a position of the pointer. */
  at(event) {
    if (!this.cache) return EMPTY;
    const box = this.plot.over.getBoundingClientRect();
    const { width, height } = this.cache.area;
    const column = Math.floor((event.clientX - box.left) / box.width * width);
    const row = Math.floor((event.clientY - box.top) / box.height * height);
    if (column < 0 || row < 0 || column >= width || row >= height) return EMPTY;
    return this.cache.ids[row * width + column];
  }

  listen() {
    const { over } = this.plot;
    over.tabIndex = 0;
    over.setAttribute('role', 'application');
    over.setAttribute('aria-label',
      `Memory over time in ${this.space}. Arrow keys move, plus and minus zoom, 0 resets, P shows the peak.`);
    over.addEventListener('mousemove', (event) => this.hover(event));
    over.addEventListener('mouseleave', () => this.leave());
    over.addEventListener('click', (event) => {
      // A drag ends with a click too, and zooms.
      if (this.zoomed) return;
      this.select(this.at(event));
      this.onMoment?.(this.moment(this.plot.posToVal(event.offsetX, 'x')));
    });
    over.addEventListener('mousedown', () => { this.zoomed = false; });
    over.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    const keys = {
      ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25),
      '+': () => this.zoomBy(0.5), '-': () => this.zoomBy(2), 0: () => this.zoom(null), p: () => this.zoomToPeak(),
    };
    over.addEventListener('keydown', (event) => {
      const act = keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
  }

  hover(event) {
    const block = this.at(event);
    if (block !== this.hovered) {
      this.hovered = block;
      cancelAnimationFrame(this.frame);
      this.frame = requestAnimationFrame(() => this.plot.redraw(false, false));
      this.hint.replaceChildren(...(block === EMPTY ? [] : this.facts(block)));
    }
    // A finger selects, and the details below the chart have the same facts.
    this.hint.hidden = block === EMPTY || isTouched.matches;
    if (!this.hint.hidden) this.placeHint(event, block);
  }

  /** Below the band of the block or above it, so that it stays visible; beside the pointer if neither has room. */
  placeHint(event, block) {
    const box = this.plot.over.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const [width, height] = [this.hint.offsetWidth, this.hint.offsetHeight];
    const left = x + BESIDE + width > box.width ? x - BESIDE - width : x + BESIDE;
    const [top, bottom] = this.band(x / box.width, block).map((share) => share * box.height);
    const tops = [bottom + NEAR, top - NEAR - height].filter((at) => at >= 0 && at + height <= box.height);
    const beside = Math.max(0, Math.min(y - height / 2, box.height - height));
    this.hint.style.left = `${Math.max(0, Math.min(left, box.width - width))}px`;
    this.hint.style.top = `${tops[0] ?? beside}px`;
  }

  /** The top and the bottom of a block at a horizontal share of the chart, as shares of its height. */
  band(share, block) {
    const { ids, area: { width, height } } = this.cache;
    const column = Math.min(width - 1, Math.floor(share * width));
    const isBlock = (_, row) => ids[row * width + column] === block;
    const rows = Array.from({ length: height }, isBlock);
    return [rows.indexOf(true) / height, (rows.lastIndexOf(true) + 1) / height];
  }

  leave() {
    this.hovered = EMPTY;
    this.hint.hidden = true;
    this.plot.redraw(false, false);
  }

  /** Lines about a block. */
  facts(block) {
    const line = (...content) => el('p', null, ...content);
    if (block === REST) {
      return [line(el('strong', null, counted(this.held.lifetimes.left_out, 'smaller block', 'smaller blocks')))];
    }
    const place = this.tree.places[this.blocks.place[block]];
    return [
      line(el('strong', null, place.operation), place.tensor ? ` ${place.tensor}` : ''),
      line(this.tree.siteText(place.stack)),
      place.scope ? line(`span ${place.scope}`) : null,
      line(`${both(this.blocks.bytes[block])}, ${this.blocks.kindName(block)}`),
      line(this.lifetime(block)),
    ].filter(Boolean);
  }

  /** `allocated in iteration 3, freed 2 iterations later` */
  lifetime(block) {
    const [born, died] = [this.blocks.born[block], this.blocks.died[block]];
    if (!this.blocks.iterates) {
      const end = died === Infinity ? 'live at the end' : `freed by number ${exact(died)}`;
      return `allocated by number ${exact(born)} of the allocations and frees, ${end}`;
    }
    const iteration = this.blocks.iteration(born);
    const since = iteration === 0 ? 'allocated in the set-up' : `allocated in iteration ${exact(iteration)}`;
    const { ended } = this.held.lifetimes;
    const age = counted(this.blocks.age(block), 'iteration', 'iterations');
    if (died === Infinity) return `${since}, live at the end, after ${age}`;
    return `${since}, freed ${ended !== null && died > ended ? `after the last iteration, ${age}` : age} later`;
  }

  select(block) {
    this.selected = block;
    this.plot.redraw(false, false);
    if (block < 0) {
      this.details.replaceChildren(...(block === REST ? this.facts(block) : []));
      return;
    }
    const { stack: of } = this.tree.places[this.blocks.place[block]];
    const place = this.tree.site(of)?.place;
    this.details.replaceChildren(...[
      ...this.facts(block), ...snippet(this.tree.snippets, place), stack(of, this.tree, true),
    ].filter(Boolean));
  }

  /** A table of the largest blocks, which also works without a pointer. Blocks that look the same are one row. */
  largest() {
    const { bytes, place: places, born, died } = this.blocks;
    const rows = new Map();
    for (const block of Array.from(bytes.keys()).sort((a, b) => bytes[b] - bytes[a])) {
      const key = `${places[block]} ${bytes[block]} ${this.blocks.kind[block]}`;
      if (rows.has(key)) rows.get(key).push(block);
      else if (rows.size < LARGEST) rows.set(key, [block]);
    }
    const cells = (of) => {
      const [block] = of;
      const place = this.tree.places[places[block]];
      return [
        el('button', { type: 'button', class: 'link', onclick: () => this.select(block) }, place.label),
        el('span', null, breakable(this.tree.siteText(place.stack))), this.blocks.kindName(block), size(bytes[block]), exact(of.length),
        this.during(of.map((each) => born[each])), this.during(of.map((each) => died[each])),
      ];
    };
    const columns = [{ title: 'Block' }, { title: 'Call site' }, { title: 'Kind' }, { title: 'Bytes', figure: true },
      { title: 'Blocks', figure: true }, { title: 'Born in', figure: true }, { title: 'Freed in', figure: true }];
    return el('details', { class: 'part' }, el('summary', null, 'Largest blocks'),
      table('Largest blocks', columns, [...rows.values()].map(cells)));
  }

  /** `set-up`, `3 to 12` or `live`: the iterations of events. */
  during(events) {
    if (!this.blocks.iterates) return null;
    const last = this.held.lifetimes.iterations.length;
    const text = (iteration) => {
      if (iteration === Infinity) return 'live';
      return iteration === 0 ? 'set-up' : iteration > last ? 'end' : exact(iteration);
    };
    const all = events.map((event) => (event === Infinity ? event : this.blocks.iteration(event)));
    const [first, final] = [Math.min(...all), Math.max(...all)].map(text);
    return first === final ? first : `${first} to ${final}`;
  }

  /** At least four events stay visible. */
  zoom(range) {
    const { width } = this.time;
    const [min, max] = range ?? [0, width];
    const middle = this.time.event((min + max) / 2);
    const least = this.time.position(middle + 2) - this.time.position(Math.max(0, middle - 2));
    const span = Math.min(width, Math.max(least, max - min));
    const from = Math.max(0, Math.min(min, width - span));
    this.range = [from, from + span];
    this.plot.setScale('x', { min: from, max: from + span });
  }

  zoomToSelection(plot) {
    const { left, width } = plot.select;
    if (width < 4) return;
    this.zoomed = true;
    plot.setSelect({ left: 0, width: 0 }, false);
    this.zoom([plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')]);
  }

  /** Zooms around the pointer. At the whole range, turning back scrolls the page. */
  wheel(event) {
    const [min, max] = this.range;
    if (event.deltaY === 0 || (event.deltaY > 0 && max - min >= this.time.width)) return;
    event.preventDefault();
    const factor = event.deltaY < 0 ? 0.8 : 1.25;
    const at = this.plot.posToVal(event.offsetX, 'x');
    this.zoom([at - (at - min) * factor, at + (max - at) * factor]);
  }

  zoomBy(factor) {
    const [min, max] = this.range;
    const [middle, half] = [(min + max) / 2, (max - min) / 2 * factor];
    this.zoom([middle - half, middle + half]);
  }

  /** The blocks that are live at an event, as a graph of their call stacks. */
  moment(at) {
    const event = Math.round(this.time.event(at));
    const entries = new Map();
    const isShown = (block) => this.withSetup || this.blocks.kind[block] !== SETUP;
    for (let block = 0; block < this.blocks.count; block += 1) {
      if (this.blocks.born[block] > event || this.blocks.died[block] <= event || !isShown(block)) continue;
      const key = `${this.blocks.place[block]} ${this.blocks.kind[block]}`;
      const place = this.tree.places[this.blocks.place[block]];
      const entry = entries.get(key)
        ?? { stack: place.stack, leaf: place.label, kind: this.blocks.kindName(block), value: 0 };
      entry.value += this.blocks.bytes[block];
      entries.set(key, entry);
    }
    const rest = this.blocks.rest(event);
    const smaller = rest > 0 ? [{ stack: null, leaf: 'smaller blocks', value: rest }] : [];
    const text = this.time.text(event);
    const when = this.blocks.iterates ? text : `number ${text} of the allocations and frees`;
    return {
      title: 'Moment', entries: [...entries.values(), ...smaller],
      note: `Memory at ${/^\d/.test(when) ? `iteration ${when}` : when}, by the call stack that allocated it.`,
    };
  }

  pan(share) {
    const [min, max] = this.range;
    const by = (max - min) * share;
    this.zoom([min + by, max + by]);
  }

  zoomToPeak() {
    const peak = this.time.position(this.held.lifetimes.peak);
    const half = this.time.width / 20;
    this.zoom([peak - half, peak + half]);
  }
}
