/** Batonpass in VS Code: hovers and lenses come from the language server; annotations, marks and the status bar from its `batonpass/authors`. */

import * as os from "node:os";
import * as vscode from "vscode";
import { LanguageClient, State, TransportKind } from "vscode-languageclient/node";

import { type Authors, type Kind, MARKS, type Where, blockAt, mark, notes, plain } from "./blocks";
import { chosenProgram, findProgram } from "./program";

const AFTER_TYPING = 300; // milliseconds

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const view = new View();
  context.subscriptions.push(view);
  context.subscriptions.push(
    vscode.commands.registerCommand("batonpass.whoWroteThisLine", () => view.askAboutLine()),
    vscode.commands.registerCommand("batonpass.toggleAnnotations", () => view.toggle()),
    vscode.commands.registerCommand("batonpass.restart", () => view.start()),
    vscode.workspace.onDidGrantWorkspaceTrust(() => view.start()),
    vscode.window.onDidChangeActiveTextEditor(() => view.refresh()),
    vscode.window.onDidChangeTextEditorSelection((event) => view.show(event.textEditor)),
    vscode.workspace.onDidChangeTextDocument(() => view.refresh(AFTER_TYPING)),
    vscode.workspace.onDidSaveTextDocument(() => view.refresh()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("batonpass.path")) {
        void view.start();
      } else if (event.affectsConfiguration("batonpass")) {
        view.refresh();
      }
    }),
  );
  await view.start();
}

class View implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private readonly bar = vscode.window.createStatusBarItem("batonpass", vscode.StatusBarAlignment.Right, 90);
  private readonly behind = vscode.window.createTextEditorDecorationType({
    after: { margin: "0 0 0 3em", color: new vscode.ThemeColor("editorCodeLens.foreground") },
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedOpen,
  });
  private readonly marks = new Map<Kind, vscode.TextEditorDecorationType>();
  private known: { uri: string; authors: Authors } | undefined;
  private timer: NodeJS.Timeout | undefined;
  private asked = 0;

  constructor() {
    this.bar.name = "Batonpass";
    this.bar.command = "batonpass.whoWroteThisLine";
    for (const [kind, colour] of MARKS) {
      const picture = vscode.Uri.parse(mark(colour), true);
      this.marks.set(
        kind,
        vscode.window.createTextEditorDecorationType({
          gutterIconPath: picture,
          gutterIconSize: "contain",
          overviewRulerColor: colour,
          overviewRulerLane: vscode.OverviewRulerLane.Left,
        }),
      );
    }
  }

  /** Start the language server, or start it anew. */
  async start(): Promise<void> {
    await this.stop();
    const settings = vscode.workspace.getConfiguration("batonpass");
    const name = chosenProgram(settings.inspect("path"));
    const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
    const program = findProgram(name, process.env["PATH"], folders);
    if (program === undefined) {
      this.bar.text = "$(circle-slash) batonpass";
      this.bar.tooltip = `${name} is not on the PATH. Install Batonpass, or set batonpass.path to its absolute path.`;
      this.bar.show();
      return;
    }
    // Not in the workspace: a program there must not be found by its name. The server looks for the ledger beside each file.
    const run = { command: program, args: ["lsp"], transport: TransportKind.stdio, options: { cwd: os.homedir() } };
    this.client = new LanguageClient("batonpass", "Batonpass", run, {
      documentSelector: [{ scheme: "file" }],
      markdown: { isTrusted: false, supportHtml: false },
    });
    this.client.onDidChangeState((change) => {
      if (change.newState === State.Running) {
        this.refresh();
      }
    });
    try {
      await this.client.start();
    } catch (error) {
      this.bar.text = "$(error) batonpass";
      this.bar.tooltip = `${program} lsp could not be started: ${String(error)}`;
      this.bar.show();
    }
  }

  /** Ask anew who wrote the lines of the file in front, now or after a while. */
  refresh(after = 0): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(), after);
  }

  private async ask(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const uri = editor?.document.uri;
    if (this.client?.state !== State.Running || editor === undefined || uri?.scheme !== "file") {
      this.known = undefined;
      this.bar.hide();
      return;
    }
    const turn = ++this.asked;
    const params = { textDocument: { uri: this.client.code2ProtocolConverter.asUri(uri) } };
    const authors = await this.client.sendRequest<Authors | null>("batonpass/authors", params).catch(() => null);
    // An answer about a text that is not shown any more would mark the wrong lines.
    const isOld = turn !== this.asked || (authors?.version ?? editor.document.version) !== editor.document.version;
    if (isOld) {
      return;
    }
    this.known = authors === null ? undefined : { uri: uri.toString(), authors };
    this.show(editor);
  }

  /** Show what is known of an editor's file. */
  show(editor: vscode.TextEditor): void {
    if (editor !== vscode.window.activeTextEditor) {
      return;
    }
    const settings = vscode.workspace.getConfiguration("batonpass");
    const isKnown = this.known?.uri === editor.document.uri.toString();
    const blocks = isKnown ? (this.known?.authors.blocks ?? []) : [];
    const cursor = editor.selection.active.line;
    const shown = notes(blocks, settings.get<Where>("annotations", "line"), cursor);
    editor.setDecorations(
      this.behind,
      shown.map((note) => ({
        range: endOf(editor.document, note.line),
        renderOptions: { after: { contentText: note.text } },
      })),
    );
    for (const [kind, type] of this.marks) {
      const marked = settings.get<boolean>("gutter", true) ? blocks.filter((block) => block.kind === kind) : [];
      editor.setDecorations(
        type,
        marked.map((block) => new vscode.Range(block.first, 0, block.last, 0)),
      );
    }
    const block = blockAt(blocks, cursor);
    if (block === undefined) {
      this.bar.hide();
      return;
    }
    this.bar.text = `$(person) ${plain(block.label)}`;
    this.bar.tooltip = block.title;
    this.bar.show();
  }

  /** Let the server show the card of the cursor's line. */
  async askAboutLine(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (this.client?.state !== State.Running || editor === undefined) {
      void vscode.window.showInformationMessage("Batonpass: open a file first, and install batonpass.");
      return;
    }
    const uri = this.client.code2ProtocolConverter.asUri(editor.document.uri);
    const command = { command: "batonpass.whoWroteThis", arguments: [uri, editor.selection.active.line] };
    await this.client.sendRequest("workspace/executeCommand", command);
  }

  /** Show annotations at the cursor, at each block, or nowhere, one after the other. */
  async toggle(): Promise<void> {
    const settings = vscode.workspace.getConfiguration("batonpass");
    const next: Record<Where, Where> = { line: "file", file: "off", off: "line" };
    const where = next[settings.get<Where>("annotations", "line")];
    await settings.update("annotations", where, vscode.ConfigurationTarget.Global);
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    await client?.dispose().catch(() => undefined);
  }

  dispose(): void {
    clearTimeout(this.timer);
    void this.stop();
    this.bar.dispose();
    this.behind.dispose();
    for (const type of this.marks.values()) {
      type.dispose();
    }
  }
}

function endOf(document: vscode.TextDocument, line: number): vscode.Range {
  const end = document.lineAt(Math.min(line, document.lineCount - 1)).range.end;
  return new vscode.Range(end, end);
}
