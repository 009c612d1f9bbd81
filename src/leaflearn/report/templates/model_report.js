"use strict";
// The page is complete without this script, which adds a switch between light and dark and a table that sorts and searches.
// Names are set as text only.
(() => {
  const byId = (id) => document.getElementById(id);

  // The page follows the theme of the system until the reader switches it; the switch lasts while the page is open.
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const theme = byId("theme");
  const nameTheme = () => { theme.textContent = isDark() ? "Light page" : "Dark page"; };
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
  system.addEventListener("change", nameTheme);
  nameTheme();

  // Open all details for printing, except the numbers of the charts.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")].filter((details) => !details.closest("figure"));
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of opened) details.open = false; });

  const AT_ONCE = 50;
  const data = JSON.parse(byId("group-data").textContent);
  const table = byId("group-table");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const marks = new Map([...document.querySelectorAll("#contexts table .of-context")].map((mark) => [mark.textContent, mark]));
  const folded = data.group.map((name) => name.toLocaleLowerCase());
  const inOrder = new Intl.Collator(undefined, { numeric: true });
  let order = data.group.map((_, i) => i);
  let page = 0;

  // The same rounding as in formatting.py: only exact values are shown as 100 % or 0 %.
  const share = (value) => {
    const percent = 100 * value;
    if (percent > 99.9 && percent < 100) return "over 99.9\u00a0%";
    if (percent > 0 && percent < 0.1) return "under 0.1\u00a0%";
    return percent.toFixed((percent > 0 && percent < 1) || (percent > 99 && percent < 100) ? 1 : 0) + "\u00a0%";
  };
  const number = (value) => {
    if (value === null) return "\u221e";
    if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
    return value === 0 ? "0" : String(Number(value.toPrecision(3)));
  };

  const cell = (row, tag, content, isNumber) => {
    const made = row.appendChild(document.createElement(tag));
    if (isNumber) made.className = "number";
    if (tag === "th") made.scope = "row";
    made.append(content);
    return made;
  };
  const show = (i) => {
    const row = document.createElement("tr");
    const name = document.createElement("bdi");
    name.textContent = data.group[i];
    cell(row, "th", name, false);
    const context = `context ${data.context[i]}`;
    cell(row, "td", marks.has(context) ? marks.get(context).cloneNode(true) : context, false);
    cell(row, "td", share(data.probability[i]), true);
    cell(row, "td", number(data.margin[i]), true);
    cell(row, "td", data.rows[i].toLocaleString("en"), true);
    return row;
  };

  const draw = () => {
    const wanted = byId("find").value.trim().toLocaleLowerCase();
    const context = byId("in-context").value;
    const found = order.filter((i) => folded[i].includes(wanted) && (context === "" || data.context[i] === Number(context)));
    const pages = Math.max(1, Math.ceil(found.length / AT_ONCE));
    page = Math.min(page, pages - 1);
    const shown = found.slice(page * AT_ONCE, (page + 1) * AT_ONCE);
    body.replaceChildren(...shown.map(show));
    const from = found.length ? page * AT_ONCE + 1 : 0;
    byId("group-count").textContent = found.length === 0 ? "No group has such a name."
      : `Groups ${from.toLocaleString("en")} to ${(from + shown.length - 1).toLocaleString("en")} of ${found.length.toLocaleString("en")}`;
    byId("page-number").textContent = `Page ${page + 1} of ${pages}`;
    document.querySelector(".pages").hidden = pages === 1;
    byId("previous").disabled = page === 0;
    byId("next").disabled = page === pages - 1;
  };

  const compare = (column) => (a, b) => {
    const [left, right] = [data[column][a], data[column][b]];
    if (column === "group") return inOrder.compare(left, right);
    return (left === null ? Infinity : left) === (right === null ? Infinity : right) ? 0
      : (left === null ? Infinity : left) - (right === null ? Infinity : right);
  };
  const sortBy = (head) => {
    const column = head.querySelector("button").dataset.column;
    const falls = head.getAttribute("aria-sort") === "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", falls ? "descending" : "ascending");
    const rising = compare(column);
    order.sort((a, b) => (falls ? rising(b, a) : rising(a, b)) || a - b);
    page = 0;
    draw();
  };

  for (const head of heads) head.querySelector("button").addEventListener("click", () => sortBy(head));
  for (const id of ["find", "in-context"]) byId(id).addEventListener("input", () => { page = 0; draw(); });
  document.querySelector(".controls").addEventListener("submit", (event) => event.preventDefault());
  byId("previous").addEventListener("click", () => { page -= 1; draw(); });
  byId("next").addEventListener("click", () => { page += 1; draw(); });
  for (const element of document.querySelectorAll(".needs-script")) element.hidden = false;
  draw();
})();
