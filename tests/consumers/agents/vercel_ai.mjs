// A desk on the AI SDK.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";

async function callBackend() {
  throw new Error("the desk's backend cannot be reached from here");
}

const text = z.string();
const route = z.object({ origin: text, destination: text, date: text });
const tools = Object.fromEntries(Object.entries({
  get_user_details: z.object({ user_id: text }),
  get_reservation_details: z.object({ reservation_id: text }),
  cancel_reservation: z.object({ reservation_id: text }),
  search_direct_flight: route,
  search_onestop_flight: route,
  update_reservation_flights: z.object({ reservation_id: text, cabin: text, payment_id: text,
    flights: z.array(z.object({ flight_number: text, date: text })) }),
  calculate: z.object({ expression: text }),
  think: z.object({ thought: text }),
  transfer_to_human_agents: z.object({ summary: text }),
}).map(([name, inputSchema]) => [name, tool({ description: name.replaceAll("_", " "), inputSchema, execute: callBackend })]));

const provider = createOpenAICompatible({ name: "desk", baseURL: process.env.OPENAI_BASE_URL,
  apiKey: process.env.OPENAI_API_KEY });
const result = await generateText({ model: provider("gpt-4.1"), tools, prompt: process.argv[2], stopWhen: stepCountIs(100),
  system: "You help the customers of an airline. Follow the policy of the desk." });
console.log(result.text);
