"use strict";
// The live page. Names and lines of worlds are set as text, never as markup.

const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#882255",
  "#999933", "#6a5acd", "#117733", "#ddcc77"]; // distinct for people who are colour-blind, on dark and on light
const PHASES = ["other", "environment", "inference", "ring", "waiting", "sampling", "upload", "forward", "backward",
  "optimizer", "publish", "checkpoint"];
const TITLES = { score_last: "Score of the latest episodes", evaluation_score: "Score of greedy evaluations",
  steps_per_s: "Agent steps/s", updates_per_s: "Updates/s" }; // in their order on the page
const STATE_MS = 2000, CURVES_MS = 5000;

const byId = (id) => document.getElementById(id);
const charts = new Map();
let control = false, selected = "", logText = "", expired = false, begun = false;

// "#run=NAME", or a token that was not needed, which does not stay in the address.
function readAddress() {
  if (location.hash.startsWith("#run=")) return decodeURIComponent(location.hash.slice("#run=".length));
  history.replaceState(null, "", selected ? `#run=${encodeURIComponent(selected)}` : "/");
  return selected;
}
selected = readAddress();

// --- words and numbers ---

function el(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

const known = (value) => typeof value === "number" && isFinite(value);

function number(value) {
  if (!known(value)) return "-";
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toPrecision(3)} G`;
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)} k`;
  if (Number.isInteger(value)) return String(value);
  return size !== 0 && size < 1e-3 ? value.toExponential(2) : String(+value.toPrecision(4));
}

function duration(seconds) {
  if (!known(seconds)) return "-";
  const s = Math.round(seconds), two = (n) => String(n).padStart(2, "0");
  if (s >= 86400) return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
  if (s >= 3600) return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  return `${Math.floor(s / 60)}:${two(s % 60)}`;
}

const bytes = (value) => (known(value) ? `${(value / 1048576).toFixed(0)} MiB` : "-");
const percent = (value) => (known(value) ? `${(100 * value).toFixed(0)} %` : "-");

// --- tables ---

// columns: [title, function of a row to text or an element]; the first is the row's name.
function fill(table, columns, rows, onRow) {
  const head = el("thead"), names = el("tr"), body = el("tbody");
  for (const [title] of columns) names.append(el("th", title));
  head.append(names);
  for (const row of rows) {
    const line = el("tr");
    for (const [, cell] of columns) {
      const value = cell(row), td = el("td");
      td.append(value instanceof Node ? value : String(value ?? "-"));
      line.append(td);
    }
    if (onRow) onRow(line, row);
    body.append(line);
  }
  table.replaceChildren(head, body);
}

// --- curves ---

const hasDygraphs = typeof Dygraph === "function";
if (hasDygraphs) // its legend sets styles as attributes, which this page's policy refuses; the page has one of its own
  Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend);

// Rows over all x of the series, null where one has none.
function rowsOf(series) {
  const rows = new Map();
  series.forEach((one, place) => one.x.forEach((x, i) => {
    if (!rows.has(x)) rows.set(x, [x, ...series.map(() => null)]);
    rows.get(x)[place + 1] = one.y[i];
  }));
  return [...rows.values()].sort((a, b) => a[0] - b[0]);
}

const SVG = "http://www.w3.org/2000/svg";

function drawPlain(box, series) {
  const svg = document.createElementNS(SVG, "svg"), all = series.flatMap((s) => s.y), steps = series.flatMap((s) => s.x);
  const low = Math.min(...all), high = Math.max(...all), first = Math.min(...steps), last = Math.max(...steps);
  svg.setAttribute("viewBox", "0 0 600 200");
  svg.setAttribute("preserveAspectRatio", "none");
  series.forEach((one, i) => {
    const line = document.createElementNS(SVG, "polyline");
    line.setAttribute("fill", "none");
    line.setAttribute("stroke", COLOURS[i % COLOURS.length]);
    line.setAttribute("vector-effect", "non-scaling-stroke");
    line.setAttribute("points", one.x.map((x, k) =>
      `${(600 * (x - first)) / (last - first || 1)},${195 - (190 * (one.y[k] - low)) / (high - low || 1)}`).join(" "));
    svg.append(line);
  });
  box.replaceChildren(svg, el("p", `${number(low)} to ${number(high)}, over ${number(first)} to ${number(last)} steps`));
}

function legend(chart, values) {
  chart.legend.replaceChildren(...chart.names.map((name, i) => {
    const item = el("span"), key = el("span", "", "key");
    key.style.background = COLOURS[i % COLOURS.length];
    item.append(key, values && known(values[i]) ? `${name} ${number(values[i])}` : name);
    return item;
  }));
}

