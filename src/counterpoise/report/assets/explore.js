// The interactive part: what is asked (mode, policy, requirements) is read from the form, decided by Engine, and drawn.
"use strict";
const Explore = (() => {
  const $ = (id) => document.getElementById(id);
  const find = (data, name) => data.mechanisms.find((m) => m.name === name);
  const cellName = (mechanism, k) => {
    const J = mechanism.levels.length;
    return `${mechanism.degree} ${mechanism.degrees[Math.floor(k / J)]}, explainability ${mechanism.levels[k % J]}`;
  };
  const standingName = (s) => `${s.mechanism} at ${s.degreeName} ${s.degree}, explainability ${s.explainability}`;
  const interval = (s) => `${Heat.say(s.score)} (95 % interval ${Heat.say(s.low)} to ${Heat.say(s.high)})`;

  const stated = (data, mode = data.mode) => ({
    mode,
    policy: data.policy,
    quorum: data.quorum,
    parties: data.parties,
  });

  // --- the question, from the form -------------------------------------------------------------------------------
  function asked(data, forms) {
    const mechanism = find(data, $("mechanism").value),
      policy = $("policy").value;
    const parties = data.parties.map((party, p) => {
      const form = forms[p],
        requires = party.requires.filter((_, w) => form.kept[w].checked);
      const degree = Number(form.degree.value),
        level = Number(form.level.value);
      if (degree > 0)
        requires.push(
          `${mechanism.degree} ${mechanism.morePrivate === "up" ? ">=" : "<="} ${protective(mechanism)[degree]}`,
        );
      if (level > 0) requires.push(`explainability >= ${mechanism.levels[level]}`);
      if (form.loss.value !== "" && form.loss.validity.valid)
        requires.push(`utility_loss <= ${Number(form.loss.value) / 100}`);
      if (form.extra.value.trim() && !form.extra.validationMessage) requires.push(form.extra.value.trim());
      return { ...party, mechanisms: form.named && !form.named.checked ? [] : party.mechanisms, requires };
    });
    return { mode: $("mode").value, policy, quorum: policy === "quorum" ? Number($("quorum").value) : null, parties };
  }

  // Degrees from the least to the most private.
  const protective = (mechanism) =>
    mechanism.morePrivate === "up" ? mechanism.degrees : [...mechanism.degrees].reverse();

  function checkExtra(data, input) {
    let message = "";
    if (input.value.trim())
      try {
        const { quantity } = Engine.parse(input.value),
          words = ["privacy", "explanation", "utility_loss", "explainability", ...data.degreeNames];
        if (!words.includes(quantity) && !data.mechanisms.every((m) => quantity in m.quantities))
          message = `'${quantity}' is not measured for every mechanism.`;
      } catch (error) {
        message = error.message;
      }
    input.setCustomValidity(message);
    input.setAttribute("aria-invalid", message ? "true" : "false");
    $(input.getAttribute("aria-describedby")).textContent = message;
  }

  function labels(data, forms) {
    const mechanism = find(data, $("mechanism").value);
    for (const form of forms) {
      const degrees = protective(mechanism);
      form.degree.max = degrees.length - 1;
      form.degree.disabled = degrees.length < 2;
      form.level.max = mechanism.levels.length - 1;
      const degree = Number(form.degree.value),
        level = Number(form.level.value);
      form.degreeName.textContent = mechanism.degree;
      const [sign, limit] = [mechanism.morePrivate === "up" ? "≥" : "≤", degrees[degree]];
      form.degreeSaid.textContent = degree ? `${sign} ${limit}` : "any";
      form.degree.setAttribute("aria-valuetext", degree ? `${mechanism.degree} ${sign} ${limit}` : "any");
      form.levelSaid.textContent = level ? `≥ ${mechanism.levels[level]}` : "any";
      form.level.setAttribute("aria-valuetext", level ? `at least ${mechanism.levels[level]}` : "any");
    }
    $("quorum-field").hidden = $("policy").value !== "quorum";
  }

  // --- the answer, in words and maps -----------------------------------------------------------------------------
  function paragraph(text, className) {
    const made = document.createElement("p");
    made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  function tell(data, question, answer, name) {
    const box = $("verdict"),
      outcome = answer.outcomes[name],
      cells = answer.panels.find((p) => p.mechanism.name === name).aggregate.value.length;
    const lines = [];
    box.classList.toggle("none", !outcome);
    if (outcome) {
      const { winner } = outcome;
      lines.push(paragraph(standingName(winner), "answer"));
      lines.push(
        paragraph(
          `Score ${interval(winner)}, higher is better. ${outcome.feasible} of ${cells} settings of ${name} are feasible.`,
        ),
      );
      lines.push(
        paragraph(
          outcome.runnersUp.length
            ? `Flip margin ${Heat.say(outcome.flipMargin)}: next is ${standingName(outcome.runnersUp[0])}. ` +
                (outcome.contested ? "Contested: the intervals overlap." : "Uncontested: no other interval reaches it.")
            : "No other setting is feasible.",
        ),
      );
      for (const view of outcome.parties)
        lines.push(
          paragraph(
            view.allows
              ? view.regret > 1e-12
                ? `${view.party} gives up ${Heat.say(view.regret, 2)} of its best, ${Heat.say(view.best)}.`
                : `${view.party} gives up nothing.`
              : `${view.party} forbids this setting: ${view.forbids.join("; ") || "not measured there"}.`,
            "small soft",
          ),
        );
    } else {
      lines.push(paragraph(`No setting of ${name} is allowed by enough parties.`, "answer"));
      const binding = Engine.binding(data, question, name);
      lines.push(
        paragraph(
          binding.length
            ? `Giving up any one of these makes it feasible: ${binding.map((b) => `${b.party}’s “${b.words}”`).join("; ")}.`
            : "Giving up a single requirement is not enough.",
        ),
      );
    }
    if (answer.best && data.mechanisms.length > 1)
      lines.push(
        paragraph(
          `Best of all mechanisms: ${standingName(answer.best.winner)}, score ${interval(answer.best.winner)}.`,
        ),
      );
    box.replaceChildren(...lines);
  }

  function words(mechanism, panel, p, k) {
    const where = cellName(mechanism, k);
    if (p < 0) {
      const willing = panel.possible.filter((mask) => mask[k]).length;
      const score = panel.aggregate.value[k];
      return Number.isNaN(score)
        ? `${where}: allowed by ${willing} of ${panel.possible.length} parties, ${panel.needed} needed`
        : `${where}: ${Heat.say(score)} (${Heat.say(panel.aggregate.low[k])} to ${Heat.say(panel.aggregate.high[k])}), allowed by ${willing}`;
    }
    const score = panel.score(p, k, "value");
    if (Number.isNaN(score)) return `${where}: not measured`;
    const broken = panel.wishes[p].filter((wish) => !wish.met[k]).map((wish) => wish.words);
    if (!panel.open[p]) broken.unshift("mechanism not accepted");
    return panel.possible[p][k] ? `${where}: ${Heat.say(score)}` : `${where}: forbidden (${broken.join("; ")})`;
  }

  function together(figure, panel, best, title, note, scale) {
    const { mechanism } = panel,
      values = panel.aggregate.value;
    const state = (k) =>
      !Number.isNaN(values[k])
        ? "value"
        : panel.possible.every((_, p) => Number.isNaN(panel.score(p, k, "value")))
          ? "missing"
          : "forbidden";
    Heat.draw(figure, {
      mechanism,
      values,
      state,
      range: scale,
      best,
      title,
      note,
      words: (k) => words(mechanism, panel, -1, k),
    });
  }

  function maps(data, question, answer, name) {
    const panel = answer.panels.find((p) => p.mechanism.name === name),
      { mechanism } = panel,
      box = $("maps");
    const cells = panel.aggregate.value.map((_, k) => k),
      best = answer.outcomes[name] ? answer.outcomes[name].winner.k : -1;
    const scores = data.parties.map((_, p) => cells.map((k) => panel.score(p, k, "value")));
    const scale = Heat.range(scores.map((list, p) => list.filter((_, k) => panel.possible[p][k])));
    const figures = data.parties.map((party, p) => {
      const figure = document.createElement("figure"),
        allowed = panel.possible[p].filter(Boolean).length;
      const state = (k) => (panel.possible[p][k] ? "value" : Number.isNaN(scores[p][k]) ? "missing" : "forbidden");
      Heat.draw(figure, {
        mechanism,
        values: scores[p],
        state,
        range: scale,
        best,
        title: party.name,
        note: `allows ${allowed}`,
        words: (k) => words(mechanism, panel, p, k),
      });
      return figure;
    });
    const merged = document.createElement("figure"),
      feasible = answer.outcomes[name] ? answer.outcomes[name].feasible : 0;
    together(merged, panel, best, "Together", `${question.policy}, ${feasible} feasible`, scale);
    box.style.setProperty("--map", mechanism.degrees.length > 13 ? "22rem" : "15.6rem");
    box.replaceChildren(merged, ...figures);
    $("scale-low").textContent = Heat.say(scale[0]);
    $("scale-high").textContent = Heat.say(scale[1]);
  }

  function sideBySide(data) {
    for (const figure of document.querySelectorAll("[data-side]")) {
      const answer = Engine.decide(data, stated(data, figure.dataset.mode));
      const panel = answer.panels.find((p) => p.mechanism.name === figure.dataset.side),
        outcome = answer.outcomes[figure.dataset.side];
      const scale = Heat.range([panel.aggregate.value]),
        span = Number.isFinite(panel.aggregate.value.find(Number.isFinite))
          ? `${Heat.say(scale[0])} to ${Heat.say(scale[1])}`
          : "nothing feasible";
      together(
        figure,
        panel,
        outcome ? outcome.winner.k : -1,
        `${figure.dataset.side}, ${figure.dataset.mode}`,
        span,
        scale,
      );
    }
  }

  function start(data) {
    const forms = data.parties.map((_, p) => ({
      kept: data.parties[p].requires.map((_, w) => $(`keep-${p}-${w}`)),
      named: $(`named-${p}`),
      degree: $(`degree-${p}`),
      degreeName: $(`degree-name-${p}`),
      degreeSaid: $(`degree-said-${p}`),
      level: $(`level-${p}`),
      levelSaid: $(`level-said-${p}`),
      loss: $(`loss-${p}`),
      extra: $(`extra-${p}`),
    }));
    const update = () => {
      for (const form of forms) checkExtra(data, form.extra);
      labels(data, forms);
      const question = asked(data, forms),
        answer = Engine.decide(data, question),
        name = $("mechanism").value;
      tell(data, question, answer, name);
      maps(data, question, answer, name);
      $("asked").textContent = question.parties
        .map((party) => `${party.name}: ${party.requires.join("; ") || "no requirement"}`)
        .join("\n");
    };
    const form = $("explore-form");
    form.addEventListener("input", (event) => {
      if (event.target.id === "mechanism") for (const one of forms) one.degree.value = 0;
      update();
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(update));
    document.querySelectorAll(".ramp").forEach((element) => (element.style.background = Heat.ramp()));
    update();
    sideBySide(data);
  }

  return { start, stated, cellName };
})();
