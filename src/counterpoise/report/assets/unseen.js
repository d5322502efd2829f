// The charts of "What the paper could not see": all numbers come with the page, nothing is computed here.
"use strict";
const Unseen = (() => {
  const revive = (list) => list.map((x) => Engine.revive(x));

  function show(data) {
    const boxes = [...document.querySelectorAll("[data-unseen]")],
      colours = Plot.colours();
    boxes.forEach((box, i) => {
      const chart = data.unseen[i];
      const lines = chart.lines.map((line) => ({
        name: line.name,
        colour: colours[line.colour],
        dash: line.dash,
        dots: chart.dots,
        x: revive(line.x),
        y: revive(line.y),
        low: revive(line.low),
        high: revive(line.high),
      }));
      Plot.draw(box.id, lines, {
        xaxis: { title: { text: Plot.escape(chart.x) }, ...(chart.logarithmic && { type: "log", dtick: "D2" }) },
        yaxis: { title: { text: Plot.escape(chart.y) } },
      });
    });
  }

  function start(data) {
    const again = () => show(data);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    addEventListener("beforeprint", again);
    let width = innerWidth;
    addEventListener("resize", () => {
      if (width !== innerWidth) again();
      width = innerWidth;
    });
    again();
  }

  return { start };
})();