// Draws series into a chart of this title below `parent`, which is made once.
function draw(parent, key, title, series) {
  let chart = charts.get(key);
  if (!chart) {
    const box = el("figure", undefined, "chart");
    chart = { box, plot: el("div", undefined, "plot"), legend: el("figcaption", undefined, "legend"), names: [] };
    box.append(el("h4", title), chart.plot, chart.legend);
    parent.append(box);
    charts.set(key, chart);
  }
  const names = series.map((s) => s.name), same = names.join("\n") === chart.names.join("\n");
  chart.names = names;
  if (!same) legend(chart);
  if (!hasDygraphs) {
    drawPlain(chart.plot, series);
    return;
  }
  const file = rowsOf(series);
  if (chart.graph && same) {
    chart.graph.updateOptions({ file });
    return;
  }
  if (chart.graph) chart.graph.destroy();
  const latest = () => legend(chart);
  chart.graph = new Dygraph(chart.plot, file, {
    labels: ["steps", ...names], colors: names.map((_, i) => COLOURS[i % COLOURS.length]), connectSeparatedPoints: true,
    drawPoints: file.length < 60, pointSize: 2.5, labelsKMB: true, gridLineColor: "rgba(128,128,128,.35)", axisLineColor: "gray",
    strokeWidth: 1.5, axes: { y: { axisLabelWidth: 48 } },
    highlightCallback: (_event, _x, points) => {
      const values = names.map((name) => points.find((p) => p.name === name)?.yval);
      legend(chart, values);
    },
    unhighlightCallback: latest,
  });
}

function drop(prefix) {
  for (const [key, chart] of charts)
    if (key.startsWith(prefix)) {
      if (chart.graph) chart.graph.destroy();
      chart.box.remove();
      charts.delete(key);
    }
}

// --- asking ---

function say(text, wrong) {
  byId("said").textContent = text;
  byId("said").className = wrong ? "wrong" : "";
}

