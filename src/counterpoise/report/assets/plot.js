// How lines are drawn: plotly without its toolbar, the page's own colours, and names where the lines end.
"use strict";
const Plot = (() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const gaps = (list) => list.map((x) => (Number.isFinite(x) ? x : null));
  const faded = (colour, alpha) =>
    `rgba(${[1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)).join(",")},${alpha})`;

  function layout(extra, keyed) {
    // Where names do not fit beside the lines they stand below, one a row.
    const axis = {
      gridcolor: css("rule"),
      zerolinecolor: css("rule"),
      linecolor: css("soft"),
      tickcolor: css("rule"),
      automargin: true,
      fixedrange: true,
    };
    return {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      hovermode: "x unified",
      dragmode: false,
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: css("soft") },
      height: 300 + 19 * keyed,
      margin: { l: 48, r: 12, t: 12, b: 52 + 19 * keyed },
      showlegend: keyed > 0,
      legend: { y: -0.24, yanchor: "top", x: 0, font: { size: 12 }, traceorder: "normal" },
      hoverlabel: { bgcolor: css("panel"), bordercolor: css("rule"), font: { color: css("ink"), size: 12 } },
      ...extra,
      xaxis: { ...axis, showgrid: false, ...extra.xaxis },
      yaxis: { ...axis, ...extra.yaxis },
    };
  }

  // lines: [{ name, colour, dash, dots, x, y, low, high }]; dots have error bars in place of a band.
  function draw(id, lines, extra = {}) {
    const box = document.getElementById(id),
      narrow = box.clientWidth < 520;
    const traces = lines.flatMap((line) => {
      const { name, colour, x } = line,
        dash = line.dash || "solid",
        made = [];
      if (!line.dots && line.low && line.low.some((low, i) => Number.isFinite(low) && line.high[i] > low)) {
        const hidden = { x, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
        made.push(
          { ...hidden, y: gaps(line.low) },
          { ...hidden, y: gaps(line.high), fill: "tonexty", fillcolor: faded(colour, 0.16) },
        );
      }
      const interval = x.map((_, i) =>
        line.low && line.high[i] > line.low[i] ? ` (${Heat.say(line.low[i])} to ${Heat.say(line.high[i])})` : "",
      );
      const mode = line.dots ? "markers" : x.length > 40 ? "lines" : "lines+markers";
      const bars = line.dots && {
        type: "data",
        symmetric: false,
        array: gaps(line.high.map((high, i) => high - line.y[i])),
        arrayminus: gaps(line.y.map((y, i) => y - line.low[i])),
        color: faded(colour, 0.4),
        thickness: 1,
        width: 0,
      };
      return [
        ...made,
        {
          x,
          y: gaps(line.y),
          name: escape(name),
          mode,
          ...(bars && { error_y: bars }),
          line: { color: colour, width: 2, dash },
          marker: { color: colour, size: 5 },
          customdata: interval,
          hovertemplate: `%{y:.3~g}%{customdata}<extra>${escape(name)}</extra>`,
          cliponaxis: false,
        },
      ];
    });
    const dots = lines.some((line) => line.dots),
      named = lines.length > 1 && !narrow && !dots,
      made = layout(extra, (narrow || dots) && lines.length > 1 && !extra.key ? lines.length : 0),
      all = lines.flatMap((line) => line.x).map((at) => (extra.xaxis?.type === "log" ? Math.log10(at) : at)),
      left = Math.min(...all),
      right = Math.max(...all),
      pad = (right - left) * 0.03 || 1;
    made.annotations = [...(named ? ends(lines, box, extra) : []), ...(extra.annotations || [])];
    made.xaxis.range = made.xaxis.range || [left - pad, right + pad];
    if (dots) made.hovermode = "closest";
    if (named) made.margin.r = 30 + 6.4 * Math.max(...lines.map((line) => line.name.length));
    return Plotly.react(box, traces, made, { displayModeBar: false, responsive: true });
  }

  // Plotly reads a little HTML in names: what a study calls its parties must stay words.
  const escape = (words) => String(words).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

  // Names beside the lines' ends, moved apart where they would overlap.
  function ends(lines, box, extra) {
    const all = lines.flatMap((line) => [...line.y, ...(line.low || []), ...(line.high || [])]).filter(Number.isFinite);
    const span = Math.max(...all) - Math.min(...all) || 1,
      gap = (span * 16) / Math.max(150, box.clientHeight - 90);
    const placed = lines
      .map((line) => {
        const last = line.y.findLastIndex(Number.isFinite);
        return { line, last, y: line.y[last] };
      })
      .filter((end) => end.last >= 0)
      .sort((a, b) => a.y - b.y);
    placed.forEach((end, i) => (end.at = i ? Math.max(end.y, placed[i - 1].at + gap) : end.y));
    return placed.map(({ line, last, at }) => ({
      // Annotations on a logarithmic axis stand at the logarithm.
      x: extra.xaxis?.type === "log" ? Math.log10(line.x[last]) : line.x[last],
      y: at,
      xref: "x",
      yref: "y",
      text: escape(line.name),
      showarrow: false,
      xanchor: "left",
      xshift: 8,
      font: { color: line.colour, size: 12 },
    }));
  }

  // One key for several small charts.
  function key(id, lines) {
    const strokes = { dash: "dashed", dot: "dotted", dashdot: "dashed", solid: "solid" };
    document.getElementById(id).replaceChildren(
      ...lines.map((line) => {
        const entry = document.createElement("span"),
          mark = document.createElement("i");
        mark.style.borderTop = `2px ${strokes[line.dash]} ${line.colour}`;
        entry.append(mark, line.name);
        return entry;
      }),
    );
  }

  const colours = () => ({
    privacy: css("privacy"),
    explanation: css("explanation"),
    loss: css("loss"),
    trade: css("trade"),
    other: css("other"),
    soft: css("soft"),
  });

  return { css, gaps, escape, draw, key, colours };
})();
