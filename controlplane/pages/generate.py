#!/usr/bin/python3
"""Makes the built-in templates: generate.py OUT.c queue.html invitation.html queue.css queue.js
LANGUAGE.json...

Puts the texts of each language into the HTML, drops comments and indentation, shortens the
script's names, and writes the template and its partials as C. `%{key}` is a text of the language;
what stands in `{{ }}` is left for the compiler of templates.
"""
import html
import json
import re
import string
import sys

PHRASES = ("wait_unknown", "wait_soon", "wait_minutes", "wait_hours", "wait_days")
STATES = ("prequeue", "before", "waiting", "next", "admitted", "expired", "closed", "full",
          "rejected")
KINDS = ("error", "invitation")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def squeeze_css(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"\s+", " ", text)
    return re.sub(r" ?([{};,]) ?|(:) ", r"\1\2", text).replace(";}", "}").strip()


def squeeze_js(text):
    """Comments and white space go, names become short, and `const`, which has done its work, is
    `let`. The script ends every statement with `;` and
    has no regular expressions and no templates, so strings are all that must be kept whole."""
    tokens = re.findall(r"//[^\n]*|'[^']*'|[\w$]+|\s+|.", text)
    tokens = [token for token in tokens if not token.startswith("//") and not token.isspace()]
    out = ""
    for token in shorten(tokens):
        token = "let" if token == "const" else token
        glued = out[-1:] + token[0]
        out += " " if re.match(r"[\w$]{2}|\+\+|--", glued) else ""
        out += token
    return out


def shorten(tokens):
    """Each name that the script declares becomes a letter or two, wherever it stands but after the
    dot or before the colon of a property. Declared is what follows `const`, `let` or `function`, or
    a comma in such a list, and what is the one parameter of a function."""
    declarations = re.findall(r"\b(?:const|let) (\w+)|, (\w+) = |function (\w+) \( (\w*)|(\w+) = >",
                              " ".join(tokens))
    declared = {name for names in declarations for name in names if name}
    letters = string.ascii_letters
    short = dict(zip(sorted(declared, key=lambda name: (-tokens.count(name), name)),
                     [*letters, *(a + b for a in letters for b in string.digits)]))
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""]):
        is_property = before == "." or before in ("{", ",") and after == ":"
        yield token if is_property else short.get(token, token)


def squeeze_html(text):
    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.S)
    text = re.sub(r"(\{\{/\w+\}\})\n(?=\{\{)", r"\1", text)  # no text between sections
    return re.sub(r"\n\s*", "\n", text).strip() + "\n"


