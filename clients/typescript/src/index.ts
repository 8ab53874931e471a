import createClient, { type Client } from "openapi-fetch";

import { follow, type Following, named, pause, type RunEvent } from "./events.js";
import { FathomError, failureIn } from "./failure.js";
import type { components, paths } from "./schema.js";

export { FathomError, type Problem, type WrongValue } from "./failure.js";
export type { Following, RunEvent } from "./events.js";
export type { components, paths } from "./schema.js";

export type Run = components["schemas"]["Run"];
export type RunRequest = components["schemas"]["RunRequest"];

export interface FathomOptions {
  /** Address of the server. */
  url?: string;
  /** An API token. A server that only this machine reaches needs none. */
  token?: string;
  /** Milliseconds after which a request that has no answer is given up. */
  timeout?: number;
  /** How often a request is sent again after a failure that may pass, where that can do no harm. */
  retries?: number;
  fetch?: typeof fetch;
}

export interface ResearchOptions extends Partial<Omit<RunRequest, "question">> {
  onEvent?: (event: RunEvent) => void | Promise<void>;
  idempotencyKey?: string;
  signal?: AbortSignal;
}

/** A run that has ended, with its report in Markdown; empty if there is none. */
export type FinishedRun = Run & { report: string };

const ENDED = new Set(["complete", "degraded", "insufficient_evidence", "failed", "cancelled", "unreadable"]);
const IDEMPOTENT = new Set(["GET", "PUT", "DELETE"]);
const LONGEST_WAIT = 60;

/** A client of a Fathom server. `api` has every route, typed; the methods are what takes more than one request. */
export class Fathom {
  /** Every route: `await fathom.api.GET("/api/v1/runs/{run_id}", { params: { path: { run_id } } })`. */
  readonly api: Client<paths>;
  readonly #url: string;
  readonly #token: string | undefined;
  readonly #timeout: number;
  readonly #retries: number;
  readonly #fetch: typeof fetch;

  constructor(options: FathomOptions = {}) {
    this.#url = (options.url ?? "http://127.0.0.1:8700").replace(/\/+$/, "");
    this.#token = options.token;
    this.#timeout = options.timeout ?? 60_000;
    this.#retries = options.retries ?? 6;
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.api = createClient<paths>({ baseUrl: this.#url, fetch: (request) => this.#send(request) });
  }

  /** Research a question, wait for the end and return the run with its report. */
  async research(question: string, options: ResearchOptions = {}): Promise<FinishedRun> {
    const { onEvent, signal, ...request } = options;
    const started = await this.start(question, request);
    for await (const event of this.events(started.id, signal ? { signal } : {})) await onEvent?.(event);
    const run = await this.run(started.id);
    return { ...run, report: run.links.report ? await this.report(run.id) : "" };
  }

  /** Start a run and return it at once. However often the request is sent, it starts one run. */
  async start(question: string, options: Omit<ResearchOptions, "onEvent" | "signal"> = {}): Promise<Run> {
    const { idempotencyKey = crypto.randomUUID(), ...request } = options;
    const { data } = await this.api.POST("/api/v1/runs", {
      params: { header: { "Idempotency-Key": idempotencyKey } },
      body: { question, ...request } as RunRequest,
    });
    return data!;
  }

  /** Return a run. */
  async run(id: string): Promise<Run> {
    const { data } = await this.api.GET("/api/v1/runs/{run_id}", { params: { path: { run_id: id } } });
    return data!;
  }

  /** Return the report of a run in Markdown. */
  async report(id: string): Promise<string> {
    const headers = { Accept: "text/markdown" };
    const response = await this.#send(new Request(`${this.#runAt(id)}/report`, { headers }));
    return response.text();
  }

  /** Yield the events of a run, each once, until it has ended; after a break it goes on where it stopped. */
  events(id: string, options: Following = {}): AsyncGenerator<RunEvent, void, void> {
    const open = (after: number, signal: AbortSignal) => {
      const headers = { ...this.#signIn(), Accept: "text/event-stream", "Last-Event-ID": String(after) };
      return this.#fetch(`${this.#runAt(id)}/events`, { headers, signal });
    };
    const ended = async () => ENDED.has((await this.run(id)).state);
    return follow({ open, ended }, { retries: this.#retries, ...options });
  }

  #runAt(id: string): string {
    return `${this.#url}/api/v1/runs/${encodeURIComponent(id)}`;
  }

  #signIn(): Record<string, string> {
    return this.#token ? { Authorization: `Bearer ${this.#token}` } : {};
  }

  /** Send a request, and again if the failure may pass and a second arrival does no harm. */
  async #send(request: Request): Promise<Response> {
    for (const [name, value] of Object.entries(this.#signIn())) request.headers.set(name, value);
    const harmless = IDEMPOTENT.has(request.method) || request.headers.has("Idempotency-Key");
    for (let failures = 1; ; failures += 1) {
      let failure: FathomError;
      try {
        const signal = AbortSignal.any([request.signal, AbortSignal.timeout(this.#timeout)]);
        const response = await this.#fetch(request.clone(), { signal });
        if (response.ok) return response;
        failure = await failureIn(response);
      } catch (error) {
        request.signal.throwIfAborted();
        failure = named(error);
      }
      const again = failure.passing && (harmless || failure.status === 429);
      if (!again || failures > this.#retries || (failure.retryAfter ?? 0) > LONGEST_WAIT) throw failure;
      await pause(failure.retryAfter ?? Math.min(2 ** (failures - 2), 15), request.signal);
    }
  }
}
