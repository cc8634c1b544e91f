#!/usr/bin/python3
"""The style checker finds what it is there to find, and nothing in a clean file."""
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import unittest

TIDY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tidy")
loader = importlib.machinery.SourceFileLoader("tidy", TIDY)
sys.dont_write_bytecode = True
tidy = importlib.util.module_from_spec(importlib.util.spec_from_loader("tidy", loader))
loader.exec_module(tidy)


def messages(check, path, text):
    return [what for _, what in check(path, text.split("\n"))]


class Rules(unittest.TestCase):
    def found(self, check, path, text):
        self.assertTrue(messages(check, path, text), f"{check.__name__} missed: {text!r}")

    def clean(self, check, path, text):
        self.assertEqual(messages(check, path, text), [])

    def test_long_line(self):
        self.clean(tidy.check_lines, "a.c", "x" * 100)
        self.found(tidy.check_lines, "a.c", "x" * 101)

    def test_tab_counts_eight(self):
        self.found(tidy.check_lines, "a.c", "\t" + "x" * 93)

    def test_trailing_space(self):
        self.found(tidy.check_lines, "a.c", "int x; ")

    def test_todo(self):
        self.clean(tidy.check_lines, "a.c", "// TO" "DO #12 later")
        self.found(tidy.check_lines, "a.c", "// TO" "DO later")

    def test_long_function(self):
        self.clean(tidy.check_functions, "a.c", "{\n" + "x;\n" * 70 + "}")
        self.found(tidy.check_functions, "a.c", "{\n" + "x;\n" * 71 + "}")

    def test_long_file(self):
        self.clean(tidy.check_size, "a.c", "\n".join(["x"] * 600))
        self.found(tidy.check_size, "a.c", "\n".join(["x"] * 601))

    def test_block_comment(self):
        self.found(tidy.check_comments, "a.c", "// what\n/" "* no *" "/")
        self.clean(tidy.check_comments, "a.c", '// what\nconst char *s = "/' '*";')

    def test_design_note(self):
        self.found(tidy.check_comments, "a.c", "#include <stdio.h>")

    def test_banned(self):
        self.found(tidy.check_calls, "config/a.c", "\tstrcpy(a, b);")
        self.found(tidy.check_calls, "dataplane/a.c", "\tp = malloc(1);")
        self.clean(tidy.check_calls, "config/a.c", "\tp = malloc(1);")
        self.clean(tidy.check_calls, "dataplane/a.c", "\tx = now_time(1);")
        self.clean(tidy.check_calls, "dataplane/a.c", "\tp = malloc(1); // COLD: at start")

    def test_arrows(self):
        self.found(tidy.check_arrows, "dataplane/worker.c", '#include "config/config.h"')
        self.found(tidy.check_arrows, "config/a.c", '#include "dataplane/snapshot.h"')
        self.found(tidy.check_arrows, "controlplane/main.c", '#include "dataplane/conn.h"')
        self.clean(tidy.check_arrows, "controlplane/main.c", '#include "dataplane/rings.h"')
        self.found(tidy.check_arrows, "dataplane/gate/a.c", "#include <rte_ring.h>")

    def test_prefix(self):
        self.found(tidy.check_prefix, "dataplane/x/conn.h", "#pragma once\nint other(void);")
        self.clean(tidy.check_prefix, "dataplane/x/conn.h", "#pragma once\nint conn_open(void);")
        self.found(tidy.check_prefix, "dataplane/x/conn.h", "int conn_open(void);")

    def test_header_comments(self):
        bare, told = "\nint conn_open(void);", "\n// What.\nint conn_open(void);"
        self.found(tidy.check_header_comments, "drivers/conn.h", "// File.\n" + bare)
        self.clean(tidy.check_header_comments, "drivers/conn.h", told + bare)
        self.found(tidy.check_header_comments, "drivers/conn.h", told + "\n" + bare)
        self.clean(tidy.check_header_comments, "drivers/conn.c", bare)

    def test_header_comments_of_inline_functions(self):
        inline = "\nstatic inline int conn_%s(void)\n{\n\treturn 1;\n}\n"
        told = "\n// What." + inline % "a"
        self.found(tidy.check_header_comments, "drivers/conn.h", "\n" + inline % "a")
        self.clean(tidy.check_header_comments, "drivers/conn.h", told + inline % "b")
        self.found(tidy.check_header_comments, "drivers/conn.h", told + "\nint conn_x;\n" +
                   inline % "b")

    def test_conditions(self):
        self.found(tidy.check_conditions, "a.c", "int f(void)\n{\n#ifdef A\n#endif\n}")
        self.clean(tidy.check_conditions, "a.c", "#if A\nint f(void)\n{\n}\n#endif")

    def test_typedefs(self):
        self.found(tidy.check_typedefs, "a.h", "typedef struct {")
        self.found(tidy.check_typedefs, "a.h", "typedef struct conn conn_t;")
        self.clean(tidy.check_typedefs, "a.h", "typedef int conn_call(void);")
        self.clean(tidy.check_typedefs, "a.h", "// typedef struct conn conn_t;")


