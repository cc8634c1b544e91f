#!/usr/bin/python3
"""The style checker finds what it is there to find, and nothing in a clean file."""
import importlib.machinery
import importlib.util
import os
import sys
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
        self.clean(tidy.check_lines, "a.c", "// TODO #12 later")
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


if __name__ == "__main__":
    unittest.main()
