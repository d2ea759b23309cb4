"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const STEP = 30;
let shown = STEP;

function node(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function fill(id, names, chosen) {
  for (const name of names) {
    const option = node("option", name || "all");
    option.value = name;
    option.selected = name === chosen;
    at(id).append(option);
  }
}

const unique = (field) => ["", ...new Set(data.queries.map((query) => query[field]).filter(Boolean))];
fill("left", data.systems, data.systems[Math.max(0, data.systems.length - 2)]);
fill("right", data.systems, data.systems[data.systems.length - 1]);
fill("set", unique("set"), "");
fill("type", unique("type"), "");

function parts(values) {
  const named = Object.entries(values).filter(([, value]) => value !== 0);
  return named.map(([name, value]) => `${name} ${value}`).join(", ");
}

function side(query, number) {
  const box = node("div");
  const value = query.values[number];
  box.append(node("small", `${data.systems[number]}: ${value === null ? "no measure" : value.toFixed(3)}`));
  const list = node("ol");
  for (const [key, score, made] of query.answers[number]) {
    const item = node("li", `${key} `, `g${query.labels[key] || 0}`);
    item.append(node("span", `${score} ${parts(made)}`, "parts"));
    list.append(item);
  }
  box.append(query.answers[number].length ? list : node("p", "nothing returned"));
  return box;
}

function card(query, left, right) {
  const box = node("section", undefined, "query");
  box.append(node("h3", query.text), node("small", `${query.set}/${query.id} ${query.type} `));
  for (const [key, grade] of Object.entries(query.labels)) box.append(node("small", ` ${key} `, `g${grade}`));
  const sides = node("div", undefined, "sides");
  sides.append(side(query, left), side(query, right));
  box.append(sides);
  return box;
}

const orders = {
  fall: (l, r) => (q) => (q.values[r] ?? 0) - (q.values[l] ?? 0),
  rise: (l, r) => (q) => (q.values[l] ?? 0) - (q.values[r] ?? 0),
  hard: (l, r) => (q) => (q.values[l] ?? 1) + (q.values[r] ?? 1),
  id: () => () => 0,
};

function draw() {
  const left = data.systems.indexOf(at("left").value);
  const right = data.systems.indexOf(at("right").value);
  const words = at("find").value.toLowerCase();
  const weight = orders[at("order").value](left, right);
  const found = data.queries
    .filter((query) => !at("set").value || query.set === at("set").value)
    .filter((query) => !at("type").value || query.type === at("type").value)
    .filter((query) => !words || `${query.text} ${query.id} ${Object.keys(query.labels)}`.toLowerCase().includes(words))
    .sort((one, other) => weight(one) - weight(other));
  at("count").textContent = `${found.length} queries, ${data.measure}`;
  at("list").replaceChildren(...found.slice(0, shown).map((query) => card(query, left, right)));
  at("more").hidden = found.length <= shown;
}

at("choice").addEventListener("input", () => { shown = STEP; draw(); });
at("choice").addEventListener("submit", (event) => event.preventDefault());
at("more").addEventListener("click", () => { shown += STEP; draw(); });
draw();
