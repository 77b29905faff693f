// Draws the report's data. What comes from the data is written as text only (textContent, d3's .text): a name that
// looks like markup stays a name.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const runs = new Map(data.runs.map(run => [run.run, run]));
  const $ = id => document.getElementById(id);

  // Amounts -----------------------------------------------------------------------------------------------------
  const none = '–';
  const three = v => v == null ? none : v === 0 ? '0'
    : Math.abs(v) < 1e-4 || Math.abs(v) >= 1e5 ? v.toExponential(2) : String(Number(v.toPrecision(3)));
  function withError(v, error, places) {  // the error's two digits decide the value's place
    if (v == null) return none;
    if (!error) return three(v);
    const place = Math.max(1 - Math.floor(Math.log10(error)), places || 0);
    if (place > 7) return `${v.toExponential(2)} ± ${error.toExponential(1)}`;
    return `${v.toFixed(place)} ± ${error.toFixed(place)}`;
  }
  const percent = v => v == null ? none : (100 * v).toFixed(2);
  const size = v => v == null ? none
    : v >= 10 * 2 ** 30 ? `${(v / 2 ** 30).toFixed(2)} GiB` : `${(v / 2 ** 20).toFixed(1)} MiB`;
  const cache = v => v == null ? none : v >= 10240 ? `${Number((v / 1024).toPrecision(4))} KiB` : `${v} B`;

  // Elements ----------------------------------------------------------------------------------------------------
  function add(parent, tag, text, attributes) {
    const element = document.createElement(tag);
    if (text != null) element.textContent = text;
    for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
    parent.appendChild(element);
    return element;
  }
  const note = (parent, text) => add(parent, 'p', text, {class: 'note'});

  // items: [value, text]; calls changed(value) at once and on every change.
  function select(parent, name, items, changed) {
    const label = add(parent, 'label', `${name} `);
    const box = add(label, 'select');
    for (const [value, text] of items) add(box, 'option', text, {value});
    box.addEventListener('change', () => changed(box.value));
    return box;
  }

  // columns: {name, of: row → shown text, by: row → sort key (without it: the text), text: left-aligned, long}.
  function table(parent, caption, columns, rows, {order, down, marked} = {}) {
    const frame = add(parent, 'div', null, {class: 'wide', tabindex: 0, role: 'region', 'aria-label': caption});
    const element = add(frame, 'table', null, {'aria-label': caption});
    const head = add(add(element, 'thead'), 'tr');
    const body = add(element, 'tbody');
    const kind = column => (column.text ? 'text' : '') + (column.long ? ' long' : '');
    let list = rows.slice();
    const fill = () => {
      body.textContent = '';
      for (const row of list) {
        const line = add(body, 'tr', null, marked && marked(row) ? {class: 'pick'} : {});
        columns.forEach((column, i) => i ? add(line, 'td', column.of(row), {class: kind(column)})
          : add(line, 'th', column.of(row), {class: kind(column), scope: 'row'}));
      }
    };
    const key = (column, row) => column.by ? column.by(row) : column.of(row);
    const sort = (column, cell, down) => {
      for (const other of head.children) other.removeAttribute('aria-sort');
      cell.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      list = rows.slice().sort((a, b) => {  // what is undefined stays last
        const x = key(column, a), y = key(column, b);
        if (x == null || y == null) return (x == null) - (y == null);
        return (down ? -1 : 1) * (typeof x === 'string' ? x.localeCompare(y, 'en', {numeric: true}) : x - y);
      });
      fill();
    };
    for (const column of columns) {
      const cell = add(head, 'th', null, {scope: 'col', class: kind(column)});
      const button = add(cell, 'button', column.name, {type: 'button', title: column.help || `sort by ${column.name}`});
      button.addEventListener('click', () => sort(column, cell, cell.getAttribute('aria-sort') === 'ascending'));
    }
    if (order != null) sort(columns[order], head.children[order], Boolean(down));
    else fill();
    return element;
  }

  // The same numbers as a table, made when it is opened.
  function asTable(parent, caption, columns, rows) {
    const details = add(parent, 'details');
    add(details, 'summary', 'These numbers as a table');
    details.addEventListener('toggle', () => {
      if (details.open && details.children.length === 1) table(details, caption, columns, rows());
    });
  }

  // Tips --------------------------------------------------------------------------------------------------------
  const tip = $('tip');
  function showTip(text, x, y) {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y + box.height + 24 > innerHeight ? y - box.height - 10 : y + 14}px`;
  }
  const hideTip = () => { tip.hidden = true; };
  // Scrolling to what the keyboard reads moves marks from under a resting mouse, which must not close the tip.
  let byKeys = false;
  const leaveTip = () => { if (!byKeys) hideTip(); };
  addEventListener('keydown', event => { if (event.key === 'Escape') hideTip(); });
  const hover = (selection, text) => selection
    .on('mousemove', d => showTip(text(d), d3.event.clientX, d3.event.clientY))
    .on('mouseleave', leaveTip);

  // Plots -------------------------------------------------------------------------------------------------------
  const roomOf = parent => Math.max(320, Math.min(parent.clientWidth || 900, 1180));
  function svgIn(parent, width, height, label, caption) {
    const figure = d3.select(parent).append('figure');
    if (caption) figure.append('figcaption').text(caption);
    return figure.append('div').attr('class', 'wide').append('svg').attr('width', width).attr('height', height).attr('viewBox', `0 0 ${width} ${height}`)
      .attr('role', 'img').attr('aria-label', label);
  }
  // Colours are those of page.css: a change of theme, or paper, needs no redrawing.
  const redraws = [];
  const drawn = draw => { draw(); redraws.push(draw); };
  let lastWidth = innerWidth, waiting = 0;
  addEventListener('resize', () => {  // phones send one for every appearing address bar
    if (innerWidth === lastWidth) return;
    lastWidth = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(() => redraws.forEach(draw => draw()), 150);
  });
  const dashes = ['', '6 3', '2 3', '8 3 2 3'];
  const pens = 8;
  // Colour and dash together: eight colours would come back otherwise.
  const penOf = i => ({colour: `var(--pen${i % pens})`, dash: dashes[Math.floor(i / pens) % dashes.length]});
  const measure = document.createElement('canvas').getContext('2d');
  measure.font = '12px system-ui, "DejaVu Sans", sans-serif';
  const textWidth = text => measure.measureText(text).width;
  const shorten = (text, room) => {
    let cut = String(text);
    while (cut.length > 4 && textWidth(cut) > room) cut = cut.slice(0, -2);
    return cut === String(text) ? cut : `${cut}…`;
  };
  // Ticks of a log axis: every decade, and 2 and 5 where there are few.
  function logTicks(scale) {
    const [low, high] = scale.domain().sort(d3.ascending);
    const decades = Math.log10(high / low);
    const out = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e)
      for (const m of decades < 3 ? [1, 2, 5] : [1]) out.push(m * 10 ** e);
    return out.filter(v => v >= low * 0.999 && v <= high * 1.001);
  }

  // Answer ------------------------------------------------------------------------------------------------------
  const isReference = row => row.position === 0;
  const bits = row => isReference(row) ? 16 : row.bpw_quantized == null ? 16 : row.bpw_quantized;
  const cacheTokens = 32768;
  const axes = {
    bytes: {name: 'bytes of weights', title: 'bytes of weights, whole model', of: row => row.weight_bytes},
    both: {name: 'weights and KV cache', title: `bytes of weights and of ${cacheTokens} cached tokens`,
      of: row => row.weight_bytes == null || row.kv_bytes_per_token == null ? null : row.weight_bytes + cacheTokens * row.kv_bytes_per_token},
    bits: {name: 'bits per weight', title: 'bits per quantized weight, scales counted', of: bits},
  };
  function drawPareto(parent, evaluation, axis) {
    parent.textContent = '';
    const x = axes[axis].of, title = axes[axis].title;
    const rows = evaluation.rows.filter(row => !isReference(row) && !row.noise_floor && row.kl > 0 && x(row) != null);
    if (!rows.length) { note(parent, 'No scheme has a KL above 0 and a size: nothing to plot.'); return; }
    const reference = evaluation.rows.find(isReference);
    const width = roomOf(parent), height = width < 560 ? 320 : 400;
    const m = {top: 14, right: 16, bottom: 44, left: 78};
    const svg = svgIn(parent, width, height, `Pareto plot of ${rows.length} schemes: ${title} against KL. ` +
      'The table of schemes has the same numbers.')
      .attr('data-plot', 'pareto');
    const low = row => row.kl_low > 0 ? row.kl_low : row.kl / 2;
    const extent = d3.extent(rows.map(x).concat(reference && x(reference) != null ? [x(reference)] : []));
    const pad = (extent[1] - extent[0] || extent[1]) * 0.05;
    const sx = d3.scaleLinear([extent[0] - pad, extent[1] + pad], [m.left, width - m.right]);
    const sy = d3.scaleLog([d3.min(rows, row => Math.min(low(row), row.kl)) * 0.7,
      Math.max(d3.max(rows, row => Math.max(row.kl_high || 0, row.kl)), data.max_kl) * 1.5],
      [height - m.bottom, m.top]);
    const ticks = logTicks(sy);
    const [unit, unitName] = axis === 'bits' ? [1, ''] : extent[1] >= 2 ** 30 ? [2 ** 30, 'GiB'] : [2 ** 20, 'MiB'];
    const xTicks = d3.ticks(sx.domain()[0] / unit, sx.domain()[1] / unit, Math.max(3, width / 110)).map(v => v * unit);
    svg.append('g').attr('class', 'grid').selectAll('line').data(ticks).join('line')
      .attr('x1', m.left).attr('x2', width - m.right).attr('y1', sy).attr('y2', sy);
    svg.append('g').attr('class', 'quiet').attr('transform', `translate(0,${height - m.bottom})`)
      .call(d3.axisBottom(sx).tickValues(xTicks).tickFormat(v => axis === 'bits' ? v : `${Number((v / unit).toPrecision(6))} ${unitName}`));
    svg.append('g').attr('class', 'quiet').attr('transform', `translate(${m.left},0)`)
      .call(d3.axisLeft(sy).tickValues(ticks).tickFormat(three)).select('.domain').remove();
    svg.append('text').attr('class', 'quiet').attr('x', width - m.right).attr('y', height - 8).attr('text-anchor', 'end')
      .text(title);
    svg.append('text').attr('class', 'quiet').attr('x', 14).attr('y', height / 2).attr('text-anchor', 'middle')
      .attr('transform', `rotate(-90 14 ${height / 2})`).text('KL, nats per token (log)');
    if (data.max_kl > sy.domain()[0]) {
      svg.append('line').attr('x1', m.left).attr('x2', width - m.right).attr('y1', sy(data.max_kl)).attr('y2', sy(data.max_kl))
        .style('stroke', 'var(--hot)').attr('stroke-dasharray', '5 4');
      svg.append('text').attr('class', 'quiet').attr('x', width - m.right).attr('y', sy(data.max_kl) - 5)
        .attr('text-anchor', 'end').text(`bearable: ${three(data.max_kl)}`);
    }
    const front = rows.filter(a => !rows.some(b => x(b) <= x(a) && b.kl <= a.kl && (x(b) < x(a) || b.kl < a.kl)))
      .sort((a, b) => x(a) - x(b) || b.kl - a.kl);
    svg.append('path').datum(front).attr('fill', 'none').style('stroke', 'var(--accent)').attr('stroke-opacity', 0.5)
      .attr('d', d3.line().curve(d3.curveStepAfter).x(row => sx(x(row))).y(row => sy(row.kl)));
    const onFront = new Set(front);
    const marks = svg.append('g').selectAll('g').data(rows).join('g').attr('class', 'mark');
    marks.filter(row => row.kl_high != null).append('line').attr('x1', row => sx(x(row))).attr('x2', row => sx(x(row)))
      .attr('y1', row => sy(low(row))).attr('y2', row => sy(row.kl_high)).style('stroke', 'var(--ink)');
    const picked = rows.filter(row => row.position === evaluation.pick);
    marks.filter(row => picked.includes(row)).append('circle').attr('class', 'ring').attr('cx', row => sx(x(row)))
      .attr('cy', row => sy(row.kl)).attr('r', 9);
    marks.append('circle').attr('cx', row => sx(x(row))).attr('cy', row => sy(row.kl)).attr('r', 5)
      .style('fill', row => onFront.has(row) ? 'var(--accent)' : 'var(--ground)').style('stroke', 'var(--accent)')
      .attr('stroke-width', 1.5);
    hover(marks, row => `${row.scheme}\nKL ${withError(row.kl, row.kl_stderr)} nats (± one standard error)\n95 %: ${
      three(row.kl_low)} to ${three(row.kl_high)}\n${bits(row)} bits per weight, ${size(row.weight_bytes)}; KV ${
      cache(row.kv_bytes_per_token)} a token`);
    // Labels where there is room: the answer's scheme and the front first.
    const taken = rows.map(row => ({l: sx(x(row)) - 6, r: sx(x(row)) + 6, t: sy(row.kl) - 6, b: sy(row.kl) + 6}));
    const free = box => box.l >= m.left && box.r <= width - 2 && box.t >= 0 && box.b <= height - m.bottom &&
      !taken.some(o => box.l < o.r && box.r > o.l && box.t < o.b && box.b > o.t);
    let unlabelled = 0;
    for (const row of new Set([...picked, ...front, ...rows.slice().sort((a, b) => a.kl - b.kl)])) {
      const name = shorten(row.scheme, 150), w = textWidth(name), cx = sx(x(row)), cy = sy(row.kl);
      const places = [[cx + 7, cy - 8, 'start'], [cx + 9, cy + 4, 'start'], [cx + 7, cy + 16, 'start'], [cx - 9, cy + 4, 'end'],
        [cx - 7, cy - 8, 'end'], [cx - 7, cy + 16, 'end']];
      const boxOf = ([px, py, anchor]) => ({l: anchor === 'end' ? px - w : px, r: anchor === 'end' ? px : px + w, t: py - 11, b: py + 3});
      const place = places.find(p => free(boxOf(p)));
      if (!place) { ++unlabelled; continue; }
      taken.push(boxOf(place));
      svg.append('text').attr('x', place[0]).attr('y', place[1]).attr('text-anchor', place[2]).text(name)
        .attr('class', picked.includes(row) ? 'label pick' : 'label');
    }
    note(parent, `Lower left is better. Filled: no other scheme is both smaller and closer to the reference.${
      picked.length ? ' Ringed: the answer.' : ''} Bars: 95 % ` +
      `intervals of the mean (Student's t over ${rows[0].windows} windows, ${rows[0].tokens_scored} tokens)` +
      `${reference && x(reference) != null ? `; the reference has KL 0 at ${axis === 'bits' ? '16 bits' : size(x(reference))}` : ''}` +
      `${axis === 'bytes' && rows.some(row => row.kv_bytes_per_token !== rows[0].kv_bytes_per_token) ? '; the bytes of the cache are not in it' : ''}` +
      `${unlabelled ? `; without room for a name: ${unlabelled} (point at the marks)` : ''}.`);
  }

  function recoveryOf(evaluation) {  // scheme position → mean over tasks of accuracy over the reference's
    const tasks = data.tasks.find(t => t.run === evaluation.run);
    const out = new Map();
    if (!tasks) return out;
    const reference = new Map(tasks.rows.filter(isReference).map(row => [row.task, row.acc]));
    for (const [position, rows] of d3.nest().key(row => row.position).entries(tasks.rows).map(e => [Number(e.key), e.values])) {
      const shares = rows.filter(row => row.acc != null && reference.get(row.task) > 0).map(row => row.acc / reference.get(row.task));
      if (shares.length) out.set(position, d3.mean(shares));
    }
    return out;
  }

  function drawSchemes(parent, evaluation) {
    parent.textContent = '';
    add(parent, 'h3', 'Schemes');
    const recovery = recoveryOf(evaluation);
    const reference = evaluation.rows.find(isReference);
    const columns = [
      {name: 'scheme', of: row => row.scheme, text: true},
      {name: 'KL, nats/token', of: row => isReference(row) && row.kl != null ? '0' : withError(row.kl, row.kl_stderr), by: row => row.kl},
      {name: 'perplexity', of: row => withError(row.ppl, row.ppl_stderr, 2), by: row => row.ppl},
      {name: 'Δ perplexity', of: row => isReference(row) ? '0' : row.ppl == null || !reference || reference.ppl == null ? none
        : withError(row.ppl - reference.ppl, row.ln_ppl_ratio_stderr == null ? null : row.ppl * row.ln_ppl_ratio_stderr),
       by: row => reference && row.ppl != null ? row.ppl - reference.ppl : null,
       help: "against the reference's; its ± is of the paired difference"},
      {name: 'top-1 %', of: row => isReference(row) ? percent(row.top1)
        : withError(row.top1 == null ? null : 100 * row.top1, row.top1_stderr == null ? null : 100 * row.top1_stderr), by: row => row.top1},
      {name: 'bits/weight', of: row => bits(row).toFixed(3), by: bits},
      {name: 'weights', of: row => size(row.weight_bytes), by: row => row.weight_bytes},
      {name: 'KV/token', of: row => cache(row.kv_bytes_per_token), by: row => row.kv_bytes_per_token},
      {name: 'KL p99', of: row => three(row.kl_p99), by: row => row.kl_p99},
      {name: 'flips', of: row => row.margin_flips == null ? none : String(row.margin_flips), by: row => row.margin_flips,
       help: 'top-1 changes where the reference led by more than 0.1'},
    ];
    if (recovery.size) columns.push({name: 'recovery %', of: row => recovery.has(row.position) ? percent(recovery.get(row.position)) : none,
      by: row => recovery.get(row.position), help: "mean over tasks of the accuracy over the reference's"});
    table(parent, 'Schemes, sorted by KL', columns, evaluation.rows,
      {order: 1, marked: row => row.position === evaluation.pick});
    note(parent, `± is one standard error, clustered by window (${reference ? `${reference.windows} windows, ${
      reference.tokens_scored} scored tokens` : 'no reference'}). A heading sorts.${recovery.size ? '' : ' Recovery: no tasks were measured in this run.'}`);
    const troubled = evaluation.rows.filter(row => row.status !== 'ok' || row.notes.length);
    if (troubled.length) {
      const details = add(parent, 'details');
      add(details, 'summary', `Notes on ${troubled.length} rows`);
      const list = add(details, 'ul');
      for (const row of troubled)
        for (const text of (row.status === 'ok' ? [] : [row.status]).concat(row.notes)) add(list, 'li', `${row.scheme}: ${text}`);
    }
    const details = add(parent, 'details');
    add(details, 'summary', 'What the names stand for');
    table(details, 'Schemes in full', [{name: 'scheme', of: row => row.scheme, text: true},
      {name: 'in full', of: row => row.spec, text: true, long: true}], evaluation.rows);
  }

  const runName = id => {
    const run = runs.get(id), p = run.protocol;
    return `run ${id}: ${run.command}${p.windows ? `, ${p.windows} windows of ${p.ctx} tokens` : ''}`;
  };
  function answerSection() {
    const body = $('answer-body'), pareto = $('pareto'), schemes = $('schemes');
    if (!data.evaluations.length) { note(body, 'No scheme was evaluated in these runs.'); return; }
    let evaluation = data.evaluations[data.evaluations.length - 1], axis = 'bytes';
    const controls = add(body, 'div', null, {class: 'controls'});
    const words = add(body, 'div');
    const plotControls = add(pareto, 'div');
    add(plotControls, 'h3', 'Size against damage');
    const axisControls = add(plotControls, 'div', null, {class: 'controls'});
    const plot = add(pareto, 'div');
    const draw = () => {
      words.textContent = '';
      evaluation.answer.forEach((text, i) => add(words, 'p', text, {class: i ? 'more' : 'verdict'}));
      drawPareto(plot, evaluation, axis);
      drawSchemes(schemes, evaluation);
    };
    if (data.evaluations.length > 1) {
      const box = select(controls, 'Evaluation', data.evaluations.map(e => [e.run, runName(e.run)]), value => {
        evaluation = data.evaluations.find(e => String(e.run) === value);
        draw();
      });
      box.value = evaluation.run;
    }
    select(axisControls, 'Size as', Object.entries(axes).map(([key, {name}]) => [key, name]), value => { axis = value; drawPareto(plot, evaluation, axis); });
    draw();
    redraws.push(() => drawPareto(plot, evaluation, axis));
  }

  // Where it hurts ----------------------------------------------------------------------------------------------
  const decoded = new Map();
  // Packed values (report_page.hpp): one array a map and metric, schemes × layers.
  function values(map, metric) {
    const text = map.metrics[metric];
    if (!text) return null;
    if (!decoded.has(text)) {
      const bytes = atob(text), out = new Array(bytes.length / 2);
      for (let i = 0; i < out.length; ++i) {
        const code = bytes.charCodeAt(2 * i) | bytes.charCodeAt(2 * i + 1) << 8;
        out[i] = code === 65535 ? null : code === 0 ? 0 : 2 ** ((code - 1) / 1024 - 32);
      }
      decoded.set(text, out);
    }
    return decoded.get(text);
  }
  const metricNames = {
    row_error_p50: 'median row', row_error_p90: 'row at p90', rel_error: 'pooled', rel_error_rest: 'pooled, without massive rows',
    rel_error_residual: 'against the residual stream', cosine_distance: '1 − cosine',
  };
  const kindNames = {
    weight: 'weight', activation: 'input', output: 'output', key: 'keys', value: 'values', attention_weights: 'attention weights (KL, nats)',
    attention_output: 'attention output',
  };
  const siteName = map => map.module === 'layer' ? 'residual stream' : map.module === 'self_attn'
    ? kindNames[map.kind] || map.kind : `${map.module} ${kindNames[map.kind] || map.kind}`;
  const scopeNames = {local: 'local: this place alone', inherited: 'inherited: what came before', total: 'total: both'};

  // Layers across, schemes down. cells(scheme, layer) → value or null.
  function heatMap(parent, {label, caption, rows, layers, cells, unit, plot, room = roomOf(parent)}) {
    const longest = Math.min(d3.max(rows, row => textWidth(row.name)) || 0, room < 560 ? 110 : 190);
    const m = {top: 22, right: 12, bottom: 40, left: longest + 12};
    const cell = Math.max(10, Math.min(44, (room - m.left - m.right) / layers));
    const tall = Math.max(16, Math.min(24, cell));
    const width = Math.max(m.left + m.right + cell * layers, m.left + 290), height = m.top + m.bottom + tall * rows.length;
    const svg = svgIn(parent, width, height, `${label}. Arrow keys read its cells.`, caption).attr('data-plot', plot).attr('tabindex', 0);
    const all = [];
    rows.forEach((row, r) => { for (let l = 0; l < layers; ++l) all.push({r, l, row, v: cells(row, l)}); });
    const positive = all.filter(c => c.v > 0).map(c => c.v);
    // A factor of 4 at least: less would show a difference of nothing as black and white.
    const [least, high] = positive.length ? d3.extent(positive) : [1, 1], low = Math.min(least, high / 4);
    const shade = share => `color-mix(in oklab, var(--hot) ${(100 * share).toFixed(1)}%, var(--cold))`;
    const place = v => Math.log(v / low) / Math.log(high / low);
    const colour = c => c.v === 0 ? 'var(--ground)' : shade(place(c.v));
    const text = c => `${c.row.name}, layer ${c.l}: ${c.v == null ? 'not measured or undefined' : `${three(c.v)} ${unit}`}`;
    const marks = svg.append('g').selectAll('rect').data(all.filter(c => c.v != null)).join('rect')
      .attr('x', c => m.left + c.l * cell).attr('y', c => m.top + c.r * tall).attr('width', cell - 1).attr('height', tall - 1)
      .style('fill', colour).attr('class', 'cell');
    hover(marks, text);
    svg.append('g').selectAll('text').data(rows).join('text').attr('x', m.left - 6).attr('y', (row, r) => m.top + (r + 0.5) * tall + 4)
      .attr('text-anchor', 'end').text(row => shorten(row.name, longest)).append('title').text(row => row.name);
    const every = Math.ceil(26 / cell);
    svg.append('g').attr('class', 'quiet').selectAll('text').data(d3.range(0, layers, every)).join('text')
      .attr('x', l => m.left + (l + 0.5) * cell).attr('y', m.top - 6).attr('text-anchor', 'middle').text(l => l);
    svg.append('text').attr('class', 'quiet').attr('x', m.left - 6).attr('y', m.top - 6).attr('text-anchor', 'end').text('layer');
    // Legend: the scale is of logarithms.
    const ly = height - 24, lw = Math.min(160, width - m.left - 130);
    if (positive.length && lw > 40) {
      const x0 = m.left + textWidth(three(low)) + 6;
      svg.append('g').selectAll('rect').data(d3.range(20)).join('rect').attr('x', i => x0 + i * lw / 20).attr('y', ly)
        .attr('width', lw / 20 + 0.5).attr('height', 12).style('fill', i => shade(i / 19));
      svg.append('text').attr('class', 'quiet').attr('x', x0 - 5).attr('y', ly + 10).attr('text-anchor', 'end').text(three(low));
      svg.append('text').attr('class', 'quiet').attr('x', x0 + lw + 5).attr('y', ly + 10).text(`${three(high)} (log)`);
    }
    // Arrow keys walk over the cells.
    let at = null;
    const cursor = svg.append('rect').attr('class', 'cursor').attr('width', cell - 1).attr('height', tall - 1).attr('visibility', 'hidden');
    svg.on('keydown', () => {
      const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[d3.event.key];
      if (!step) return;
      d3.event.preventDefault();
      at = at ? [Math.max(0, Math.min(rows.length - 1, at[0] + step[0])), Math.max(0, Math.min(layers - 1, at[1] + step[1]))] : [0, 0];
      cursor.attr('x', m.left + at[1] * cell).attr('y', m.top + at[0] * tall).attr('visibility', 'visible');
      const box = cursor.node().getBoundingClientRect();
      byKeys = true;
      showTip(text(all[at[0] * layers + at[1]]), box.right, box.bottom);
    }).on('blur', () => {
      cursor.attr('visibility', 'hidden');
      byKeys = false;
      hideTip();
    });
    asTable(parent, label, [{name: 'scheme', of: c => c.row.name, text: true}, {name: 'layer', of: c => String(c.l), by: c => c.l},
      {name: unit, of: c => three(c.v), by: c => c.v}], () => all.filter(c => c.v != null));
  }

  // The schemes that a map has numbers for; those without error anywhere are counted apart.
  function schemesIn(errors, vs) {
    const rows = errors.schemes.map((name, position) => ({name, position}));
    const of = row => vs.slice(row.position * errors.layers, (row.position + 1) * errors.layers);
    const hurt = rows.filter(row => of(row).some(v => v > 0));
    const exact = rows.filter(row => row.position > 0 && of(row).some(v => v === 0) && !of(row).some(v => v > 0));
    return {hurt, exact};
  }

  const relative = map => map.kind === 'attention_weights' ? 'nats per query' : 'relative error';
  function heatSection() {
    const parent = $('heat');
    add(parent, 'h3', 'Layer by format');
    const usable = data.errors.filter(e => e.maps.length);
    if (!usable.length) { note(parent, 'No layer errors were measured (quantmap error).'); return; }
    let errors = usable.reduce((best, e) => e.maps.length >= best.maps.length ? e : best);
    const controls = add(parent, 'div', null, {class: 'controls'});
    const body = add(parent, 'div');
    const boxes = {};
    const chosen = () => errors.maps.find(map => `${map.scope} ${map.kind} ${map.module}` === boxes.site.value);
    const draw = () => {
      body.textContent = '';
      const map = chosen(), metric = boxes.metric.value, vs = map && values(map, metric);
      if (!vs) { note(body, 'This metric is undefined at this place.'); return; }
      const {hurt, exact} = schemesIn(errors, vs);
      if (hurt.length) {
        const unit = metric === 'cosine_distance' ? '1 − cosine' : relative(map);
        const what = `${siteName(map)}, ${map.scope}, ${metricNames[metric]}`;
        heatMap(body, {label: `Heat map of ${what}: ${hurt.length} schemes by ${errors.layers} layers`, caption: what,
          rows: hurt, layers: errors.layers, cells: (row, l) => vs[row.position * errors.layers + l], unit, plot: 'heat'});
      }
      note(body, `${runName(errors.run)}. Rows are tokens (output channels of a weight); one massive token can own a pooled error, so the median row comes first.` +
        (exact.length ? ` No error here at all: ${exact.map(row => row.name).join(', ')}.` : '') +
        (errors.undefined ? ` ${errors.undefined} values of this run are undefined or not finite.` : ''));
    };
    const fillMetrics = () => {
      const map = chosen(), before = boxes.metric.value;
      boxes.metric.textContent = '';
      for (const name of Object.keys(metricNames)) if (map && map.metrics[name]) add(boxes.metric, 'option', metricNames[name], {value: name});
      if ([...boxes.metric.options].some(o => o.value === before)) boxes.metric.value = before;
      draw();
    };
    const worst = map => d3.max(values(map, 'row_error_p50') || values(map, 'rel_error') || [0]) || 0;
    const fillSites = () => {
      const scope = boxes.scope.value, maps = errors.maps.filter(map => map.scope === scope);
      boxes.site.textContent = '';
      for (const map of maps) add(boxes.site, 'option', siteName(map), {value: `${map.scope} ${map.kind} ${map.module}`});
      // Where it hurts most, of the places that every Linear has; keys and values have their own maps below.
      const first = maps.filter(map => map.kind === 'output').concat(maps)[0];
      const best = maps.filter(map => map.kind === 'output').reduce((a, map) => worst(map) > worst(a) ? map : a, first);
      boxes.site.value = `${best.scope} ${best.kind} ${best.module}`;
      fillMetrics();
    };
    const fillScopes = () => {
      boxes.scope.textContent = '';
      for (const scope of ['local', 'inherited', 'total'])
        if (errors.maps.some(map => map.scope === scope)) add(boxes.scope, 'option', scopeNames[scope], {value: scope});
      fillSites();
      drawWorst();
    };
    boxes.run = usable.length > 1 ? select(controls, 'Run', usable.map(e => [e.run, runName(e.run)]), value => {
      errors = usable.find(e => String(e.run) === value);
      fillScopes();
    }) : null;
    boxes.scope = select(controls, 'Scope', [], fillSites);
    boxes.site = select(controls, 'Site', [], fillMetrics);
    boxes.metric = select(controls, 'Metric', [], draw);
    if (boxes.run) boxes.run.value = errors.run;
    const worstBody = add(parent, 'div');
    const drawWorst = () => {
      worstBody.textContent = '';
      const worst = new Map();  // scheme position → its worst local place by the median row
      for (const map of errors.maps) {
        const vs = map.scope === 'local' && map.kind !== 'attention_weights' && values(map, 'row_error_p50');
        if (vs) vs.forEach((v, i) => {
          const position = Math.floor(i / errors.layers);
          if (v > 0 && !(worst.has(position) && worst.get(position).v >= v)) worst.set(position, {v, i, map});
        });
      }
      const stream = errors.maps.find(map => map.module === 'layer' && map.scope === 'total');
      const ends = stream && values(stream, 'row_error_p50');
      const rows = [...worst].map(([position, {v, i, map}]) => ({scheme: errors.schemes[position], v, map, layer: i % errors.layers,
        pooled: (values(map, 'rel_error') || [])[i], end: ends ? ends[(position + 1) * errors.layers - 1] : null}));
      if (!rows.length) return;
      add(worstBody, 'h3', 'The worst place of each scheme');
      table(worstBody, 'The worst place of each scheme by the median row', [
        {name: 'scheme', of: d => d.scheme, text: true}, {name: 'site', of: d => siteName(d.map), text: true},
        {name: 'layer', of: d => String(d.layer), by: d => d.layer},
        {name: 'median row', of: d => three(d.v), by: d => d.v}, {name: 'pooled', of: d => three(d.pooled), by: d => d.pooled},
        ...(ends ? [{name: 'residual stream at the end', of: d => three(d.end), by: d => d.end}] : []),
      ], rows, {order: 3, down: true});
      note(worstBody, `Relative errors of that place alone (local)${ends ? ', and of the residual stream after the last layer (total)' : ''}. ` +
        'A median of 1 means that the typical row is lost.');
    };
    fillScopes();
    redraws.push(draw);
  }

  function growthSection() {
    const parent = $('growth');
    add(parent, 'h3', 'Error growth with depth');
    const streams = data.errors.map(errors => ({errors, map: errors.maps.find(m => m.module === 'layer' && m.scope === 'total')}))
      .filter(s => s.map && values(s.map, 'row_error_p50'));
    if (!streams.length) { note(parent, 'The residual stream was not measured in these runs.'); return; }
    let stream = streams.reduce((best, s) => s.errors.schemes.length > best.errors.schemes.length ? s : best);
    const controls = add(parent, 'div', null, {class: 'controls'});
    const body = add(parent, 'div');
    const draw = () => {
      body.textContent = '';
      const {errors, map} = stream, vs = values(map, 'row_error_p50');
      const lines = schemesIn(errors, vs).hurt.map((row, i) => ({...row, pen: penOf(i),
        points: d3.range(errors.layers).map(l => ({l, v: vs[row.position * errors.layers + l]})).filter(p => p.v > 0)}));
      if (!lines.length) { note(body, 'No scheme changes the residual stream.'); return; }
      const width = roomOf(body), names = width < 560 ? 0 : Math.min(180, d3.max(lines, line => textWidth(line.name)) + 24);
      const height = width < 560 ? 300 : 380, m = {top: 12, right: names + 14, bottom: 42, left: 78};
      const svg = svgIn(body, width, height, `Lines of the residual stream's error over ${errors.layers} layers for ${lines.length} schemes`).attr('data-plot', 'growth');
      const sx = d3.scaleLinear([0, Math.max(1, errors.layers - 1)], [m.left, width - m.right]);
      const every = d3.merge(lines.map(line => line.points.map(p => p.v)));
      const sy = d3.scaleLog([d3.min(every) * 0.8, d3.max(every) * 1.25], [height - m.bottom, m.top]);
      const ticks = logTicks(sy);
      svg.append('g').attr('class', 'grid').selectAll('line').data(ticks).join('line').attr('x1', m.left).attr('x2', width - m.right).attr('y1', sy).attr('y2', sy);
      svg.append('g').attr('class', 'quiet').attr('transform', `translate(0,${height - m.bottom})`)
        .call(d3.axisBottom(sx).ticks(Math.min(errors.layers, width / 60)).tickFormat(d3.format('d')));
      svg.append('g').attr('class', 'quiet').attr('transform', `translate(${m.left},0)`).call(d3.axisLeft(sy).tickValues(ticks).tickFormat(three)).select('.domain').remove();
      svg.append('text').attr('class', 'quiet').attr('x', width - m.right).attr('y', height - 8).attr('text-anchor', 'end').text('layer');
      svg.append('text').attr('class', 'quiet').attr('x', 14).attr('y', height / 2).attr('text-anchor', 'middle')
        .attr('transform', `rotate(-90 14 ${height / 2})`).text('relative error, median token (log)');
      const path = d3.line().x(p => sx(p.l)).y(p => sy(p.v));
      const groups = svg.append('g').selectAll('g').data(lines).join('g').attr('class', 'series');
      const strokes = groups.append('path').attr('fill', 'none').attr('stroke-width', 2).style('stroke', line => line.pen.colour)
        .attr('stroke-dasharray', line => line.pen.dash).attr('d', line => path(line.points));
      const raise = line => strokes.attr('stroke-opacity', other => !line || other === line ? 1 : 0.15);
      groups.append('g').selectAll('circle').data(line => line.points.map(p => ({...p, line}))).join('circle')
        .attr('cx', p => sx(p.l)).attr('cy', p => sy(p.v)).attr('r', 6).attr('fill', 'transparent')
        .on('mousemove', p => { raise(p.line); showTip(`${p.line.name}, layer ${p.l}: ${three(p.v)}`, d3.event.clientX, d3.event.clientY); })
        .on('mouseleave', () => { raise(null); leaveTip(); });
      if (names) {  // at the lines' ends, pushed apart; as many as fit
        const ends = lines.map(line => ({line, y: sy(line.points[line.points.length - 1].v)})).sort((a, b) => a.y - b.y);
        const fit = Math.floor((height - m.bottom - m.top) / 14), shown = ends.length <= fit ? ends
          : ends.filter((e, i) => Math.floor(i * fit / ends.length) !== Math.floor((i - 1) * fit / ends.length));
        shown.forEach((end, i) => { end.at = Math.max(end.y, i ? shown[i - 1].at + 14 : m.top + 4); });
        for (let i = shown.length - 1, limit = height - m.bottom; i >= 0; --i, limit -= 14) shown[i].at = Math.min(shown[i].at, limit);
        for (const end of shown) {
          const x0 = width - m.right + 3;
          svg.append('path').attr('fill', 'none').style('stroke', end.line.pen.colour).attr('stroke-opacity', 0.7)
            .attr('d', `M${x0 - 3},${end.y}L${x0 + 10},${end.at}`);
          svg.append('text').attr('x', x0 + 14).attr('y', end.at + 4).text(shorten(end.line.name, names - 16))
            .on('mouseenter', () => raise(end.line)).on('mouseleave', () => raise(null));
        }
        if (shown.length < ends.length) note(body, `${shown.length} of ${ends.length} names have room; point at a line for its name.`);
      } else {
        const key = add(body, 'p', null, {class: 'note'});
        for (const line of lines) {
          add(key, 'span', `— ${line.name}`, {class: 'key'}).style.color = line.pen.colour;
          key.append(' ');
        }
      }
      note(body, `The residual stream after each layer against the reference's (${runName(errors.run)}).`);
      asTable(body, 'Error of the residual stream', [{name: 'scheme', of: p => p.name, text: true}, {name: 'layer', of: p => String(p.l), by: p => p.l},
        {name: 'median token', of: p => three(p.v), by: p => p.v}], () => d3.merge(lines.map(line => line.points.map(p => ({...p, name: line.name})))));
    };
    if (streams.length > 1) {
      const box = select(controls, 'Run', streams.map(s => [s.errors.run, runName(s.errors.run)]), value => {
        stream = streams.find(s => String(s.errors.run) === value);
        draw();
      });
      box.value = stream.errors.run;
    }
    drawn(draw);
  }

  function cacheSection() {
    const parent = $('cache');
    add(parent, 'h3', 'Keys and values');
    const body = add(parent, 'div');
    const found = data.errors.map(errors => ({errors, maps: ['key', 'value'].map(kind => errors.maps.find(m => m.kind === kind && m.scope === 'local') ||
      errors.maps.find(m => m.kind === kind && m.scope === 'total')).filter(Boolean)}))
      .filter(f => f.maps.some(map => (values(map, 'row_error_p50') || []).some(v => v > 0)));
    if (!found.length) { note(body, 'No scheme with a quantized cache has layer errors in these runs.'); return; }
    drawn(() => {
      body.textContent = '';
      const {errors, maps} = found[found.length - 1], pair = add(body, 'div', null, {class: 'pair'});
      for (const map of maps) {
        const vs = values(map, 'row_error_p50'), {hurt} = vs ? schemesIn(errors, vs) : {hurt: []};
        if (!hurt.length) continue;
        heatMap(add(pair, 'div'), {room: roomOf(body), label: `Heat map of ${kindNames[map.kind]}: ${hurt.length} schemes by ${errors.layers} layers`,
          caption: `${map.kind === 'key' ? 'Keys' : 'Values'} as cached, ${map.scope}, median row`, rows: hurt, layers: errors.layers,
          cells: (row, l) => vs[row.position * errors.layers + l], unit: 'relative error', plot: map.kind});
      }
      note(body, `${runName(errors.run)}. A row is what one token and head keeps.`);
    });
  }

  function outlierSection() {
    const parent = $('outliers');
    add(parent, 'h3', 'Outliers');
    const outliers = data.outliers[data.outliers.length - 1];
    if (!outliers) { note(parent, 'Outliers were not measured (quantmap outliers).'); return; }
    const run = runs.get(outliers.run);
    const controls = add(parent, 'div', null, {class: 'controls'});
    const body = add(parent, 'div');
    const sites = outliers.sites.filter(s => s.layer >= 0);
    const names = {amax: 'largest magnitude', crest: 'crest factor (largest over root mean square)', kurtosis: 'kurtosis (normal: 3)'};
    let metric = 'amax';
    select(controls, 'Show', Object.entries(names), value => { metric = value; draw(); });
    const title = s => s.module === 'layer' ? 'residual stream' : s.module === 'self_attn' ? `${s.tensor}s` : `${s.module} ${s.tensor}`;
    const draw = () => {
      body.textContent = '';
      const rows = [...new Set(sites.map(title))].map(name => ({name}));
      const byPlace = new Map(sites.map(s => [`${title(s)} ${s.layer}`, s]));
      if (rows.length) heatMap(body, {label: `Heat map of the reference's ${names[metric]}: ${rows.length} sites by layer`, rows,
        layers: d3.max(sites, s => s.layer) + 1, unit: names[metric], plot: 'outliers',
        cells: (row, l) => { const s = byPlace.get(`${row.name} ${l}`); return s ? s[metric] : null; }});
    };
    drawn(draw);
    const after = add(parent, 'div');
    if (outliers.massive.length) {
      // A place is a site, token position and channel; its largest value over windows.
      const places = d3.nest().key(o => `${o.site} ${o.token} ${o.channel}`).entries(outliers.massive)
        .map(e => ({...e.values.reduce((a, o) => Math.abs(o.value) > Math.abs(a.value) ? o : a), windows: e.values.length}));
      table(after, 'Massive activations', [{name: 'site', of: o => o.site, text: true}, {name: 'layer', of: o => String(o.layer), by: o => o.layer},
        {name: 'token', of: o => String(o.token), by: o => o.token}, {name: 'channel', of: o => String(o.channel), by: o => o.channel},
        {name: 'value', of: o => three(o.value), by: o => o.value == null ? null : Math.abs(o.value)},
        {name: 'times median', of: o => three(o.ratio), by: o => o.ratio}, {name: 'windows', of: o => `${o.windows} of ${run.protocol.windows}`, by: o => o.windows}], places);
    } else note(after, 'No massive activations: no value is above 100 and 1000 times its tensor’s median magnitude.');
    if (outliers.shares.length) {
      const details = add(after, 'details');
      add(details, 'summary', 'What share of the squared error massive values, their rows and first tokens carry');
      table(details, 'Shares of the squared error, summed over layers', [{name: 'scheme', of: s => s.scheme, text: true}, {name: 'input of', of: s => s.module, text: true},
        {name: 'massive values %', of: s => percent(s.massive_values), by: s => s.massive_values}, {name: 'massive rows %', of: s => percent(s.massive_rows), by: s => s.massive_rows},
        {name: 'first tokens %', of: s => percent(s.first_tokens), by: s => s.first_tokens}], outliers.shares);
    }
    note(after, `The unquantized model (${runName(outliers.run)}).`);
  }

  // Tasks -------------------------------------------------------------------------------------------------------
  function taskSection() {
    const parent = $('tasks-body');
    if (!data.tasks.length) { note(parent, 'No tasks were measured (quantmap eval --tasks).'); return; }
    for (const tasks of data.tasks) {
      note(parent, runName(tasks.run));
      const plot = add(parent, 'div');
      drawn(() => drawTasks(plot, tasks));
      const share = name => ({name: `${name} %`, of: row => percent(row[name]), by: row => row[name]});
      table(parent, `Task scores of run ${tasks.run}`, [{name: 'task', of: row => row.task, text: true}, {name: 'scheme', of: row => row.scheme, text: true},
        {name: 'items', of: row => String(row.items), by: row => row.items},
        {name: 'accuracy %', of: row => row.acc == null ? none : row.acc_stderr == null ? percent(row.acc) : withError(100 * row.acc, 100 * row.acc_stderr), by: row => row.acc},
        share('acc_norm'), share('acc_bytes'), share('acc_tokens'),
        ...(tasks.rows.some(row => row.ppl != null) ? [{name: 'perplexity', of: row => three(row.ppl), by: row => row.ppl}] : []),
        {name: 'flips', of: row => row.position === 0 ? '0' : String(row.flips), by: row => row.flips, help: 'items that one of scheme and reference got right and the other wrong'},
        {name: 'flips %', of: row => row.items ? percent(row.flips / row.items) : none, by: row => row.items ? row.flips / row.items : null},
        {name: 'status', of: row => row.status, text: true}], tasks.rows);
      note(parent, '± is one standard error over items. Flips: items that the reference got right and the scheme wrong, or the other way round; equal accuracies can hide many.');
    }
  }
  function drawTasks(parent, tasks) {
    parent.textContent = '';
    const rows = tasks.rows.filter(row => row.acc != null);
    if (!rows.length) return;
    const names = [...new Set(rows.map(row => row.task))], schemes = [...new Set(rows.map(row => row.scheme))];
    const width = roomOf(parent), m = {top: 8, right: 14, bottom: 40, left: Math.min(150, d3.max(names, textWidth) + 12)};
    const tall = Math.max(22, 9 * schemes.length + 8), height = m.top + m.bottom + tall * names.length;
    const svg = svgIn(parent, width, height, `Accuracy of ${schemes.length} schemes on ${names.length} tasks; the table below has the same numbers.`).attr('data-plot', 'tasks');
    const low = row => row.acc - 1.96 * (row.acc_stderr || 0), high = row => row.acc + 1.96 * (row.acc_stderr || 0);
    const sx = d3.scaleLinear([Math.max(0, d3.min(rows, low)), Math.min(1, d3.max(rows, high))], [m.left, width - m.right]).nice();
    svg.append('g').attr('class', 'quiet').attr('transform', `translate(0,${height - m.bottom})`).call(d3.axisBottom(sx).ticks(width / 90).tickFormat(v => `${Number((100 * v).toFixed(1))} %`));
    svg.append('text').attr('class', 'quiet').attr('x', width - m.right).attr('y', height - 6).attr('text-anchor', 'end').text('accuracy, 95 % normal interval over items');
    names.forEach((name, t) => {
      svg.append('text').attr('x', m.left - 6).attr('y', m.top + (t + 0.5) * tall + 4).attr('text-anchor', 'end').text(shorten(name, m.left - 10));
      if (t) svg.append('line').attr('x1', 0).attr('x2', width).attr('y1', m.top + t * tall).attr('y2', m.top + t * tall).style('stroke', 'var(--line)');
    });
    const y = row => m.top + names.indexOf(row.task) * tall + 8 + schemes.indexOf(row.scheme) * 9;
    const marks = svg.append('g').selectAll('g').data(rows).join('g').attr('class', 'mark');
    marks.append('line').attr('x1', row => sx(Math.max(0, low(row)))).attr('x2', row => sx(Math.min(1, high(row)))).attr('y1', y).attr('y2', y).style('stroke', row => penOf(schemes.indexOf(row.scheme)).colour);
    marks.append('circle').attr('cx', row => sx(row.acc)).attr('cy', y).attr('r', 4).style('fill', row => isReference(row) ? 'var(--ground)' : penOf(schemes.indexOf(row.scheme)).colour)
      .style('stroke', row => penOf(schemes.indexOf(row.scheme)).colour).attr('stroke-width', 1.5);
    hover(marks, row => `${row.scheme}, ${row.task}: ${withError(100 * row.acc, 100 * (row.acc_stderr || 0))} % of ${row.items} items; ${row.flips} flips`);
    const key = add(parent, 'p', null, {class: 'note'});
    schemes.forEach((name, i) => {
      const item = add(key, 'span', null, {class: 'key'});
      add(item, 'span', '● ').style.color = penOf(i).colour;
      add(item, 'span', name);
      key.append(' ');
    });
  }

  // Provenance --------------------------------------------------------------------------------------------------
  function provenanceSection() {
    const parent = $('provenance-body');
    for (const run of data.runs) {
      add(parent, 'h3', `Run ${run.run}: ${run.command}`);
      const list = add(parent, 'dl');
      const item = (name, value, code) => {
        if (value == null || value === '') return;
        add(list, 'dt', name);
        const place = add(list, 'dd');
        add(place, code ? 'code' : 'span', String(value));
      };
      const p = run.protocol;
      item('command line', run.command_line, true);
      item('model', run.model_type ? `${run.model} (${run.model_type})` : run.model);
      item('model SHA-256', run.fingerprints.model, true);
      item('tokenizer SHA-256', run.fingerprints.tokenizer, true);
      item('text', run.text);
      item('text SHA-256', run.fingerprints.text, true);
      item('token ids SHA-256', run.fingerprints.token_ids, true);
      if (p.windows) item('protocol', `${p.name ? `${p.name}: ` : ''}${p.windows} windows of ${p.ctx} tokens${p.stride ? `, stride ${p.stride}` : ''}${
        p.score ? `, score ${p.score}` : ''}${p.bos ? `, BOS ${p.bos}` : ''}; ${p.text_tokens} tokens of text, ${p.dropped_tokens} dropped`);
      item('compute', p.compute);
      item('machine', `${run.machine}; ${run.device}, ${run.threads} threads`);
      item('seed', run.seed);
      item('quantmap', `${run.version} (${run.git_revision})`);
      item('time', `${run.started_at} to ${run.finished_at}`);
      for (const text of run.notes) if (typeof text === 'string') item('note', text);
    }
  }

  const main = data.evaluations.length ? runs.get(data.evaluations[data.evaluations.length - 1].run) : data.runs[data.runs.length - 1];
  $('title').textContent = `What quantizing ${main.model} costs`;
  document.title = `${main.model}: quantmap report`;
  const moment = text => text.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\dZ$/, '$1 $2 UTC');
  $('measured').textContent = `On ${main.text || 'its weights alone'}, compute ${main.protocol.compute}; ${
    data.runs.length === 1 ? 'run' : 'runs'} ${data.runs.map(r => r.run).join(', ')}; ${moment(main.finished_at)}.`;
  answerSection();
  heatSection();
  growthSection();
  cacheSection();
  outlierSection();
  taskSection();
  provenanceSection();
  document.documentElement.setAttribute('data-drawn', 'true');
})();
