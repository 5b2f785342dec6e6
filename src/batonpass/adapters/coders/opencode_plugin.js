// Passes the events of OpenCode to Batonpass; written by `batonpass init opencode`, and removed by its --undo.
import { spawn } from "node:child_process"
import { connect } from "node:net"

const COMMAND = "@COMMAND@"
const ENFORCE = "@ENFORCE@"
const PATIENCE = 9500 // milliseconds; the command itself gives up first

const parents = new Map() // a session -> the one that started it
const kinds = new Map() // a session -> the type of sub-agent that it is
const said = new Map() // a session -> its last words
const models = new Map() // a session -> the model that answers in it

// The words of a command as a shell would split them; `batonpass init` writes only plain words and single quotes.
const words = (text) => (text.match(/'(?:[^']|'"'"')*'|[^\s']+/g) ?? []).map((one) => one.replaceAll(`'"'"'`, "\0").replaceAll("'", "").replaceAll("\0", "'"))

// Starts the hook command with an event, and returns its answer.
const run = (event, ...more) =>
  new Promise((resolve, reject) => {
    const [program, ...rest] = words(COMMAND)
    const child = spawn(program, [...rest, ...more], { cwd: event.cwd, stdio: ["pipe", "pipe", "ignore"] })
    const late = setTimeout(() => { child.kill(); reject(new Error("Batonpass did not answer in time")) }, PATIENCE)
    let out = ""
    child.stdout.on("data", (part) => (out += part))
    child.on("error", (error) => { clearTimeout(late); reject(error) })
    child.on("close", (code) => { clearTimeout(late); code ? reject(new Error(`Batonpass failed (${code})`)) : resolve(out) })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })

// Sends an event to the recorder, which listens on a socket; the hook command says where, and starts it if there is none.
let line = null
const send = (event) =>
  new Promise((resolve, reject) => {
    const body = Buffer.from(JSON.stringify(event))
    const socket = connect(line.path)
    const late = setTimeout(() => { socket.destroy(); reject(new Error("Batonpass did not answer in time")) }, PATIENCE)
    let heard = ""
    socket.on("connect", () => socket.write(Buffer.concat([Buffer.from(`${line.stamp} ${body.length} opencode \n`), body])))
    socket.on("data", (part) => (heard += part))
    socket.on("error", (error) => { clearTimeout(late); reject(error) })
    socket.on("close", () => {
      clearTimeout(late)
      const [head, status = "", ...answer] = heard.split("\n")
      if (head !== "taken") return resolve(null) // another version, or it left: the command starts a new one
      status.startsWith("done ") ? resolve(answer.join("\n")) : reject(new Error(status.replace(/^failed /, "")))
    })
  })

const tell = async (event) => {
  if (line) {
    try {
      const answer = await send(event)
      if (answer !== null) return answer
    } catch (error) {
      if (!["ENOENT", "ECONNREFUSED"].includes(error.code)) throw error
    }
    line = null
  }
  const answer = await run(event)
  try {
    line = JSON.parse(await run(event, "--where"))
  } catch {
    line = null
  }
  return answer
}

const rootOf = (session) => {
  let root = session
  for (let up = parents.get(root); up; up = parents.get(root)) root = up
  return root
}

export const Batonpass = async ({ directory }) => {
  const about = (session, name, more) => {
    const root = rootOf(session)
    const child = root === session ? {} : { agent_id: session, agent_type: kinds.get(session), parent_id: parents.get(session) }
    const model = models.get(session)
    return { hook_event_name: name, session_id: root, cwd: directory, ...(model ? { model } : {}), ...child, ...more }
  }
  const pass = async (event) => {
    try {
      return await tell(event)
    } catch (error) {
      if (ENFORCE && event.hook_event_name === "PreToolUse") throw new Error(`Batonpass could not record this call: ${error.message}`)
      return ""
    }
  }
  return {
    event: async ({ event }) => {
      const { info, part, sessionID } = event.properties ?? {}
      if (event.type === "session.created" && info?.parentID) {
        parents.set(info.id, info.parentID)
        if (info.agent) kinds.set(info.id, info.agent)
        await pass(about(info.id, "SubagentStart"))
      } else if (event.type === "message.part.updated" && part?.type === "text" && part.time?.end) {
        said.set(part.sessionID, part.text)
      } else if (event.type === "session.idle" && sessionID) {
        const last = said.get(sessionID)
        await pass(about(sessionID, parents.has(sessionID) ? "SubagentStop" : "Stop", last ? { last_assistant_message: last } : {}))
      } else if (event.type === "session.deleted" && info?.id) {
        await pass(about(info.id, parents.has(info.id) ? "SubagentStop" : "SessionEnd"))
      }
    },
    "chat.message": async (input, output) => {
      const { modelID } = output.message?.model ?? input.model ?? {}
      if (modelID) models.set(input.sessionID, modelID)
      const prompt = (output.parts ?? []).filter((one) => one.type === "text" && !one.synthetic).map((one) => one.text).join("\n")
      await pass(about(input.sessionID, "UserPromptSubmit", { prompt, prompt_id: output.message?.id }))
    },
    "tool.execute.before": async (input, output) => {
      const answer = await pass(about(input.sessionID, "PreToolUse", { tool_name: input.tool, tool_use_id: input.callID, tool_input: output.args }))
      const decided = answer ? JSON.parse(answer).hookSpecificOutput : null
      if (decided?.permissionDecision === "deny") throw new Error(decided.permissionDecisionReason)
    },
    "tool.execute.after": async (input, output) => {
      const { title, output: text, metadata } = output
      const told = { tool_name: input.tool, tool_use_id: input.callID, tool_input: input.args, tool_response: { title, output: text, metadata } }
      await pass(about(input.sessionID, "PostToolUse", told))
    },
  }
}
