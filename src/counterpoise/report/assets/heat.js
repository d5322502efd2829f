// Heat maps as SVG: colour where a party allows a cell, hatching where it forbids it, an empty frame where nothing was
// measured. A mask is never shown as the number 0. Arrow keys move a cursor; the cell under it is read out in words.
"use strict";
const Heat = (() => {
  const VIRIDIS = [
    "#440154",
    "#482878",
    "#3e4a89",
    "#31688e",
    "#26828e",
    "#1f9e89",
    "#35b779",
    "#6dcd59",
    "#b4de2c",
    "#fde725",
  ];
  const SVG = "http://www.w3.org/2000/svg";
  const SIZE = 20,
    LEFT = 44,
    BOTTOM = 36,
    TOP = 6,
    RIGHT = 8;
  const wide = (I) => Math.max(SIZE, Math.min(2 * SIZE, (12 * SIZE) / I));

  function colour(share) {
    const x = Math.min(1, Math.max(0, share)) * (VIRIDIS.length - 1),
      i = Math.min(VIRIDIS.length - 2, Math.floor(x));
    const [a, b] = [VIRIDIS[i], VIRIDIS[i + 1]].map((hex) => [1, 3, 5].map((p) => parseInt(hex.slice(p, p + 2), 16)));
    return `rgb(${a.map((v, c) => Math.round(v + (b[c] - v) * (x - i))).join(",")})`;
  }

  const ramp = () => `linear-gradient(90deg, ${VIRIDIS.join(", ")})`;

  function node(name, attributes, parent) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (parent) parent.append(made);
    return made;
  }

  // What one number looks like in a sentence.
  function say(x, digits = 3) {
    if (x === null || x === undefined || Number.isNaN(x)) return "not measured";
    if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
    return (Object.is(Number(x.toPrecision(digits)), -0) ? "0" : String(Number(x.toPrecision(digits)))).replace(
      "-",
      "−",
    );
  }

  function range(lists) {
    const finite = lists.flat().filter(Number.isFinite);
    return finite.length ? [Math.min(...finite), Math.max(...finite)] : [0, 1];
  }

  // Every how manyth label fits.
  const thin = (count, room) => Math.max(1, Math.ceil(count / room));

  // options: { mechanism, values, state: (k) => "value" | "forbidden" | "missing", range, best, title, note, words: (k) => text }
  function draw(figure, options) {
    const { mechanism, values, state, best } = options,
      [low, high] = options.range;
    const I = mechanism.degrees.length,
      J = mechanism.levels.length;
    const column = wide(I),
      width = Math.max(LEFT + I * column + RIGHT, LEFT + 6 * SIZE),
      height = TOP + J * SIZE + BOTTOM;
    figure.replaceChildren();
    const caption = document.createElement("figcaption");
    caption.textContent = options.title;
    if (options.note) {
      const note = document.createElement("span");
      note.textContent = ` ${options.note}`;
      caption.append(note);
    }
    const counted = { value: 0, forbidden: 0, missing: 0 };
    const label = () =>
      `${options.title}. ${counted.value} cells with a score, ${counted.forbidden} forbidden, ${counted.missing} not measured. ` +
      (best >= 0 ? `Optimum: ${options.words(best)}. ` : "") +
      "Arrow keys read single cells.";
    const svg = node("svg", { class: "heat", viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: "0" });
    svg.style.maxWidth = `${Math.min(640, width * 1.35)}px`;
    const place = (k) => ({
      x: LEFT + Math.floor(k / J) * column,
      y: TOP + (J - 1 - (k % J)) * SIZE,
      width: column - 1,
      height: SIZE - 1,
    });
    for (let k = 0; k < I * J; k++) {
      const kind = state(k);
      counted[kind]++;
      const cell = node("rect", { ...place(k), rx: 1.5, "data-k": k }, svg);
      if (kind === "value") cell.setAttribute("fill", colour(high > low ? (values[k] - low) / (high - low) : 0.6));
      else cell.setAttribute("class", kind === "forbidden" ? "hatched" : "missing");
    }
    axes(svg, mechanism, height);
    if (best >= 0) for (let i = 0; i < 2; i++) node("rect", { ...place(best), rx: 2, class: "best" }, svg);
    svg.setAttribute("aria-label", label());
    const readout = document.createElement("output");
    readout.className = "readout";
    readout.textContent = best >= 0 ? options.words(best) : "";
    figure.append(caption, svg, readout);
    listen(svg, readout, place, I, J, best, options.words);
  }

  function axes(svg, mechanism, height) {
    const { degrees, levels } = mechanism,
      I = degrees.length,
      J = levels.length;
    const every = thin(I, Math.max(4, (I * wide(I)) / 30)),
      up = thin(J, 6);
    degrees.forEach((degree, i) => {
      if (i % every === 0 || I <= 6)
        node(
          "text",
          { x: LEFT + (i + 0.5) * wide(I), y: height - BOTTOM + 14, "text-anchor": "middle" },
          svg,
        ).textContent = degree;
    });
    levels.forEach((level, j) => {
      if (j % up === 0)
        node(
          "text",
          { x: LEFT - 6, y: TOP + (J - 1 - j) * SIZE + SIZE / 2 + 3, "text-anchor": "end" },
          svg,
        ).textContent = level;
    });
    const way = mechanism.morePrivate === "up" ? "→ more private" : "← more private";
    node("text", { x: LEFT, y: height - 6 }, svg).textContent =
      degrees.length > 1 ? `${mechanism.degree}  ${way}` : mechanism.degree;
    const middle = TOP + (J * SIZE) / 2;
    node(
      "text",
      { x: 11, y: middle, "text-anchor": "middle", transform: `rotate(-90 11 ${middle})` },
      svg,
    ).textContent = "explainability";
  }

  function listen(svg, readout, place, I, J, best, words) {
    const cursor = node("rect", { class: "cursor", visibility: "hidden", ...place(0) }, svg);
    let at = best >= 0 ? best : 0;
    const show = (k) => {
      at = k;
      const { x, y } = place(k);
      cursor.setAttribute("x", x);
      cursor.setAttribute("y", y);
      cursor.setAttribute("visibility", "visible");
      readout.textContent = words(k);
    };
    const rest = () => {
      cursor.setAttribute("visibility", "hidden");
      readout.textContent = best >= 0 ? words(best) : "";
    };
    svg.addEventListener("pointermove", (event) => event.target.dataset.k && show(Number(event.target.dataset.k)));
    svg.addEventListener("pointerleave", rest);
    svg.addEventListener("focus", () => svg.matches(":focus-visible") && show(at));
    svg.addEventListener("blur", rest);
    svg.addEventListener("keydown", (event) => {
      const [i, j] = [Math.floor(at / J), at % J];
      const moved = { ArrowLeft: [i - 1, j], ArrowRight: [i + 1, j], ArrowUp: [i, j + 1], ArrowDown: [i, j - 1] }[
        event.key
      ];
      if (!moved) return;
      event.preventDefault();
      show(Math.min(I - 1, Math.max(0, moved[0])) * J + Math.min(J - 1, Math.max(0, moved[1])));
    });
  }

  return { draw, say, range, ramp, colour };
})();