# Of the form for a code; the page that waits has no room for it.
CODE_CSS = """
[data-for~=invitation] { display: block; }
form { display: grid; gap: 8px; margin-top: 22px; }
label { font-size: .85em; color: var(--soft); }
input { padding: 13px 16px; border: 1px solid var(--line); background: var(--back); }
input, button { font: inherit; color: inherit; border-radius: 14px; }
button {
  padding: 13px; border: 0; font-weight: 650; color: var(--press); background: var(--deep);
  cursor: pointer;
}
button:focus-visible, input:focus-visible { outline: 3px solid var(--bright); }
"""
# What other templates may use too.
PARTIALS = {
    # The address is empty to a URL parser, which trims controls: this page, without its fragment.
    # Left out, a page with a fragment would only jump to it and never be loaded again.
    "sluice_refresh": "<noscript>{{>sluice_retry}}</noscript>",
    "sluice_retry": '<meta http-equiv="refresh" content="{{poll_after}};url=&#1;">',
    "sluice_script": '<script data-state="{{state}}" data-room="{{room}}"'
                     ' data-poll="{{poll_after}}" data-opens="{{opens}}" data-now="{{now}}"'
                     ' data-numbers="%{numbers}" data-moment="%{countdown.moment}"'
                     ' data-unknown="%{wait.unknown}"'
                     ' data-soon="%{wait.soon}" data-minutes="%{wait.minutes}"'
                     ' data-hours="%{wait.hours}" data-days="%{wait.days}">%{js}</script>',
    "sluice_style": "<style>%{css}</style>",
    "sluice_live": '<p class="warn" id="offline" role="alert" hidden>%{offline}</p>\n'
                   '<p class="warn" id="cookies" role="alert" hidden>%{cookies}</p>\n'
                   '<p id="live" role="status" aria-live="polite"></p>',
    # A link may bring the code along (?code=): it is filled in, and spent by whoever sends it.
    "sluice_code": '<style>%{code.css}</style>\n<form method="post">'
                   '<label for="code">%{code.label}</label>\n'
                   '<input id="code" name="code" maxlength="64" required autofocus'
                   ' autocomplete="off" autocapitalize="characters" spellcheck="false">\n'
                   '<input type="hidden" name="once" value="{{once}}">'
                   '<button>%{code.send}</button></form>\n'
                   '{{#code_invalid}}<p class="warn" role="alert">%{code.invalid}</p>'
                   '{{/code_invalid}}'
                   '{{#code_unknown}}<p class="warn" role="alert">%{code.unknown}</p>'
                   '{{/code_unknown}}'
                   '{{#code_spent}}<p class="warn" role="alert">%{code.spent}</p>{{/code_spent}}'
                   '{{#code_guarded}}<p class="warn" role="alert">%{code.guarded}</p>'
                   '{{/code_guarded}}'
                   "<script>document.getElementById('code').value="
                   "new URLSearchParams(location.search).get('code')||''</script>",
}


def fill(text, values):
    return re.sub(r"%\{([a-z.]+)\}", lambda match: values[match.group(1)], text)


def c_string(text):
    out = []
    for byte in text.encode():
        if byte == 10:
            out.append("\\n")
        elif byte in b'"\\?':
            out.append("\\" + chr(byte))
        else:
            out.append(chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def c_span(text):
    return f"{{{c_string(text)}, {len(text.encode())}}}"


def c_text(name, text):
    return f'{{"{name}", "{name}", {c_span(text)}}},'


def c_language(page, invitation, css, js, texts):
    values = {key: html.escape(text) for key, text in texts.items()}
    values |= {"css": squeeze_css(css), "js": squeeze_js(js)}
    values["code.css"] = squeeze_css(CODE_CSS)
    yield f".language = {c_span(texts['lang'])},"
    yield f'.page = {c_text("page", fill(squeeze_html(page), values))}'
    yield f'.invitation = {c_text("invitation", fill(squeeze_html(invitation), values))}'
    yield f".partials = {{{len(PARTIALS)}, (const struct template_text[]){{"
    for name, text in PARTIALS.items():
        yield c_text(name, fill(text, values))
    yield "}},"
    yield ".phrases = {.titles = {"
    for state in STATES:
        title = values[f"{'next' if state == 'admitted' else state}.title"]
        yield f"[STATUS_{state}] = {c_span(title)},"
    for kind in KINDS:
        yield f"[PAGE_{kind}] = {c_span(values[f'{kind}.title'])},"
    yield "},"
    group, point = texts["numbers"]
    yield f".group = {c_span(group)}, .point = {c_span(point)},"
    for phrase in PHRASES:
        yield f".{phrase} = {c_span(values[phrase.replace('_', '.')])},"
    yield "},"


def main(out, page, invitation, css, js, *languages):
    lines = ["// Made by controlplane/pages/generate.py.", '#include "controlplane/pages/pages.h"',
             "const struct pages_builtin pages_builtin[PAGES_BUILTIN] = {"]
    all_texts = [json.loads(read(path)) for path in languages]
    for path, texts in zip(languages, all_texts):
        missing = [key for key in all_texts[0] if not texts.get(key)]
        unknown = [key for key in texts if key not in all_texts[0]]
        if missing or unknown:
            sys.exit(f"{path}: missing {missing}, unknown {unknown}")
        lines += ["{", *c_language(read(page), read(invitation), read(css), read(js), texts), "},"]
    lines.append("};")
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
