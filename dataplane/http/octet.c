// The table of octet classes, one line for each octet that is not like its neighbours. Controls,
// DEL among them, are in no class.

#include "dataplane/http/octet.h"

#define TEXT OCTET_TEXT
#define TARGET (OCTET_TEXT | OCTET_TARGET)
#define HOST (TARGET | OCTET_REG_NAME)
#define TOKEN (TARGET | OCTET_TOKEN)
#define BOTH (TARGET | OCTET_TOKEN | OCTET_REG_NAME)
#define HEX (BOTH | OCTET_HEX)

const uint8_t octet_classes[256] = {
	['\t'] = TEXT,
	[' '] = TEXT,
	['!'] = BOTH,
	['"'] = TARGET,
	['#'] = TEXT | OCTET_TOKEN,
	['$'] = BOTH,
	['%'] = TOKEN, // in host names only as an escape (host.c)
	['&'] = BOTH,
	['\''] = BOTH,
	['('] = HOST,
	[')'] = HOST,
	['*'] = BOTH,
	['+'] = BOTH,
	[','] = HOST,
	['-'] = BOTH,
	['.'] = BOTH,
	['/'] = TARGET,
	['0' ... '9'] = HEX,
	[':'] = TARGET,
	[';'] = HOST,
	['<'] = TARGET,
	['='] = HOST,
	['>'] = TARGET,
	['?'] = TARGET,
	['@'] = TARGET,
	['A' ... 'F'] = HEX,
	['G' ... 'Z'] = BOTH,
	['['] = TARGET,
	['\\'] = TARGET,
	[']'] = TARGET,
	['^'] = TOKEN,
	['_'] = BOTH,
	['`'] = TOKEN,
	['a' ... 'f'] = HEX,
	['g' ... 'z'] = BOTH,
	['{'] = TARGET,
	['|'] = TOKEN,
	['}'] = TARGET,
	['~'] = BOTH,
	[0x80 ... 0xff] = TEXT, // obs-text
};
