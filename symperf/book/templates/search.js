"use strict";
// The search box: every word of the question must begin a word of an entry; titles and names count most.
function wordsOf(text) {
  return text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
}

function weighed(entry) {
  entry.words ??= [[entry.title, 8], [entry.name, 8], [entry.more, 1]]
    .flatMap(([text, weight]) => wordsOf(text).map((word) => [word, weight]));
  return entry.words;
}

function score(entry, asked) {
  let total = 0;
  for (const word of asked) {
    let best = 0;
    for (const [found, weight] of weighed(entry)) {
      if (found.startsWith(word)) best = Math.max(best, found === word ? 2 * weight : weight);
    }
    if (best === 0) return 0;
    total += best;
  }
  const whole = asked.join(" ");
  if (whole === wordsOf(entry.name).join(" ") || whole === wordsOf(entry.title).join(" ")) total += 100;
  return total + 1 / (1 + wordsOf(entry.title).length);
}

function search(entries, question, limit) {
  const asked = wordsOf(question);
  if (asked.length === 0) return [];
  const found = entries.map((entry) => [score(entry, asked), entry]).filter((pair) => pair[0] > 0);
  found.sort((a, b) => b[0] - a[0]);
  return found.slice(0, limit).map((pair) => pair[1]);
}

function startSearch() {
  const box = document.getElementById("search");
  const list = document.getElementById("results");
  let chosen = -1;

  function choose(place) {
    const links = list.querySelectorAll("a");
    if (links.length === 0) return;
    chosen = (place + links.length) % links.length;
    links.forEach((link, i) => link.classList.toggle("on", i === chosen));
    links[chosen].scrollIntoView({ block: "nearest" });
  }

  function show() {
    const found = search(BOOK, box.value, 12);
    list.replaceChildren(...found.map((entry) => {
      const line = document.createElement("li");
      const link = document.createElement("a");
      const about = document.createElement("small");
      link.href = entry.place;
      link.textContent = entry.title;
      about.textContent = [entry.kind, entry.name].filter(Boolean).join(" · ");
      link.append(about);
      line.append(link);
      return line;
    }));
    if (found.length === 0 && box.value.trim()) {
      const line = document.createElement("li");
      line.className = "none";
      line.textContent = "nothing found";
      list.append(line);
    }
    list.hidden = list.children.length === 0;
    chosen = -1;
  }

  box.addEventListener("input", show);
  box.addEventListener("focus", show);
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Escape") list.hidden = true;
    else if (event.key === "Enter") {
      const link = list.querySelectorAll("a")[Math.max(chosen, 0)];
      if (link) link.click();
    } else return;
    event.preventDefault();
  });
  list.addEventListener("click", () => { list.hidden = true; });
  document.addEventListener("click", (event) => {
    if (!event.target.closest(".search")) list.hidden = true;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      box.focus();
    }
  });
}

if (typeof document !== "undefined") startSearch();
