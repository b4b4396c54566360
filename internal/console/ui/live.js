// What the console does in a browser: it keeps the page up to date, and times.
// Without it, pages work by reload.
"use strict";
(() => {
  const main = document.getElementById("main");
  const lost = document.getElementById("lost");
  const state = document.getElementById("state");

  // Times. The browser's clock may be wrong, so the server's is kept.
  const ahead = Date.now() - Date.parse(document.documentElement.dataset.now || new Date().toISOString());

  // words says a duration as kubectl does.
  function words(seconds) {
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

  function tell(t) {
    const left = (Date.parse(t.dateTime) - (Date.now() - ahead)) / 1000;
    let text;
    if (t.dataset.tick === "until") text = left >= 0 ? "in " + words(left) : words(-left) + " ago";
    else text = words(-left);
    if (t.textContent !== text) t.textContent = text;
  }

  function tick() {
    document.querySelectorAll("time[data-tick]").forEach(tell);
  }
  tick();
  setInterval(tick, 1000);

  if (!main || !main.dataset.live || !window.Idiomorph || !window.EventSource) return;

  // What a person is typing or has chosen stays as it is.
  function touched(e) {
    if (e instanceof HTMLInputElement) {
      return e.type === "checkbox" || e.type === "radio" ? e.checked !== e.defaultChecked : e.type !== "hidden" && e.value !== e.defaultValue;
    }
    if (e instanceof HTMLTextAreaElement) return e.value !== e.defaultValue;
    if (e instanceof HTMLSelectElement) return [...e.options].some((o) => o.selected !== o.defaultSelected);
    return false;
  }

  // A form that somebody works on is left alone: what it says is what is sent.
  function busy(e) {
    if (!(e instanceof HTMLElement) || !e.matches("form, [popover]")) return false;
    if (e.matches("[popover]:popover-open")) return true;
    return e instanceof HTMLFormElement && [...e.elements].some(touched);
  }

  function morph(html) {
    Idiomorph.morph(main, html, {
      morphStyle: "innerHTML",
      ignoreActiveValue: true,
      restoreFocus: true,
      callbacks: {
        beforeNodeMorphed: (old) => !busy(old) && !touched(old),
        beforeNodeRemoved: (old) => !busy(old),
        beforeAttributeUpdated: (name, e) => !(name === "open" && e instanceof HTMLDetailsElement),
      },
    });
    tick();
  }

  let source = null, again = 0, since = null, hidden = null, retry = null, heard = Date.now(), gone = false, unsent = false;

  function clock() {
    return new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  }

  function stale(why) {
    since = since || clock();
    const text = (unsent ? "Nothing was sent: try again when this message disappears. " : "") + why + " The page shows the state at " + since + ".";
    if (lost.textContent !== text) lost.textContent = text;
    lost.hidden = false;
    if (state) state.hidden = true;
  }

  function fresh() {
    heard = Date.now();
    since = null;
    gone = unsent = false;
    lost.hidden = true;
    if (state) state.hidden = false;
  }

  function follow() {
    stop();
    const q = new URLSearchParams({ path: main.dataset.live, seen: main.dataset.digest || "" });
    source = new EventSource("/live?" + q);
    heard = Date.now();
    source.onopen = () => { again = 0; fresh(); };
    source.addEventListener("same", fresh);
    source.addEventListener("main", (e) => {
      morph(e.data);
      main.dataset.digest = e.lastEventId;
      fresh();
    });
    source.addEventListener("stale", (e) => { heard = Date.now(); stale(e.data + "."); });
    source.addEventListener("bye", () => { stop(); location.reload(); });
    source.onerror = () => {
      gone = true;
      stale("The connection to hotspare is lost.");
      if (source && source.readyState === EventSource.CLOSED) {
        again = Math.min(30, again * 2 || 1);
        retry = setTimeout(follow, again * 1000);
      }
    };
  }

  function stop() {
    clearTimeout(retry);
    if (source) source.close();
    source = null;
  }

  // A computer that is gone, or that hangs, ends no connection. The server says something
  // every ten seconds.
  setInterval(() => {
    if (!source || Date.now() - heard < 30000) return;
    gone = true;
    stale("hotspare does not answer.");
    follow();
  }, 5000);

  // What cannot arrive is not sent: the browser would leave the page for one of its own.
  // That nothing is heard is no proof of it, so hotspare is asked first.
  let asking = false, sure = false;
  document.addEventListener("submit", (e) => {
    if (!gone || sure) {
      sure = false;
      return;
    }
    e.preventDefault();
    if (asking) return;
    asking = true;
    const form = e.target, by = e.submitter;
    fetch("/alive", { cache: "no-store", signal: AbortSignal.timeout(3000) }).then(() => {
      sure = true;
      form.requestSubmit(by);
    }, () => {
      unsent = true;
      stale("hotspare cannot be reached.");
    }).finally(() => { asking = false; });
  });

  // A browser opens six connections to a server, so pages that nobody sees let go of
  // theirs; they only tell now and then that they are there.
  let alive = null;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    clearInterval(alive);
    if (!document.hidden) {
      if (!source) follow();
      return;
    }
    hidden = setTimeout(stop, 30000);
    alive = setInterval(() => fetch("/alive", { cache: "no-store" }).catch(() => {}), 600000);
  });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (e) => { if (e.persisted) follow(); });
  if (!document.hidden) follow(); // else when somebody looks
})();
