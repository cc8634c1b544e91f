#!/usr/bin/python3
"""Makes a C file of the ledger's script: embed.py OUTPUT PART..., the parts in order.

All but the first are one function, `ledger`; the first guards it."""
import sys

output, parts = sys.argv[1], sys.argv[2:]
texts = [open(part, "rb").read() for part in parts]
text = (texts[0] + b"local function ledger() " + b"".join(texts[1:]) +
        b"end\nreturn guarded(ledger)\n")
rows = [", ".join(str(byte) for byte in text[i:i + 24]) for i in range(0, len(text), 24)]
with open(output, "w") as out:
    out.write('#include "controlplane/cluster/ledger_wire.h"\n\n')
    out.write("const char ledger_wire_script[] = {\n\t" + ",\n\t".join(rows) + "};\n")
    out.write("const size_t ledger_wire_script_bytes = sizeof(ledger_wire_script);\n")
