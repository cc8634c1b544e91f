// Names of the counters of tcp.h, for whoever shows them.

#include "dataplane/net/tcp/tcp.h"

#include <assert.h>

static const struct {
	const char *name, *text;
} counters[] = {
#define X(name, text) [TCP_##name] = {#name, text},
	TCP_COUNTERS(X)
#undef X
};

const char *tcp_counter_name(enum tcp_counter counter)
{
	assert(counter < TCP_COUNTERS_COUNT);
	return counters[counter].name;
}

const char *tcp_counter_text(enum tcp_counter counter)
{
	assert(counter < TCP_COUNTERS_COUNT);
	return counters[counter].text;
}