class RulesTogether(unittest.TestCase):
    def test_counters(self):
        header = ('#define A_COUNTERS(X) \\\n\tX(lost, "a, b") \\\n\tX(late, "c")\n'
                  '#define B(X) X(no, "d")')
        for named in ("COUNTER_lost", "SOCKETS_lost", '"lost"', "(lost=1", "a, lost=1", "->lost",
                      "count open 1 lost 2"):
            self.assertEqual(list(tidy.check_counters("a.h", header, named + ' "late"')), [])
        for other in ("", "lost", "COUNTER_lost_too", "COUNTER_late"):
            self.assertIn("a.h:1: no test names the counter lost",
                          list(tidy.check_counters("a.h", header, other)))

    def test_keys(self):
        keys = 'KEY(config, drain, drain_ms, DURATION)\nMAPS(config, sites, sites)\n'
        self.assertEqual(list(tidy.check_keys("keys.def", keys, 'drain: 1\\nsites: []')), [])
        self.assertEqual(list(tidy.check_keys("keys.def", keys, "drain_ms sites")),
                         ["keys.def:1: no test names the key drain"])

    def test_stages(self):
        worker = ("\nstatic void turn(struct worker *w)\n{\n\tif (take(w))\n\t\tshow(w);\n}\n"
                  "static void no(void)\n{\n\tother();\n}\n")
        self.assertEqual(list(tidy.check_stages("README.md", worker, "`take`, `show`")), [])
        self.assertEqual(list(tidy.check_stages("README.md", worker, "`take`, `shown`")),
                         ["README.md:1: the stage show of worker.c is not named"])

    def test_named_tests(self):
        tests = {"tests/unit/net/test_a.c": "one_way the_other", "tests/e2e/test_b.py": ""}
        page = "`net/test_a.c` (one_way, the_other; others), `test_b.py` (in words)"
        self.assertEqual(list(tidy.check_named_tests("t.md", page, tests)), [])
        self.assertEqual(list(tidy.check_named_tests("t.md", "\n`net/test_b.py`", tests)),
                         ["t.md:2: there is no net/test_b.py"])
        self.assertEqual(list(tidy.check_named_tests("t.md", "`net/test_a.c` (one)\n", tests)), [])
        self.assertEqual(list(tidy.check_named_tests("t.md", "`net/test_a.c` (none)", tests)),
                         ["t.md:1: net/test_a.c has no none"])

    def test_scripts(self):
        page = "| 793: some_words | one_two, cookie_\\* |\n"
        scripts = ["one_two", "cookie_bad", "cookie_late"]
        self.assertEqual(list(tidy.check_scripts("s.md", page, scripts)), [])
        self.assertEqual(list(tidy.check_scripts("s.md", page, scripts + ["three_four"])),
                         ["s.md:1: does not name three_four.script"])
        self.assertEqual(list(tidy.check_scripts("s.md", page, scripts[1:])),
                         ["s.md:1: names one_two, which is no script"])

    def test_examples(self):
        with tempfile.TemporaryDirectory() as build:
            self.assertEqual(list(tidy.check_examples(["a.yaml"], build)), [])
            open(f"{build}/build.ninja", "w").close()
            self.assertEqual(len(list(tidy.check_examples(["a.yaml"], build))), 1)
            os.symlink("/bin/true", f"{build}/sluice")
            self.assertEqual(list(tidy.check_examples(["a.yaml"], build)), [])
            os.unlink(f"{build}/sluice")
            os.symlink("/bin/false", f"{build}/sluice")
            self.assertEqual(len(list(tidy.check_examples(["a.yaml"], build))), 1)


if __name__ == "__main__":
    unittest.main()
