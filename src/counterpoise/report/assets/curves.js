// Which charts are on the page, and which mechanism, mode, party and degree they show.
"use strict";
const Curves = (() => {
  const $ = (id) => document.getElementById(id);
  const has = (mechanism, name) => name in mechanism.quantities;

  function degreesInto(select, mechanism, chosen) {
    if (select.dataset.of === mechanism.name) return;
    select.dataset.of = mechanism.name;
    select.replaceChildren(
      ...Charts.known(mechanism).map(
        (degree) => new Option(`${mechanism.degree} ${degree}`, degree, false, degree === chosen),
      ),
    );
  }

  // Low, middle and high: the source's slices are at noise 0.1, 1.0 and 2.0.
  function three(degrees) {
    const wanted =
      degrees.length > 2
        ? [degrees.length > 4 ? 1 : 0, Math.floor((degrees.length - 1) / 2), degrees.length - 1]
        : degrees.map((_, i) => i);
    return [0, 1, 2].map((i) => degrees[wanted[Math.min(i, wanted.length - 1)]]);
  }

  function start(data) {
    const winner = data.winner,
      show = () => {
        const mechanism = Charts.find(data, $("curve-mechanism").value),
          mode = $("curve-mode").value,
          party = Number($("curve-party").value);
        Charts.fourLines(data, mechanism, mode, party, "four-lines");
        const known = Charts.known(mechanism);
        three(known).forEach((degree, i) => {
          degreesInto($(`slice-degree-${i}`), mechanism, degree);
          $(`slice-box-${i}`).hidden = i >= known.length;
          if (i < known.length)
            Plot.key(
              "slice-key",
              Charts.slice(data, mechanism, mode, party, $(`slice-degree-${i}`).value, `slice-${i}`),
            );
        });
        Charts.surface(data, mechanism, mode, party, "surface");
        document
          .querySelectorAll("[data-still]")
          .forEach((image) => (image.hidden = image.dataset.still !== `${mechanism.name}|${mode}`));

        const several = known.length > 1,
          proved = mechanism.quantities.epsilon.value.some((e) => typeof e === "number" && e > 0);
        const box = (id, wanted, draw) => {
          $(`${id}-box`).hidden = !wanted;
          if (wanted) draw();
        };
        box("epsilon", several && proved, () => Charts.epsilon(data, mechanism, party, "epsilon"));
        box("accuracy", several && has(mechanism, "accuracy"), () =>
          Charts.accuracy(data, mechanism, party, "accuracy"),
        );
        box("attack", several && has(mechanism, "membership_advantage"), () =>
          Charts.compare(
            data,
            mechanism,
            party,
            [
              ["advantage_bound", "soft", "dash"],
              ["membership_advantage", "privacy"],
            ],
            "attack",
            "advantage, lower is better",
          ),
        );
        box("losses", several && has(mechanism, "task_loss"), () =>
          Charts.compare(
            data,
            mechanism,
            party,
            [
              ["task_loss", "loss"],
              ["pooled_emd", "soft", "dash"],
              ["emd_per_image", "other", "dot"],
            ],
            "losses",
            "loss, lower is better",
          ),
        );
        $("flat-note").hidden = several;

        degreesInto(
          $("map-degree"),
          mechanism,
          winner && winner.mechanism === mechanism.name ? winner.degree : known.at(-1),
        );
        const degree = $("map-degree").value;
        box("faithful", has(mechanism, "deletion") || has(mechanism, "insertion"), () =>
          Charts.compare(
            data,
            mechanism,
            party,
            [
              ["insertion", "explanation"],
              ["random_insertion", "explanation", "dot"],
              ["deletion", "privacy"],
              ["random_deletion", "privacy", "dot"],
            ],
            "faithful",
            "probability",
            degree,
          ),
        );
        box("stable", has(mechanism, "stability"), () =>
          Charts.compare(
            data,
            mechanism,
            party,
            [
              ["stability", "other"],
              ["explanation_quality", "explanation"],
              ["explainability_gain", "soft", "dash"],
            ],
            "stable",
            "higher is better",
            degree,
          ),
        );
      };
    $("curve-form").addEventListener("input", show);
    $("curve-form").addEventListener("submit", (event) => event.preventDefault());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
    addEventListener("beforeprint", show);
    let width = innerWidth;
    addEventListener("resize", () => {
      if (width !== innerWidth) show();
      width = innerWidth;
    });
    show();
  }

  return { start };
})();