async function ask(path) {
  const answer = await fetch(path);
  if (answer.status === 401) {
    expired = true;
    location.reload();
  }
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

async function command(name, values) {
  try {
    const answer = await fetch("/api/control", {
      method: "POST", headers: { "Content-Type": "application/json", "X-Ringmaster": "1" },
      body: JSON.stringify({ run: selected, command: name, arguments: values ?? {} }) });
    const text = await answer.text();
    say(answer.ok ? `${name}: done` : `${name}: ${JSON.parse(text).error}`, !answer.ok);
  } catch (error) {
    say(`${name}: ${error.message}`, true);
  }
  showRuns().catch(lost);
}

// --- the page ---

function choose(name) {
  if (name === selected && !byId("run").hidden) return;
  selected = name;
  history.replaceState(null, "", `#run=${encodeURIComponent(name)}`);
  drop("run ");
  byId("run").hidden = true;
  if (begun) showRun().then(showCurves).catch(lost);
}

async function showRuns() {
  const { runs, control: allowed, gpus } = await ask("/api/runs");
  control = allowed;
  showGpus(gpus);
  if (!runs.some((r) => r.name === selected) && runs.length) choose(runs[0].name);
  byId("none").hidden = runs.length > 0;
  byId("runs").hidden = runs.length === 0;
  fill(byId("runs"), [
    ["experiment", (r) => {
      const button = el("button", r.name, "name");
      button.addEventListener("click", () => choose(r.name));
      return button;
    }],
    ["state", (r) => r.state ?? r.why],
    ["progress", (r) => percent(r.progress?.fraction)],
    ["steps", (r) => number(r.progress?.steps)],
    ["steps/s", (r) => number(r.rates?.steps_per_s)],
    ["score", (r) => number(r.score?.last)],
    ["evaluation", (r) => number(r.evaluation?.mean)],
    ["time", (r) => duration(r.uptime_s)],
    ["left", (r) => duration(r.progress?.left_s)],
  ], runs, (line, r) => line.classList.toggle("selected", r.name === selected));
}

function showGpus({ why, gpus }) {
  byId("nogpus").textContent = why;
  byId("gpus").hidden = gpus.length === 0;
  fill(byId("gpus"), [
    ["GPU", (g) => g.name], ["used", (g) => percent(g.utilisation)], ["memory", (g) => bytes(g.memory_used_bytes)],
    ["of", (g) => bytes(g.memory_bytes)], ["power", (g) => (known(g.power_w) ? `${g.power_w.toFixed(0)} W` : "-")],
    ["slowed by", (g) => g.slowed.join(", ") || "-"],
    ["Xid errors", (g) => (known(g.xid_latest) ? `${number(g.xid_errors)}, latest ${g.xid_latest}` : number(g.xid_errors))],
  ], gpus);
}

function bar(worker) {
  const line = el("div", undefined, "bar");
  PHASES.forEach((phase, i) => {
    const share = worker.phases?.[phase] ?? 0;
    if (share < 0.002) return;
    const part = el("span");
    part.style.width = `${100 * share}%`;
    part.style.background = phase === "waiting" ? "var(--wait)" : COLOURS[i];
    part.title = `${phase} ${percent(share)}`;
    line.append(part);
  });
  return line;
}

function showPhases(workers) {
  const lines = workers.map((w) => {
    const line = el("div", undefined, "phase");
    line.append(el("span", w.name), bar(w));
    return line;
  });
  byId("phases").replaceChildren(...lines);
  const used = PHASES.filter((p) => workers.some((w) => (w.phases?.[p] ?? 0) >= 0.002));
  byId("legend").replaceChildren(...used.map((phase) => {
    const item = el("span"), key = el("span", "", "key");
    key.style.background = phase === "waiting" ? "var(--wait)" : COLOURS[PHASES.indexOf(phase)];
    item.append(key, phase);
    return item;
  }));
}

// The relative change of the rate, with its interval: "+90 % (+79 to +102)".
function gain({ ratio, low, high, steps_per_s: rate }) {
  const signed = (r) => `${r < 1 ? "" : "+"}${(100 * (r - 1)).toFixed(0)}`;
  return `${signed(ratio)} % (${signed((ratio * low) / rate)} to ${signed((ratio * high) / rate)})`;
}

function showVerdict(explained) {
  const parts = [];
  if (explained?.verdict) parts.push(`By its counters: ${explained.verdict}.`);
  else if (explained?.error) parts.push(`No verdict yet: ${explained.error}.`);
  for (const move of explained?.moves ?? [])
    parts.push(`${move.key}=${move.value}: ${gain(move)}, by the model${
      move.changes_learning ? "; it changes what is learned" : ""}.`);
  byId("verdict").textContent = parts.join(" ");
}

function showLog() {
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const lines = logText.split("\n").filter((line) => words.every((word) => line.toLowerCase().includes(word)));
  const log = byId("log"), atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
  log.textContent = lines.join("\n");
  if (atEnd) log.scrollTop = log.scrollHeight;
}

async function showRun() {
  if (!selected) return;
  const name = selected, { status, explain, log, why } = await ask(`/api/run?name=${encodeURIComponent(name)}`);
  if (name !== selected) return;
  byId("run").hidden = false;
  byId("name").textContent = name;
  byId("buttons").hidden = !control;
  byId("facts").textContent = status
    ? `${status.state}, ${status.mode}, seed ${status.seed}, Ringmaster ${status.version}, ${status.run_directory}` : why;
  showVerdict(explain);
  const workers = status?.workers ?? [];
  showPhases(workers);
  fill(byId("workers"), [
    ["worker", (w) => w.name], ["state", (w) => w.supervisor], ["pid", (w) => w.pid || "-"],
    ["deaths", (w) => w.deaths], ["memory", (w) => bytes(w.rss_bytes)], ["steps", (w) => number(w.steps)],
    ["last death", (w) => w.reason || "-"],
  ], workers);
  fill(byId("policies"), [
    ["policy", (p) => p.name], ["steps", (p) => number(p.env_steps)], ["updates", (p) => number(p.updates)],
    ["skipped", (p) => number(p.updates_skipped)], ["loss", (p) => number(p.loss)],
    ["lag", (p) => number(p.lag_mean)], ["replay", (p) => percent(p.replay_fill)],
  ], status?.policies ?? []);
  logText = log ?? "The log cannot be read.";
  showLog();
}

async function showCurves() {
  const others = ask("/api/curves");
  if (selected) await showRunCurves();
  const all = (await others).runs.filter((r) => r.series.length);
  if (all.length > 1)
    draw(byId("scores"), "all", "Score of all experiments", all.map((r) => ({ ...r.series[0], name: r.name })));
  else drop("all");
}

async function showRunCurves() {
  const name = selected, { runs } = await ask(`/api/curves?name=${encodeURIComponent(name)}`);
  if (name !== selected) return;
  const curves = runs[0]?.series ?? [];
  for (const [key, title] of Object.entries(TITLES)) {
    const series = curves.find((one) => one.name === key);
    if (series) draw(byId("curves"), `run ${key}`, title, [series]);
  }
  const losses = curves.filter((one) => one.name.endsWith(".loss"))
    .map((one) => ({ ...one, name: one.name.slice("policy.".length, -".loss".length) }));
  if (losses.length) draw(byId("curves"), "run losses", "Loss", losses);
}

function lost(error) {
  say(`no answer: ${error.message}`);
  byId("said").className = "lost";
}

// What is on the screen goes on; what fails is tried again.
function repeat(show, ms) {
  const turn = async () => {
    try {
      if (!document.hidden) await show();
      if (byId("said").className === "lost") say("");
    } catch (error) {
      if (expired) return;
      lost(error);
    }
    setTimeout(turn, ms);
  };
  return turn();
}

document.querySelectorAll("[data-command]").forEach((button) => button.addEventListener("click", () => {
  const name = button.dataset.command;
  if (name !== "stop" || confirm(`Stop ${selected}?`)) command(name);
}));
byId("set").addEventListener("submit", (event) => {
  event.preventDefault();
  const { key, value } = event.target.elements;
  let parsed = value.value;
  try {
    parsed = JSON.parse(value.value);
  } catch { /* a word */ }
  command("set", { key: key.value.trim(), value: parsed });
});
byId("filter").addEventListener("input", showLog);
window.addEventListener("hashchange", () => choose(readAddress()));

(async () => {
  await repeat(showRuns, STATE_MS);
  begun = true;
  await Promise.all([repeat(showRun, STATE_MS), repeat(showCurves, CURVES_MS)]);
  document.documentElement.dataset.loaded = String(Math.round(performance.now())); // milliseconds, for tests and figures
})();
