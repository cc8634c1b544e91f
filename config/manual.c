// The page sluice.yaml(5), in mdoc: an introduction, and one entry a key from the table.
//
// No help text begins with '.' or ''' or has a backslash, which mdoc would take for itself; a test
// looks.

#include "config/config.h"
#include "config/key.h"
#include "config/value.h"

static const char introduction[] =
	".Dd January 1, 2026\n"
	".Dt SLUICE.YAML 5\n"
	".Os sluice " SLUICE_VERSION "\n"
	".Sh NAME\n"
	".Nm sluice.yaml\n"
	".Nd configuration of sluice\n"
	".Sh DESCRIPTION\n"
	"The configuration is one YAML file in UTF-8 of at most 1 MiB, by default\n"
	".Pa /etc/sluice/sluice.yaml .\n"
	"Anchors, aliases, tags and tabs as indentation are refused, and so are unknown keys.\n"
	".Pp\n"
	"Durations have a unit, ms, s, m, h or d; rates are people or requests in a second (/s), "
	"a\n"
	"minute (/min) or an hour (/h); sizes are bytes, or have a unit of 1024 (k), 1024 k (m) "
	"or\n"
	"1024 m (g).\n"
	"Words like off and none are plain scalars; only true and false are booleans.\n"
	"A relative file is one beside the configuration.\n"
	".Pp\n"
	".Nm sluice Cm check\n"
	"says all that is wrong, each error with file, line and column.\n"
	".Nm sluice Cm reload\n"
	"takes a changed file into use; keys that need a restart are marked so below.\n"
	".Sh KEYS\n"
	".Bl -tag -width Ds\n";

static const char conclusion[] =
	".El\n"
	".Sh FILES\n"
	".Bl -tag -width Ds\n"
	".It Pa /etc/sluice/sluice.yaml\n"
	"the configuration\n"
	".El\n"
	".Sh EXAMPLES\n"
	"The smallest useful file:\n"
	".Bd -literal -offset indent\n"
	"listen:\n"
	"  - address: 127.0.0.1:8080\n"
	"sites:\n"
	"  - name: shop\n"
	"    hosts: [tickets.example]\n"
	"    origin: {servers: [\"127.0.0.1:9000\"]}\n"
	"    rooms:\n"
	"      - {name: derby, path: /derby, capacity: 500, rate: 300/min}\n"
	".Ed\n"
	".Sh SEE ALSO\n"
	".Xr sluice 8\n";

static void print_default(const struct key *key, FILE *out)
{
	if (key_is_required(key))
		fprintf(out, "Required");
	else
		fprintf(out, "Default: %s", key->fallback + key_is_computed(key));
}

static void print_key(const struct key *key, FILE *out)
{
	char phrase[VALUE_PHRASE_BYTES];
	fprintf(out, ".It Ic %s%s\n%s\n.br\n", key->scope->path, key->name, key->help);
	fprintf(out, "Allowed: %s.\n", value_allowed(key, phrase));
	print_default(key, out);
	fprintf(out, ".\n%s", key->change == KEY_RESTART ? "A change needs a restart.\n" : "");
}

void config_print_manual(FILE *out)
{
	fputs(introduction, out);
	for (const struct key *key = key_table; key < key_table + key_count; key++)
		print_key(key, out);
	fputs(conclusion, out);
}
