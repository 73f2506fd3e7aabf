// The theme searches in a worker, and browsers start none for pages that are read from a disk. There a frame does it:
// the script of the worker finds `postMessage`, `importScripts` and messages as it expects them. The theme's own code
// asks whether there is an IFrameWorker.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.inside = new Promise(ready => frame.addEventListener("load", async () => {
        const inside = frame.contentWindow;
        const load = source => new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          Object.assign(script, { src: source, onload: done, onerror: failed });
          inside.document.head.append(script);
        });
        inside.postMessage = data => {
          const message = new MessageEvent("message", { data });
          this.dispatchEvent(message);
          if (this.onmessage) this.onmessage(message);
        };
        inside.importScripts = (...sources) => Promise.all(sources.map(load));
        await load(url);
        ready(inside);
      }, { once: true }));
      (document.body || document.documentElement).append(frame);
    }

    async postMessage(data) {
      const inside = await this.inside;
      inside.dispatchEvent(new inside.MessageEvent("message", { data }));
    }

    terminate() {}
  };
}
