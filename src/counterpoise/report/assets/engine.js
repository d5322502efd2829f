// The decision, recomputed in the browser: the same rules as the Python package counterpoise.tradeoff, over the same
// numbers. Pure functions of (data, question); no document, no state. Tests run this file and compare.
"use strict";
const Engine = (() => {
  const POLICIES = ["paper", "unanimous", "quorum", "egalitarian", "nash"];
  const BOUND = /^\s*([a-z_][a-z0-9_]*)\s*(>=|<=|>|<)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*$/;
  const EXTREME = /^\s*(maximum|minimum)\s+([a-z_][a-z0-9_]*)\s*$/;

  // --- numbers -------------------------------------------------------------------------------------------------
  const revive = (x) => (x === null ? NaN : x === "inf" ? Infinity : x === "-inf" ? -Infinity : x);

  // Degrees are decimals and are compared exactly: digits are aligned at the point and compared as words.
  function decimal(words) {
    const [, sign, whole, part, power] = /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(String(words).trim());
    let digits = whole + part,
      point = whole.length + Number(power || 0);
    if (point < 0) [digits, point] = ["0".repeat(-point) + digits, 0];
    digits = digits.padEnd(point, "0");
    const zero = /^0*$/.test(digits);
    return {
      negative: sign === "-" && !zero,
      left: digits.slice(0, point).replace(/^0+/, ""),
      right: digits.slice(point),
    };
  }

  function compare(a, b) {
    const [x, y] = [decimal(a), decimal(b)];
    if (x.negative !== y.negative) return x.negative ? -1 : 1;
    const width = Math.max(x.right.length, y.right.length);
    const [m, n] = [x, y].map((d) => d.right.padEnd(width, "0"));
    const size = x.left.length - y.left.length || (x.left + m < y.left + n ? -1 : x.left + m > y.left + n ? 1 : 0);
    return x.negative ? -size : size;
  }

  const asserts = { ">=": (c) => c >= 0, ">": (c) => c > 0, "<=": (c) => c <= 0, "<": (c) => c < 0 };

  // --- requirements ----------------------------------------------------------------------------------------------
  function parse(words) {
    let match = EXTREME.exec(words);
    if (match) return { quantity: match[2], extreme: match[1] };
    match = BOUND.exec(words);
    if (match) return { quantity: match[1], relation: match[2], value: match[3] };
    throw new Error(`'${words}' must read like 'noise >= 1.8', 'utility_loss <= 0.05' or 'maximum privacy'.`);
  }

  const resolve = (data, mode, quantity) =>
    ["privacy", "explanation", "utility_loss"].includes(quantity) ? data.modes[mode][quantity] : quantity;

  // The value of a quantity in cell k of party p. Training-level quantities are stored once a degree.
  function at(mechanism, name, p, k, part = "value") {
    const held = mechanism.quantities[name],
      J = mechanism.levels.length,
      I = mechanism.degrees.length;
    const index = held.by === "degree" ? p * I + Math.floor(k / J) : p * I * J + k;
    return revive(held[part][index]);
  }

  function holds(data, mechanism, p, party, words, mode) {
    const wish = parse(words),
      J = mechanism.levels.length,
      cells = mechanism.degrees.length * J;
    const own = ["explainability", mechanism.degree];
    if (data.degreeNames.includes(wish.quantity) && !own.includes(wish.quantity))
      return new Array(cells).fill(party.mechanisms.length > 0);
    if (own.includes(wish.quantity)) {
      const degree = (k) =>
        wish.quantity === "explainability" ? mechanism.levels[k % J] : mechanism.degrees[Math.floor(k / J)];
      return met(
        wish,
        Array.from({ length: cells }, (_, k) => degree(k)),
        compare,
        () => true,
      );
    }
    const name = resolve(data, mode, wish.quantity);
    if (!(name in mechanism.quantities))
      throw new Error(`${party.name}: '${words}' requires the unknown '${wish.quantity}'.`);
    const values = Array.from({ length: cells }, (_, k) => at(mechanism, name, p, k));
    return met(
      wish,
      values,
      (a, b) => a - Number(b),
      (value) => !Number.isNaN(value),
    );
  }

  function met(wish, values, order, present) {
    if (wish.relation)
      return values.map((value) => present(value) && asserts[wish.relation](difference(order, value, wish.value)));
    const way = wish.extreme === "maximum" ? 1 : -1;
    const best = values
      .filter(present)
      .reduce((b, v) => (b === null || way * difference(order, v, b) > 0 ? v : b), null);
    return values.map((value) => best !== null && present(value) && difference(order, value, best) === 0);
  }

  // Infinity - Infinity is no number, but the two are equal.
  const difference = (order, a, b) => (a === Number(b) ? 0 : order(a, b));

  // --- policies --------------------------------------------------------------------------------------------------
  function willing(policy, quorum, parties) {
    if (!POLICIES.includes(policy)) throw new Error(`policy '${policy}' is none of ${POLICIES.join(", ")}.`);
    if (policy === "paper") return 1;
    if (policy !== "quorum") return parties;
    const needed = quorum === null || quorum === undefined ? Math.floor(parties / 2) + 1 : quorum;
    if (needed > parties) throw new Error(`quorum=${needed} must not be above the number of parties, ${parties}.`);
    return needed;
  }

  function merge(policy, needed, scores, allowed) {
    const count = allowed.filter(Boolean).length;
    if (count < needed) return NaN;
    if (policy === "egalitarian") return Math.min(...scores);
    if (policy === "nash") return scores.reduce((product, s) => product * Math.max(s, 0), 1) ** (1 / scores.length);
    return count ? scores.reduce((sum, s, p) => sum + (allowed[p] ? s * (1 / count) : 0), 0) : NaN;
  }

  // --- the decision ----------------------------------------------------------------------------------------------
  function panel(data, mechanism, question) {
    const { mode, policy, parties } = question,
      cells = mechanism.degrees.length * mechanism.levels.length;
    const score = (p, k, part) => revive(mechanism.scores[mode][part][p * cells + k]);
    const wishes = parties.map((party, p) =>
      party.requires.map((words) => ({ words, met: holds(data, mechanism, p, party, words, mode) })),
    );
    const open = parties.map((party) => !party.mechanisms.length || party.mechanisms.includes(mechanism.name));
    const possible = parties.map((party, p) =>
      Array.from(
        { length: cells },
        (_, k) => open[p] && !Number.isNaN(score(p, k, "value")) && wishes[p].every((w) => w.met[k]),
      ),
    );
    const needed = willing(policy, question.quorum, parties.length),
      aggregate = {};
    for (const part of ["value", "low", "high"])
      aggregate[part] = Array.from({ length: cells }, (_, k) =>
        merge(
          policy,
          needed,
          parties.map((_, p) => score(p, k, part)),
          possible.map((mask) => mask[k]),
        ),
      );
    return { mechanism, score, wishes, open, possible, aggregate, needed };
  }

  function standings(data, found, mode) {
    const { mechanism, aggregate, possible } = found,
      loss = data.modes[mode].utility_loss;
    const worst = (name, k) =>
      possible.reduce((w, _, p) => {
        const value = at(mechanism, name, p, k);
        return Number.isNaN(w) || value > w ? (Number.isNaN(value) ? w : value) : w;
      }, NaN);
    return aggregate.value
      .map((score, k) => ({
        mechanism: mechanism.name,
        k,
        degreeName: mechanism.degree,
        degree: mechanism.degrees[Math.floor(k / mechanism.levels.length)],
        explainability: mechanism.levels[k % mechanism.levels.length],
        score,
        low: aggregate.low[k],
        high: aggregate.high[k],
        epsilon: worst("epsilon", k),
        utilityLoss: worst(loss, k),
      }))
      .filter((standing) => !Number.isNaN(standing.score));
  }

  // Best first; ties by lower epsilon, then lower loss, then the order of the grid (the sort is stable).
  function ranked(list) {
    const rounded = (x) => Number(x.toPrecision(12));
    const up = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    return [...list].sort(
      (a, b) => up(rounded(b.score), rounded(a.score)) || up(a.epsilon, b.epsilon) || up(a.utilityLoss, b.utilityLoss),
    );
  }

  function choice(list, panels, question) {
    const [winner, ...others] = ranked(list);
    return {
      winner,
      runnersUp: others.slice(0, 5),
      feasible: list.length,
      flipMargin: others.length ? winner.score - others[0].score : Infinity,
      contested: others.some((other) => other.high >= winner.low),
      parties: question.parties.map((party, p) => view(party, p, winner, panels)),
    };
  }

  function view(party, p, winner, panels) {
    const own = panels.find((found) => found.mechanism.name === winner.mechanism);
    const score = own.score(p, winner.k, "value");
    let best = NaN;
    for (const found of panels)
      found.possible[p].forEach((allowed, k) => {
        const value = found.score(p, k, "value");
        if (allowed && !(value <= best)) best = value;
      });
    const forbids = own.wishes[p].filter((wish) => !wish.met[winner.k]).map((wish) => wish.words);
    if (!own.open[p]) forbids.unshift(`mechanisms: ${party.mechanisms.join(", ")}`);
    return { party: party.name, score, best, regret: best - score, allows: own.possible[p][winner.k], forbids };
  }

  // question: { mode, policy, quorum (or null), parties: [{ name, mechanisms, requires: [words] }] }
  function decide(data, question) {
    const panels = data.mechanisms.map((mechanism) => panel(data, mechanism, question));
    const lists = panels.map((found) => standings(data, found, question.mode));
    const outcomes = {};
    panels.forEach((found, m) => {
      outcomes[found.mechanism.name] = lists[m].length ? choice(lists[m], [found], question) : null;
    });
    const all = lists.flat();
    let best = null;
    if (panels.length === 1) best = outcomes[panels[0].mechanism.name];
    else if (data.modes[question.mode].comparable && all.length) best = choice(all, panels, question);
    return { panels, outcomes, best };
  }

  // Requirements that would each be enough to give up to make this mechanism feasible.
  function binding(data, question, name) {
    const mechanism = data.mechanisms.find((found) => found.name === name),
      found = [];
    question.parties.forEach((party, p) =>
      party.requires.forEach((words, w) => {
        const parties = question.parties.map((other, q) =>
          q === p ? { ...other, requires: other.requires.filter((_, i) => i !== w) } : other,
        );
        if (standings(data, panel(data, mechanism, { ...question, parties }), question.mode).length)
          found.push({ party: party.name, words });
      }),
    );
    return found;
  }

  return { POLICIES, parse, compare, revive, at, willing, decide, binding };
})();
