// Keeps the page and its times up to date. Without this script, pages are up to date after a
// reload.
"use strict";
(() => {
  const main = document.getElementById("main");
  const lost = document.getElementById("lost");
  const state = document.getElementById("state");

  // The browser's clock may be wrong: times are relative to the server's.
  const clockOffset = Date.now() - Date.parse(document.documentElement.dataset.now || new Date().toISOString());

  // formatDuration formats a duration as kubectl does.
  function formatDuration(seconds) {
    const s = Math.max(0, Math.floor(seconds));
    const m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
    const two = (a, x, b, y) => b ? a + x + b + y : a + x;
    if (s < 120) return s + "s";
    if (m < 10) return two(m, "m", s % 60, "s");
    if (m < 180) return m + "m";
    if (h < 8) return two(h, "h", m % 60, "m");
    if (h < 48) return h + "h";
    if (h < 192) return two(d, "d", h % 24, "h");
    if (d < 730) return d + "d";
    if (d < 2920) return two(Math.floor(d / 365), "y", d % 365, "d");
    return Math.floor(d / 365) + "y";
  }

  function updateTime(t) {
    const left = (Date.parse(t.dateTime) - (Date.now() - clockOffset)) / 1000;
    let text;
    if (t.dataset.tick === "until") text = left >= 0 ? "in " + formatDuration(left) : formatDuration(-left) + " ago";
    else text = formatDuration(-left);
    if (t.textContent !== text) t.textContent = text;
  }

  function updateTimes() {
    document.querySelectorAll("time[data-tick]").forEach(updateTime);
  }
  updateTimes();
  setInterval(updateTimes, 1000);

  if (!main || !main.dataset.live || !window.Idiomorph || !window.EventSource) return;

  // An input that the user has changed keeps its value.
  function isChanged(e) {
    if (e instanceof HTMLInputElement) {
      return e.type === "checkbox" || e.type === "radio" ? e.checked !== e.defaultChecked : e.type !== "hidden" && e.value !== e.defaultValue;
    }
    if (e instanceof HTMLTextAreaElement) return e.value !== e.defaultValue;
    if (e instanceof HTMLSelectElement) return [...e.options].some((o) => o.selected !== o.defaultSelected);
    return false;
  }

  // A form in use is not updated: the user sends what the form shows.
  function isInUse(e) {
    if (!(e instanceof HTMLElement) || !e.matches("form, [popover]")) return false;
    if (e.matches("[popover]:popover-open")) return true;
    return e instanceof HTMLFormElement && [...e.elements].some(isChanged);
  }

  function updateMain(html) {
    Idiomorph.morph(main, html, {
      morphStyle: "innerHTML",
      ignoreActiveValue: true,
      restoreFocus: true,
      callbacks: {
        beforeNodeMorphed: (old) => !isInUse(old) && !isChanged(old),
        beforeNodeRemoved: (old) => !isInUse(old),
        beforeAttributeUpdated: (name, e) => !(name === "open" && e instanceof HTMLDetailsElement),
      },
    });
    updateTimes();
  }

  let source = null, retrySeconds = 0, since = null, hidden = null, retry = null, lastEvent = Date.now(), disconnected = false, unsent = false;

  function clock() {
    return new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  }

  function showStale(why) {
    since = since || clock();
    const text = (unsent ? "Nothing was sent: try again when this message disappears. " : "") + why + " The page shows the state at " + since + ".";
    if (lost.textContent !== text) lost.textContent = text;
    lost.hidden = false;
    if (state) state.hidden = true;
  }

  function showLive() {
    lastEvent = Date.now();
    since = null;
    disconnected = unsent = false;
    lost.hidden = true;
    if (state) state.hidden = false;
  }

  function connect() {
    disconnect();
    const q = new URLSearchParams({ path: main.dataset.live, seen: main.dataset.digest || "" });
    source = new EventSource("/live?" + q);
    lastEvent = Date.now();
    source.onopen = () => { retrySeconds = 0; showLive(); };
    source.addEventListener("same", showLive);
    source.addEventListener("main", (e) => {
      updateMain(e.data);
      main.dataset.digest = e.lastEventId;
      showLive();
    });
    source.addEventListener("stale", (e) => { lastEvent = Date.now(); showStale(e.data + "."); });
    source.addEventListener("bye", () => { disconnect(); location.reload(); });
    source.onerror = () => {
      disconnected = true;
      showStale("The connection to hotspare is lost.");
      if (source && source.readyState === EventSource.CLOSED) {
        retrySeconds = Math.min(30, retrySeconds * 2 || 1);
        retry = setTimeout(connect, retrySeconds * 1000);
      }
    };
  }

  function disconnect() {
    clearTimeout(retry);
    if (source) source.close();
    source = null;
  }

  // A computer that hangs or is unreachable does not close its connections. The server sends an
  // event every ten seconds.
  setInterval(() => {
    if (!source || Date.now() - lastEvent < 30000) return;
    disconnected = true;
    showStale("hotspare does not answer.");
    connect();
  }, 5000);

  // While hotspare is unreachable, forms are not sent: the browser would replace the page by an
  // error page of its own. The stream may be down for another reason, so a request checks first.
  let checking = false, reachable = false;
  document.addEventListener("submit", (e) => {
    if (!disconnected || reachable) {
      reachable = false;
      return;
    }
    e.preventDefault();
    if (checking) return;
    checking = true;
    const form = e.target, by = e.submitter;
    fetch("/alive", { cache: "no-store", signal: AbortSignal.timeout(3000) }).then(() => {
      reachable = true;
      form.requestSubmit(by);
    }, () => {
      unsent = true;
      showStale("hotspare cannot be reached.");
    }).finally(() => { checking = false; });
  });

  // A browser opens at most six connections to a server, so hidden pages close theirs. They send
  // a request now and then to keep the session alive.
  let alive = null;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    clearInterval(alive);
    if (!document.hidden) {
      if (!source) connect();
      return;
    }
    hidden = setTimeout(disconnect, 30000);
    alive = setInterval(() => fetch("/alive", { cache: "no-store" }).catch(() => {}), 600000);
  });
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (e) => { if (e.persisted) connect(); });
  if (!document.hidden) connect(); // otherwise when the page becomes visible
})();
