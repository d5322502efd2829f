// Line charts and the surface, from the embedded numbers.
"use strict";
const Charts = (() => {
  const find = (data, name) => data.mechanisms.find((m) => m.name === name);
  const mean = (list) => {
    const known = list.filter((x) => !Number.isNaN(x));
    return known.length ? known.reduce((a, b) => a + b, 0) / known.length : NaN;
  };
  // A quantity over all cells, or over degrees at the first level: one party's, or the mean of all (party < 0).
  function series(data, mechanism, name, party, cells) {
    const pick = party < 0 ? data.parties.map((_, p) => p) : [party];
    const get = (part) => cells.map((k) => mean(pick.map((p) => Engine.at(mechanism, name, p, k, part))));
    return { value: get("value"), low: get("low"), high: get("high") };
  }

  function scores(data, mechanism, mode, party, cells) {
    const pick = party < 0 ? data.parties.map((_, p) => p) : [party],
      size = mechanism.degrees.length * mechanism.levels.length;
    const get = (part) =>
      cells.map((k) => mean(pick.map((p) => Engine.revive(mechanism.scores[mode][part][p * size + k]))));
    return { value: get("value"), low: get("low"), high: get("high") };
  }

  // Degrees where something was measured: a refused one has nothing to show.
  const known = (mechanism) =>
    mechanism.degrees.filter((_, i) =>
      Object.values(mechanism.scores).some(({ value }) =>
        value.some(
          (score, k) => score !== null && Math.floor(k / mechanism.levels.length) % mechanism.degrees.length === i,
        ),
      ),
    );
  const allCells = (mechanism) =>
    mechanism.degrees.flatMap((_, i) => mechanism.levels.map((_, j) => i * mechanism.levels.length + j));
  const firstCells = (mechanism) => mechanism.degrees.map((_, i) => i * mechanism.levels.length);
  const rowCells = (mechanism, i) => mechanism.levels.map((_, j) => i * mechanism.levels.length + j);

  function parts(data, mechanism, mode, party, cells, x) {
    const c = Plot.colours(),
      named = data.modes[mode],
      label = (name) => data.quantities[name].label.replace(" (paper)", "");
    const make = (name, colour, dash, found) => ({
      name,
      colour,
      dash,
      x,
      y: found.value,
      low: found.low,
      high: found.high,
    });
    return [
      make(label(named.privacy), c.privacy, "dash", series(data, mechanism, named.privacy, party, cells)),
      make(label(named.explanation), c.explanation, "dot", series(data, mechanism, named.explanation, party, cells)),
      make(label(named.utility_loss), c.loss, "dashdot", series(data, mechanism, named.utility_loss, party, cells)),
      make("trade-off", c.trade, "solid", scores(data, mechanism, mode, party, cells)),
    ];
  }

  // --- the charts --------------------------------------------------------------------------------------------------
  function fourLines(data, mechanism, mode, party, id) {
    const I = mechanism.degrees.length,
      J = mechanism.levels.length,
      cells = allCells(mechanism);
    const every = Math.max(1, Math.ceil(I / (document.getElementById(id).clientWidth / 60)));
    const starts = mechanism.degrees.map((_, i) => i * J - 0.5);
    const extra = {
      xaxis: {
        title: {
          text: `${mechanism.degree}; within each, explainability ${mechanism.levels[0]} to ${mechanism.levels[J - 1]}`,
        },
        range: [-0.5, I * J - 0.5],
        tickvals: starts.map((s) => s + J / 2).filter((_, i) => i % every === 0),
        ticktext: mechanism.degrees.filter((_, i) => i % every === 0),
      },
      shapes: starts.slice(1).map((x) => ({
        type: "line",
        x0: x,
        x1: x,
        yref: "paper",
        y0: 0,
        y1: 1,
        line: { color: Plot.css("rule"), width: 1 },
        layer: "below",
      })),
    };
    Plot.draw(id, parts(data, mechanism, mode, party, cells, cells), extra);
  }

  function slice(data, mechanism, mode, party, degree, id) {
    const cells = rowCells(mechanism, mechanism.degrees.indexOf(degree));
    const lines = parts(data, mechanism, mode, party, cells, mechanism.levels.map(Number));
    Plot.draw(id, lines, { key: true, xaxis: { title: { text: "explainability" } } });
    return lines;
  }

  function epsilon(data, mechanism, party, id) {
    const x = mechanism.degrees.map(Number),
      c = Plot.colours(),
      pick = party < 0 ? data.parties.map((_, p) => p) : [party];
    const y = firstCells(mechanism).map((k) =>
      Math.max(...pick.map((p) => Engine.at(mechanism, "epsilon", p, k)).filter((e) => !Number.isNaN(e))),
    );
    const finite = y.filter((e) => Number.isFinite(e) && e > 0);
    const top = Math.log10(Math.max(...finite)),
      bottom = Math.log10(Math.min(...finite)),
      room = Math.max(0.4, (top - bottom) * 0.18);
    const annotations = x
      .filter((_, i) => y[i] === Infinity)
      .map((at) => ({ x: at, y: top + room, text: "∞", showarrow: false, font: { size: 18, color: c.privacy } }));
    Plot.draw(id, [{ name: "epsilon", colour: c.privacy, x, y: y.map((e) => (e > 0 ? e : NaN)) }], {
      annotations,
      xaxis: { title: { text: `${mechanism.degree}; ∞: nothing is proved` } },
      yaxis: {
        type: "log",
        title: { text: "epsilon (log), lower is better" },
        range: [bottom - 0.2, top + 1.6 * room],
        dtick: 1,
      },
    });
  }

  function accuracy(data, mechanism, party, id) {
    const cells = firstCells(mechanism),
      x = mechanism.degrees.map(Number),
      c = Plot.colours();
    const found = series(data, mechanism, "accuracy", party, cells),
      loss = series(data, mechanism, data.modes.paper.utility_loss, party, cells).value;
    const percent = (list) => list.map((v) => 100 * v),
      // The losses stand above the plot, in the first of two rows that has room: beside the points the curve crosses them.
      room = (62 / Math.max(200, document.getElementById(id).clientWidth - 70)) * (x.at(-1) - x[0]),
      taken = [-Infinity, -Infinity];
    const annotations = x.flatMap((at, i) => {
      const row = Number.isNaN(loss[i]) ? -1 : taken.findIndex((last) => at - last >= room);
      if (row < 0) return [];
      taken[row] = at;
      const text = `U ${Heat.say(100 * loss[i], 2)} %`;
      return [{ x: at, y: 1, yref: "paper", yanchor: "bottom", yshift: 2 + 14 * row, text, showarrow: false }];
    });
    Plot.draw(
      id,
      [
        {
          name: "accuracy",
          colour: c.explanation,
          x,
          y: percent(found.value),
          low: percent(found.low),
          high: percent(found.high),
        },
      ],
      {
        annotations: annotations.map((made) => ({ ...made, font: { size: 11, color: c.soft } })),
        margin: { l: 48, r: 30, t: 40, b: 52 },
        xaxis: { title: { text: mechanism.degree } },
        yaxis: { title: { text: "accuracy in %, higher is better" } },
      },
    );
  }

  // Several quantities over degrees, or over explainability at one degree. names: [[quantity, colour, dash]]
  function compare(data, mechanism, party, names, id, title, degree) {
    const over = degree === undefined ? firstCells(mechanism) : rowCells(mechanism, mechanism.degrees.indexOf(degree));
    const x = (degree === undefined ? mechanism.degrees : mechanism.levels).map(Number),
      c = Plot.colours();
    const lines = names
      .filter(([name]) => name in mechanism.quantities)
      .map(([name, colour, dash]) => {
        const found = series(data, mechanism, name, party, over);
        return {
          name: data.quantities[name].label,
          colour: c[colour],
          dash,
          x,
          y: found.value,
          low: found.low,
          high: found.high,
        };
      });
    Plot.draw(id, lines, {
      xaxis: { title: { text: degree === undefined ? mechanism.degree : "explainability" } },
      yaxis: { title: { text: title } },
    });
  }

  function webgl() {
    try {
      return Boolean(
        document.createElement("canvas").getContext("webgl2") || document.createElement("canvas").getContext("webgl"),
      );
    } catch {
      return false;
    }
  }

  function surface(data, mechanism, mode, party, id) {
    const box = document.getElementById(id),
      still = document.getElementById(`${id}-still`),
      flat = mechanism.degrees.length < 2 || mechanism.levels.length < 2;
    const live = webgl() && !flat;
    box.hidden = !live;
    if (still) still.hidden = live || flat;
    if (!live) return;
    const rows = mechanism.degrees.map((_, i) =>
      Plot.gaps(scores(data, mechanism, mode, party, rowCells(mechanism, i)).value),
    );
    const z = mechanism.levels.map((_, j) => rows.map((row) => row[j]));
    const axis = (title) => ({
      title: { text: title },
      color: Plot.css("soft"),
      gridcolor: Plot.css("rule"),
      backgroundcolor: Plot.css("paper"),
      showbackground: false,
    });
    Plotly.react(
      box,
      [
        {
          type: "surface",
          x: mechanism.degrees.map(Number),
          y: mechanism.levels.map(Number),
          z,
          colorscale: "Viridis",
          showscale: false,
          hovertemplate: `${Plot.escape(mechanism.degree)} %{x}<br>explainability %{y}<br>trade-off %{z:.3f}<extra></extra>`,
        },
      ],
      {
        paper_bgcolor: "rgba(0,0,0,0)",
        font: { size: 11, color: Plot.css("soft") },
        margin: { l: 0, r: 0, t: 0, b: 0 },
        scene: {
          xaxis: axis(Plot.escape(mechanism.degree)),
          yaxis: axis("explainability"),
          zaxis: axis("trade-off"),
          camera: { eye: { x: -1.6, y: -1.6, z: 0.9 } },
        },
      },
      { displayModeBar: false, responsive: true },
    );
  }

  return { find, known, fourLines, slice, epsilon, accuracy, compare, surface };
})();
