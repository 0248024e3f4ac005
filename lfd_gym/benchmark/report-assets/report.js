"use strict";
// Sort a table by the column whose header was pressed; again to turn it round.
for (const header of document.querySelectorAll("th[data-sort]")) {
  header.querySelector("button").addEventListener("click", () => {
    const table = header.closest("table");
    const column = [...header.parentNode.children].indexOf(header);
    const descending = header.getAttribute("aria-sort") === "ascending";
    for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const value = (row) => row.children[column].dataset.value;
    const numeric = header.dataset.sort === "number";
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const order = numeric ? Number(x) - Number(y) : x.localeCompare(y);
      return descending ? -order : order;
    });
    table.tBodies[0].append(...rows);
  });
}
// Show or hide a learner in every chart.
for (const button of document.querySelectorAll(".legend button")) {
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") === "false";
    button.setAttribute("aria-pressed", String(shown));
    for (const part of document.querySelectorAll("svg g[id]")) {
      if (part.id.split("~")[1] === button.dataset.learner) part.style.display = shown ? "" : "none";
    }
  });
}
