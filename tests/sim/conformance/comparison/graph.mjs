// The graph that LangGraph's own server runs: it behaves as pudu's lead agent does, with the same scripted model behind it.
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { Annotation, END, MessagesAnnotation, START, StateGraph, interrupt } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";

const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  todos: Annotation({ reducer: (_, todos) => todos, default: () => [] }),
  artifacts: Annotation({ reducer: (_, artifacts) => artifacts, default: () => [] }),
});

const parameters = { type: "object", properties: {} };
const tools = ["ls", "write_todos", "ask_clarification"].map((name) => ({
  type: "function",
  function: { name, description: name, parameters },
}));

// The clients of the scripted models: one answers at once, the other word by word.
const model = (baseURL) =>
  new ChatOpenAI({ model: "sim-1", apiKey: "sk-simulated", maxRetries: 0, configuration: { baseURL } }).bindTools(tools);
const models = { quick: model(process.env.QUICK_MODEL), slow: model(process.env.SLOW_MODEL) };

async function callModel(state, config) {
  const said = { ...config?.configurable, ...config?.context };
  return { messages: [await models[said.model_name ?? "quick"].invoke(state.messages, config)] };
}

function callTools(state) {
  const messages = [];
  const update = { messages };
  for (const call of state.messages.at(-1).tool_calls) {
    let content = "(empty)";
    if (call.name === "ask_clarification") content = interrupt({ question: call.args.question });
    if (call.name === "write_todos") {
      update.todos = call.args.todos;
      content = `The list has ${update.todos.length} entries.`;
    }
    messages.push(new ToolMessage({ content, name: call.name, tool_call_id: call.id, status: "success" }));
  }
  return update;
}

const calls = (state) => {
  const last = state.messages.at(-1);
  return AIMessage.isInstance(last) && last.tool_calls?.length ? "tools" : END;
};

export const graph = new StateGraph(State)
  .addNode("model", callModel)
  .addNode("tools", callTools)
  .addEdge(START, "model")
  .addConditionalEdges("model", calls, ["tools", END])
  .addEdge("tools", "model")
  .compile();
