"""Short guides on what an agent may be asked to make for croze itself, given by `load_extra_document`."""

GUIDES = {
    "modules": """\
# Describing a module (.ac.mod.md)

A folder that has a file `.ac.mod.md` is a module: a part of the project that is used as a whole. Who reads a
file in it is told of it. Write it for someone who has to use or change the module and knows nothing of it; a
page is enough. Sections, as far as they apply:

1. `# Name`, and in one or two sentences what the module is for.
2. `## Layout`: its files and folders, a line each, with what each is there for.
3. `## Usage`: the shortest real example of using it: imports, the usual call, the result.
4. `## Parts`: the important classes and functions, and how they work together.
5. `## Dependencies`: the modules of this project that it needs, as relative links to their `.ac.mod.md`, and
   the libraries.
6. `## Checks`: the command that tests it.

Write what you have read in the code, with its names. Leave out what the code says better. When a change makes
a sentence wrong, mend it in the same change.
""",
    "agents": """\
# Making an agent

An agent is a Markdown file in `.croze/agents/` (this project) or in the folder `agents` of the user's
configuration. Its front matter says who it is, its body is its prompt:

    ---
    name: reviewer
    description: Reviews a diff and names real faults. Use it after larger changes.
    tools: read_file, search_files, find_files
    ---
    You review changes. For each fault give file, line, what happens and how to mend it.

`description` is what others choose it by: say when to use it. `tools` absent means all, empty none. `model`
names another model; `isolation: worktree` lets it write apart. A project's agent works once the user trusts
the file (`croze trust`).
""",
    "tools": """\
# Making an external tool

An external tool is a program in `.croze/tools/` (this project) or in the folder `tools` of the user's
configuration: an executable without suffix, or `.py .sh .js .rb .pl .php .go .rs`. It is run with
execute_command. What it must have:

- Help: with the only argument `help` it prints what it does, its arguments and an example, and ends with 0
  within 5 seconds, changing nothing.
- Arguments on the command line, results on standard output, errors on standard error with an exit code other
  than 0. No questions: nobody answers.
- One purpose, and a name that says it.

Try it after writing: the help first, then a real call, then a wrong one. `croze tools new NAME` makes a
working one to begin with. If it takes long, have it take a limit of time as an argument.
""",
    "rules": """\
# Writing a rule

A rule is a Markdown file in `.croze/rules/`. Its front matter says when it holds:

    ---
    description: How database migrations are written here
    globs: "migrations/**/*.sql"
    alwaysApply: false
    ---
    Text of the rule.

With `alwaysApply: true` it holds always; with `globs` once a file that matches is in play; with neither it is
offered by its description and read on demand. One subject a file, as instructions, with one good example.
""",
    "skills": """\
# Making a skill

A skill is a folder in `.croze/skills/` with a file `SKILL.md`: front matter with `name` (as the folder) and
`description` (what it does and when to use it), then instructions. Long material goes into files beside it,
which the text names and which are read when needed; programs into `scripts/`, run with execute_command. Keep
SKILL.md under 500 lines.
""",
}
"""Texts by name."""
