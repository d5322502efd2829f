// Line charts and the surface, drawn by plotly from the embedded numbers. Lines are named where they end.
"use strict";
const Charts = (() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const find = (data, name) => data.mechanisms.find((m) => m.name === name);
  const mean = (list) => {
    const known = list.filter((x) => !Number.isNaN(x));
    return known.length ? known.reduce((a, b) => a + b, 0) / known.length : NaN;
  };
  const gaps = (list) => list.map((x) => (Number.isFinite(x) ? x : null));
  const faded = (colour, alpha) => `rgba(${[1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)).join(",")},${alpha})`;

  // A quantity over all cells, or over degrees at the first level: one party's, or the mean of all (party < 0).
  function series(data, mechanism, name, party, cells) {
    const pick = party < 0 ? data.parties.map((_, p) => p) : [party];
    const get = (part) => cells.map((k) => mean(pick.map((p) => Engine.at(mechanism, name, p, k, part))));
    return { value: get("value"), low: get("low"), high: get("high") };
  }

  function scores(data, mechanism, mode, party, cells) {
    const pick = party < 0 ? data.parties.map((_, p) => p) : [party], size = mechanism.degrees.length * mechanism.levels.length;
    const get = (part) => cells.map((k) => mean(pick.map((p) => Engine.revive(mechanism.scores[mode][part][p * size + k]))));
    return { value: get("value"), low: get("low"), high: get("high") };
  }

  // Degrees where something was measured: a refused one has nothing to show.
  const known = (mechanism) => mechanism.degrees.filter((_, i) =>
    Object.values(mechanism.scores).some(({ value }) => value.some((score, k) => score !== null && Math.floor(k / mechanism.levels.length) % mechanism.degrees.length === i)));
  const allCells = (mechanism) => mechanism.degrees.flatMap((_, i) => mechanism.levels.map((_, j) => i * mechanism.levels.length + j));
  const firstCells = (mechanism) => mechanism.degrees.map((_, i) => i * mechanism.levels.length);
  const rowCells = (mechanism, i) => mechanism.levels.map((_, j) => i * mechanism.levels.length + j);

  // --- drawing -----------------------------------------------------------------------------------------------------
  function layout(extra, keyed) {
    // Where names do not fit beside the lines they stand below, one a row.
    const axis = { gridcolor: css("rule"), zerolinecolor: css("rule"), linecolor: css("soft"), tickcolor: css("rule"), automargin: true, fixedrange: true };
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "x unified", dragmode: false,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: css("soft") },
      height: 300 + 19 * keyed, margin: { l: 48, r: 12, t: 12, b: 52 + 19 * keyed }, showlegend: keyed > 0,
      legend: { y: -0.24, yanchor: "top", x: 0, font: { size: 12 }, traceorder: "normal" },
      hoverlabel: { bgcolor: css("panel"), bordercolor: css("rule"), font: { color: css("ink"), size: 12 } },
      ...extra, xaxis: { ...axis, showgrid: false, ...extra.xaxis }, yaxis: { ...axis, ...extra.yaxis },
    };
  }

  // lines: [{ name, colour, dash, x, y, low, high, text }]
  function plot(id, lines, extra = {}) {
    const box = document.getElementById(id), narrow = box.clientWidth < 520;
    const traces = lines.flatMap((line) => {
      const { name, colour, x } = line, dash = line.dash || "solid", made = [];
      if (line.low && line.low.some((low, i) => Number.isFinite(low) && line.high[i] > low)) {
        const hidden = { x, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
        made.push({ ...hidden, y: gaps(line.low) }, { ...hidden, y: gaps(line.high), fill: "tonexty", fillcolor: faded(colour, 0.16) });
      }
      const interval = x.map((_, i) => (line.low && line.high[i] > line.low[i] ? ` (${Heat.say(line.low[i])} to ${Heat.say(line.high[i])})` : ""));
      const mode = line.text ? "lines+markers+text" : x.length > 40 ? "lines" : "lines+markers";
      return [...made, {
        x, y: gaps(line.y), name, mode, line: { color: colour, width: 2, dash }, marker: { color: colour, size: 5 }, text: line.text, textposition: x.map((_, i) => (i === x.length - 1 ? "top left" : "top right")),
        textfont: { size: 11, color: css("soft") }, customdata: interval, hovertemplate: `%{y:.3~g}%{customdata}<extra>${escape(name)}</extra>`, cliponaxis: false,
      }];
    });
    const named = lines.length > 1 && !narrow, made = layout(extra, narrow && lines.length > 1 && !extra.key ? lines.length : 0), x = lines[0].x, pad = (x.at(-1) - x[0]) * 0.03 || 1;
    made.annotations = [...(named ? ends(lines, box) : []), ...(extra.annotations || [])];
    made.xaxis.range = made.xaxis.range || [x[0] - pad, x.at(-1) + pad];
    if (named) made.margin.r = 30 + 6.4 * Math.max(...lines.map((line) => line.name.length));
    return Plotly.react(box, traces, made, { displayModeBar: false, responsive: true });
  }

  // Plotly reads a little HTML in names: what a study calls its parties must stay words.
  const escape = (words) => String(words).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

  // Names beside the lines' ends, moved apart where they would overlap.
  function ends(lines, box) {
    const all = lines.flatMap((line) => [...line.y, ...(line.low || []), ...(line.high || [])]).filter(Number.isFinite);
    const span = Math.max(...all) - Math.min(...all) || 1, gap = (span * 16) / Math.max(150, box.clientHeight - 90);
    const placed = lines.map((line) => {
      const last = line.y.findLastIndex(Number.isFinite);
      return { line, last, y: line.y[last] };
    }).filter((end) => end.last >= 0).sort((a, b) => a.y - b.y);
    placed.forEach((end, i) => (end.at = i ? Math.max(end.y, placed[i - 1].at + gap) : end.y));
    return placed.map(({ line, last, at }) => ({
      x: line.x[last], y: at, xref: "x", yref: "y", text: escape(line.name), showarrow: false, xanchor: "left", xshift: 8, font: { color: line.colour, size: 12 },
    }));
  }

  const colours = () => ({ privacy: css("privacy"), explanation: css("explanation"), loss: css("loss"), trade: css("trade"), other: css("other"), soft: css("soft") });

  function parts(data, mechanism, mode, party, cells, x) {
    const c = colours(), named = data.modes[mode], label = (name) => data.quantities[name].label.replace(" (paper)", "");
    const make = (name, colour, dash, found) => ({ name, colour, dash, x, y: found.value, low: found.low, high: found.high });
    return [
      make(label(named.privacy), c.privacy, "dash", series(data, mechanism, named.privacy, party, cells)),
      make(label(named.explanation), c.explanation, "dot", series(data, mechanism, named.explanation, party, cells)),
      make(label(named.utility_loss), c.loss, "dashdot", series(data, mechanism, named.utility_loss, party, cells)),
      make("trade-off", c.trade, "solid", scores(data, mechanism, mode, party, cells)),
    ];
  }

  // --- the charts --------------------------------------------------------------------------------------------------
  function fourLines(data, mechanism, mode, party, id) {
    const I = mechanism.degrees.length, J = mechanism.levels.length, cells = allCells(mechanism);
    const every = Math.max(1, Math.ceil(I / (document.getElementById(id).clientWidth / 60)));
    const starts = mechanism.degrees.map((_, i) => i * J - 0.5);
    const extra = {
      xaxis: { title: { text: `${mechanism.degree}; within each, explainability ${mechanism.levels[0]} to ${mechanism.levels[J - 1]}` }, range: [-0.5, I * J - 0.5],
        tickvals: starts.map((s) => s + J / 2).filter((_, i) => i % every === 0), ticktext: mechanism.degrees.filter((_, i) => i % every === 0) },
      shapes: starts.slice(1).map((x) => ({ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: css("rule"), width: 1 }, layer: "below" })),
    };
    plot(id, parts(data, mechanism, mode, party, cells, cells), extra);
  }

  function slice(data, mechanism, mode, party, degree, id) {
    const cells = rowCells(mechanism, mechanism.degrees.indexOf(degree));
    const lines = parts(data, mechanism, mode, party, cells, mechanism.levels.map(Number));
    plot(id, lines, { key: true, xaxis: { title: { text: "explainability" } } });
    return lines;
  }

  // One key for several small charts.
  function key(id, lines) {
    const strokes = { dash: "dashed", dot: "dotted", dashdot: "dashed", solid: "solid" };
    document.getElementById(id).replaceChildren(...lines.map((line) => {
      const entry = document.createElement("span"), mark = document.createElement("i");
      mark.style.borderTop = `2px ${strokes[line.dash]} ${line.colour}`;
      entry.append(mark, line.name);
      return entry;
    }));
  }

  function epsilon(data, mechanism, party, id) {
    const x = mechanism.degrees.map(Number), c = colours(), pick = party < 0 ? data.parties.map((_, p) => p) : [party];
    const y = firstCells(mechanism).map((k) => Math.max(...pick.map((p) => Engine.at(mechanism, "epsilon", p, k)).filter((e) => !Number.isNaN(e))));
    const finite = y.filter((e) => Number.isFinite(e) && e > 0);
    const top = Math.log10(Math.max(...finite)), bottom = Math.log10(Math.min(...finite)), room = Math.max(0.4, (top - bottom) * 0.18);
    const annotations = x.filter((_, i) => y[i] === Infinity).map((at) => ({ x: at, y: top + room, text: "∞", showarrow: false, font: { size: 18, color: c.privacy } }));
    plot(id, [{ name: "epsilon", colour: c.privacy, x, y: y.map((e) => (e > 0 ? e : NaN)) }], {
      annotations, xaxis: { title: { text: `${mechanism.degree}; ∞: nothing is proved` } },
      yaxis: { type: "log", title: { text: "epsilon (log), lower is better" }, range: [bottom - 0.2, top + 1.6 * room], dtick: 1 },
    });
  }

  function accuracy(data, mechanism, party, id) {
    const cells = firstCells(mechanism), x = mechanism.degrees.map(Number), c = colours();
    const found = series(data, mechanism, "accuracy", party, cells), loss = series(data, mechanism, data.modes.paper.utility_loss, party, cells).value;
    const percent = (list) => list.map((v) => 100 * v), every = Math.max(1, Math.ceil(x.length / 11));
    const text = loss.map((u, i) => (i % every || Number.isNaN(u) ? "" : `U ${Heat.say(100 * u, 2)} %`));
    plot(id, [{ name: "accuracy", colour: c.explanation, x, y: percent(found.value), low: percent(found.low), high: percent(found.high), text }],
      { xaxis: { title: { text: mechanism.degree } }, yaxis: { title: { text: "accuracy in %, higher is better" } } });
  }

  // Several quantities over degrees, or over explainability at one degree. names: [[quantity, colour, dash]]
  function compare(data, mechanism, party, names, id, title, degree) {
    const over = degree === undefined ? firstCells(mechanism) : rowCells(mechanism, mechanism.degrees.indexOf(degree));
    const x = (degree === undefined ? mechanism.degrees : mechanism.levels).map(Number), c = colours();
    const lines = names.filter(([name]) => name in mechanism.quantities).map(([name, colour, dash]) => {
      const found = series(data, mechanism, name, party, over);
      return { name: data.quantities[name].label, colour: c[colour], dash, x, y: found.value, low: found.low, high: found.high };
    });
    plot(id, lines, { xaxis: { title: { text: degree === undefined ? mechanism.degree : "explainability" } }, yaxis: { title: { text: title } } });
  }

  function webgl() {
    try {
      return Boolean(document.createElement("canvas").getContext("webgl2") || document.createElement("canvas").getContext("webgl"));
    } catch {
      return false;
    }
  }

  function surface(data, mechanism, mode, party, id) {
    const box = document.getElementById(id), still = document.getElementById(`${id}-still`), flat = mechanism.degrees.length < 2 || mechanism.levels.length < 2;
    const live = webgl() && !flat;
    box.hidden = !live;
    if (still) still.hidden = live || flat;
    if (!live) return;
    const rows = mechanism.degrees.map((_, i) => gaps(scores(data, mechanism, mode, party, rowCells(mechanism, i)).value));
    const z = mechanism.levels.map((_, j) => rows.map((row) => row[j]));
    const axis = (title) => ({ title: { text: title }, color: css("soft"), gridcolor: css("rule"), backgroundcolor: css("paper"), showbackground: false });
    Plotly.react(box, [{ type: "surface", x: mechanism.degrees.map(Number), y: mechanism.levels.map(Number), z, colorscale: "Viridis", showscale: false,
      hovertemplate: `${escape(mechanism.degree)} %{x}<br>explainability %{y}<br>trade-off %{z:.3f}<extra></extra>` }], {
      paper_bgcolor: "rgba(0,0,0,0)", font: { size: 11, color: css("soft") }, margin: { l: 0, r: 0, t: 0, b: 0 },
      scene: { xaxis: axis(escape(mechanism.degree)), yaxis: axis("explainability"), zaxis: axis("trade-off"), camera: { eye: { x: -1.6, y: -1.6, z: 0.9 } } },
    }, { displayModeBar: false, responsive: true });
  }

  return { find, known, fourLines, slice, key, epsilon, accuracy, compare, surface };
})();
