"use strict";
// Search: leaves whose own name, or the name of a node of theirs, holds the word stay; all others go. #WORD in the address searches too.
(() => {
  const field = document.getElementById("search");
  const said = document.getElementById("found");
  const leaves = [...document.querySelectorAll("details.leaf")].map((row) => ({
    row,
    name: row.dataset.name.toLowerCase(),
    nodes: row.dataset.nodes.toLowerCase().split(" "),
    tile: document.querySelector(`g.leaf[data-leaf="${row.dataset.leaf}"]`),
  }));
  const switches = [...document.querySelectorAll("details.switch")].reverse();
  const wasOpen = new Map(switches.map((one) => [one, one.open]));

  const search = () => {
    const word = field.value.trim().toLowerCase();
    let shown = 0;
    let nodes = 0;
    for (const leaf of leaves) {
      const hits = word ? leaf.nodes.map((node) => node.includes(word)) : [];
      const hit = !word || leaf.name.includes(word) || hits.includes(true);
      leaf.row.hidden = !hit;
      leaf.row.open = Boolean(word) && hits.includes(true) && !leaf.name.includes(word);
      shown += hit ? 1 : 0;
      nodes += hits.filter(Boolean).length;
      if (leaf.tile) {
        leaf.tile.classList.toggle("dim", !hit);
        const squares = leaf.tile.querySelectorAll("rect[rx='2']");
        squares.forEach((square, number) => square.classList.toggle("hit", Boolean(hits[number])));
      }
    }
    for (const one of switches) {
      const full = one.querySelector("details.leaf:not([hidden])") !== null;
      one.hidden = !full;
      one.open = word ? full : wasOpen.get(one);
    }
    said.textContent = word ? `${nodes} ${nodes === 1 ? "node" : "nodes"}, ${shown} ${shown === 1 ? "leaf" : "leaves"}` : "";
    document.body.dataset.found = String(shown);
  };

  const given = decodeURIComponent(location.hash.slice(1));
  if (given) field.value = given;
  field.addEventListener("input", search);
  field.form.addEventListener("submit", (event) => event.preventDefault());
  field.form.hidden = false;
  if (given) search();
})();
