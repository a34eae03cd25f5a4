// Let the tools of an agent on the AI SDK (npm `ai`) act in an episode of Traceroom, without a change of its code:
//
//     node --import ./traceroom_tools.mjs agent.mjs
//
// `ai` is loaded as it is; of its functions, those that take tools (`generateText`, `streamText`, `ToolLoopAgent`) are given
// tools whose `execute` goes to the episode, if their name is one of the episode's. Other tools stay as they are. One file,
// nothing but Node. TRACEROOM_EPISODE_URL names the episode; without it nothing is replaced.
import * as nodeModule from "node:module";
import { isMainThread } from "node:worker_threads";

const SELF = import.meta.url.split("?")[0];
const MARK = "traceroom-ai=";
const TAKING_TOOLS = ["generateText", "streamText"];
const AGENTS = ["ToolLoopAgent", "Experimental_Agent"];
const url = process.env.TRACEROOM_EPISODE_URL;

async function request(path, body) {
  const reply = await fetch(`${url}/${path}`, body === undefined ? {} : {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  if (!reply.ok) throw new Error(`the episode does not answer (status ${reply.status})`);
  return reply.json();
}

const names = url && isMainThread ? new Set((await request("tools")).tools.map((tool) => tool.name)) : new Set();

/** Return tools whose `execute` goes to the episode where it has a tool of that name. */
export function replaced(tools) {
  if (!tools) return tools;
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, names.has(name) && tool.execute
    ? Object.assign(Object.create(Object.getPrototypeOf(tool)), tool, {
      execute: async (input, options) =>
        (await request("tools/call", { tool: name, arguments: input, call_id: options?.toolCallId ?? null })).content })
    : tool]));
}

/** Return a function whose first argument has `tools`, with these replaced. */
export function taking(original) {
  return original && function (options, ...more) {
    return original.call(this, options?.tools ? { ...options, tools: replaced(options.tools) } : options, ...more);
  };
}

/** Return a class of agents whose settings have `tools`, with these replaced. */
export function agent(Original) {
  return Original && class extends Original {
    constructor(settings, ...more) {
      super(settings?.tools ? { ...settings, tools: replaced(settings.tools) } : settings, ...more);
    }
  };
}

function then(value, next) {
  return value && typeof value.then === "function" ? value.then(next) : next(value);
}

/** Resolve `ai` to a module around it. */
export function resolve(specifier, context, next) {
  const found = next(specifier, context);
  if (specifier !== "ai" || context.parentURL?.includes(MARK)) return found;
  return then(found, (real) => ({ ...real, url: `${real.url}${real.url.includes("?") ? "&" : "?"}${MARK}1`, format: "module",
    shortCircuit: true }));
}

/** Load the module around `ai`. */
export function load(address, context, next) {
  if (!address.includes(MARK)) return next(address, context);
  const real = JSON.stringify(address.replace(new RegExp(`[?&]${MARK}1`), ""));
  const source = [
    `import * as real from ${real};`, `import { agent, taking } from ${JSON.stringify(SELF)};`, `export * from ${real};`,
    ...TAKING_TOOLS.map((name) => `export const ${name} = taking(real.${name});`),
    ...AGENTS.map((name) => `export const ${name} = agent(real.${name});`)].join("\n");
  return { format: "module", source, shortCircuit: true };
}

if (url && isMainThread) {
  if (nodeModule.registerHooks) nodeModule.registerHooks({ resolve, load });
  else nodeModule.register(SELF);
}
