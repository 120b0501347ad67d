"use strict";
const report = JSON.parse(document.getElementById("data").textContent);
const main = document.querySelector("main");
const SVG = "http://www.w3.org/2000/svg";

/** An element with text; names are only ever set as text. */
function element(parent, tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  parent.append(made);
  return made;
}

function table(parent, heads, rows) {
  const made = element(parent, "table");
  const head = element(element(made, "thead"), "tr");
  heads.forEach((text) => element(head, "th", text));
  const body = element(made, "tbody");
  for (const cells of rows) {
    const row = element(body, "tr");
    row.dataset.text = cells.join(" ").toLowerCase();
    for (const cell of cells) {
      const names = Array.isArray(cell);
      const number = typeof cell === "number";
      element(row, "td", names ? cell.join("\n") : String(cell), names ? "names" : number ? "number" : "");
      if (names) row.lastChild.style.whiteSpace = "pre-wrap";
    }
  }
}

const shown = (name) => (name.demangled || name.symbol) + (name.version ? " @" + name.version : "");

/** Objects in columns: the system on the right, distributions in the order of loading; edges as curves. */
function graph(parent, run) {
  const columns = new Map();
  run.objects.forEach((object, id) => {
    const key = object.distribution === null ? "system" : object.distribution;
    if (!columns.has(key)) columns.set(key, []);
    columns.get(key).push(id);
  });
  const names = [...columns.keys()].filter((key) => key !== "system");
  if (columns.has("system")) names.push("system");
  const width = 260, height = 18, top = 40;
  const places = new Map();
  names.forEach((name, column) =>
    columns.get(name).forEach((id, row) => places.set(id, [20 + column * width, top + row * height])));
  const rows = Math.max(...[...columns.values()].map((ids) => ids.length), 1);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${names.length * width + 40} ${top + rows * height + 10}`);
  svg.setAttribute("width", names.length * width + 40);
  parent.append(svg);
  const astray = new Set(run.unexpected.map((u) => u.from + " " + u.to));
  for (const edge of run.edges) {
    const [x1, y1] = places.get(edge.from), [x2, y2] = places.get(edge.to);
    const path = document.createElementNS(SVG, "path");
    const bend = x1 === x2 ? -30 : (x2 - x1) / 2;
    path.setAttribute("d", `M${x1},${y1 - 4} C${x1 + bend},${y1 - 4} ${x2 - bend},${y2 - 4} ${x2},${y2 - 4}`);
    path.dataset.text = (run.objects[edge.from].name + " " + run.objects[edge.to].name).toLowerCase();
    if (astray.has(edge.from + " " + edge.to)) path.setAttribute("class", "bad");
    svg.append(path);
  }
  const text = (content, x, y, bold) => {
    const made = document.createElementNS(SVG, "text");
    made.setAttribute("x", x);
    made.setAttribute("y", y);
    if (bold) made.setAttribute("font-weight", "bold");
    made.textContent = content.length > 38 ? "..." + content.slice(-36) : content;
    svg.append(made);
  };
  names.forEach((name, column) => text(name, 20 + column * width, 20, true));
  places.forEach(([x, y], id) => text(run.objects[id].name, x, y, run.objects[id].global));
}

function show(run) {
  const name = (id) => (id === null ? "nothing" : run.objects[id].name);
  element(main, "h2", run.order.join(", ") || "recorded run");
  element(main, "p", `${run.opened.length} opened, ${run.objects.length} objects, ${run.references} references`);
  run.notes.forEach((note) => element(main, "p", note, "quiet"));
  if (run.missing.length) {
    element(main, "h3", "Missing libraries", "bad");
    table(main, ["library", "needed by"], run.missing.map((m) => [m.name, m.from === null ? "" : name(m.from)]));
  }
  if (run.unresolved.length) {
    element(main, "h3", "Unresolved symbols", "bad");
    table(main, ["object", "symbol", "perhaps"], run.unresolved.map((u) => [name(u.from), [shown(u)], u.perhaps.join(", ")]));
  }
  if (run.symbols !== null) {
    element(main, "h3", "Symbols");
    const rows = run.symbols.flatMap((s) => [
      ...s.definitions.map((d) => [[shown(s)], "defined in", name(d.object), d.binding]),
      ...s.references.map((r) => [[shown(s)], "referred by", name(r.object), "served by " + name(r.provider) + ", " + r.via]),
    ]);
    table(main, ["symbol", "", "object", ""], rows);
  }
  graph(main, run);
  element(main, "h3", "References that leave what they were built for");
  table(main, ["object", "served by", "how", "symbols"],
    run.unexpected.map((u) => [name(u.from), name(u.to), u.kind + ", " + u.via, u.symbols.map(shown)]));
  element(main, "h3", "Who serves whom");
  table(main, ["object", "served by", "symbols", "global", "local", "unique", "overridden"],
    run.edges.map((e) => [name(e.from), name(e.to), e.global + e.local + e.unique, e.global, e.local, e.unique, e.overridden]));
}

element(main, "h1", "Who serves whom");
const system = report.system;
element(main, "p", `${system.arch}, ${system.libc} ${system.libc_release}, GCC ${system.gcc_release}`, "quiet");
report.inputs.filter((i) => i.error).forEach((i) => element(main, "p", i.path + ": " + i.error, "bad"));
const search = element(main, "input");
search.type = "search";
search.placeholder = "Object or symbol";
search.addEventListener("input", () => {
  const wanted = search.value.toLowerCase();
  for (const part of document.querySelectorAll("[data-text]")) {
    part.style.display = part.dataset.text.includes(wanted) ? "" : "none";
  }
});
report.runs.forEach(show);
if (report.differences.length) {
  element(main, "h2", "References that depend on the order");
  table(main, ["object", "served by, in each order", "symbols"],
    report.differences.map((d) => [d.object, d.providers.map((p) => p === null ? "nothing" : p).join(" | "), d.symbols.map(shown)]));
}
