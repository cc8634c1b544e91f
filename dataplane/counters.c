// Names and texts of counters.h, from its one list.

#include "dataplane/counters.h"

const char *const counters_names[COUNTER_COUNT] = {
#define X(name, text) #name,
	COUNTERS(X)
#undef X
};

const char *const counters_texts[COUNTER_COUNT] = {
#define X(name, text) text,
	COUNTERS(X)
#undef X
};
