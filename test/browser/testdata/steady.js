// Gives the ages and the random names on a page fixed values, so that two runs of
// make screenshots differ as little as possible.
(() => {
  const suffixes = ["x7k2p", "m4tqz", "9bw5c", "h2lfd", "v8n6r", "q3zjk", "t5gxs", "c6pmw", "k9dhv", "w2rbn", "f7sqt", "z4vlg"];
  const known = new Map();
  const rename = (all, pool, suffix) => {
    if (!known.has(all)) known.set(all, pool + "-" + (suffixes[known.size] || suffix));
    return known.get(all);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    texts.currentNode.data = texts.currentNode.data.replace(/\b(pull-requests|release|vsphere|gcp|spares|laptop)-([0-9a-z]{5})\b/g, rename);
  }
  // Elements of one selector get the ages in turn; the last one is for all that follow.
  const ages = {
    ".events time": ["8s", "21s", "54s", "2m", "3m", "5m", "8m", "12m", "19m", "31m"],
    ".tile time": ["6h", "5h", "5h", "4h", "3h", "2h", "9h", "8h", "7h", "1h"],
    ".problems time": ["3h", "47m", "12m"],
    "tr time[data-tick=ago]": ["12m", "4m", "3h", "2h"],
    "tr time[data-tick=until]": ["in 7h48m", "in 7h56m", "in 5h"],
    ".figure time, .ready time": ["12m"],
    ".lead time": ["3d"],
  };
  for (const [selector, values] of Object.entries(ages)) {
    document.querySelectorAll(selector).forEach((e, n) => { e.textContent = values[Math.min(n, values.length - 1)]; });
  }
  document.querySelector("footer")?.remove(); // it has the version
})()
