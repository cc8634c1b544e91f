#!/usr/bin/python3
"""Makes the built-in templates: generate.py OUT.c queue.html queue.css queue.js en.json ja.json

Puts style, script and the texts of each language into the HTML, drops comments and indentation,
shortens the script's names, and writes the templates as C. `%{key}` is a text of the language;
`{{slot}}` is left for the visitor's values.
"""
import html
import json
import re
import string
import sys

PHRASES = ("wait_unknown", "wait_soon", "wait_minutes", "wait_hours", "wait_days")
STATES = ("prequeue", "before", "waiting", "next", "admitted", "expired", "closed", "full",
          "rejected")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def squeeze_css(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"\s+", " ", text)
    return re.sub(r" ?([{};,]) ?|(:) ", r"\1\2", text).replace(";}", "}").strip()


def squeeze_js(text):
    """Comments and white space go, names become short. The script ends every statement with `;` and
    has no regular expressions and no templates, so strings are all that must be kept whole."""
    tokens = re.findall(r"//[^\n]*|'[^']*'|[\w$]+|\s+|.", text)
    tokens = [token for token in tokens if not token.startswith("//") and not token.isspace()]
    out = ""
    for token in shorten(tokens):
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
    return re.sub(r"\n\s*", "\n", text).strip() + "\n"


def template(page, css, js, texts):
    values = {key: html.escape(text) for key, text in texts.items()}
    values |= {"css": squeeze_css(css), "js": squeeze_js(js)}
    return re.sub(r"%\{([a-z.]+)\}", lambda match: values[match.group(1)], squeeze_html(page))


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


def main(out, page, css, js, *languages):
    lines = ["// Made by controlplane/pages/generate.py.", '#include "controlplane/pages/pages.h"',
             "const struct pages_template pages_builtin[PAGE_LANGUAGES] = {"]
    for path in languages:
        texts = json.loads(read(path))
        lines += [f"[ACCEPT_{texts['lang'].upper()}] = {{",
                  f".html = {c_span(template(read(page), read(css), read(js), texts))},",
                  ".phrases = {.titles = {"]
        for state in STATES:
            title = texts[f"{'next' if state == 'admitted' else state}.title"]
            lines.append(f"[STATUS_{state}] = {c_span(html.escape(title))},")
        lines.append("},")
        for phrase in PHRASES:
            lines.append(f".{phrase} = {c_span(html.escape(texts[phrase.replace('_', '.')]))},")
        lines.append("}},")
    lines.append("};")
    with open(out, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
