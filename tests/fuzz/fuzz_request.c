// Any bytes as a request's head: read, verified and settled; what is no head is salvaged for its
// cookies, as for a 431.

#include "dataplane/gate/request.h"
#include "dataplane/http/head.h"
#include "tests/unit/gate/town.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#define NOW 1764604288u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct token_secrets secrets;
static struct mac_engine *engine;

static void start(void)
{
	static const uint8_t secret[32] = "first"; // what the corpus was signed with
	token_secrets_add(&secrets, 1, secret, sizeof(secret));
	secrets.current = 1;
	if (mac_create(&engine) < 0)
		abort();
}

// What a redirect leads to would not be redirected again, and stays on this host.
static void check_redirect(struct span redirect)
{
	char *again = malloc(redirect.len);
	assert(span_is_equal(carry_redirect(redirect, again), redirect));
	assert(redirect.at[0] == '/');
	assert(redirect.len == 1 || (redirect.at[1] != '/' && redirect.at[1] != '\\'));
	free(again);
}

static void check(const struct gate_request *request, const struct http_head *head)
{
	const struct gate_room *room = request->room;
	assert(request->route != GATE_ROUTE_GUARDED || room);
	assert(!room || request->site == &town.sites[room->site]);
	assert(!request->draws || (request->method == HTTP_GET && !request->is_prefetch));
	assert(!request->takes_query || request->redirect.len > 0);
	assert(request->redirect.len <= head->target.len);
	if (request->redirect.at)
		check_redirect(request->redirect);
	assert(!request->ticket || request->ticket->token.line_id == room->line_id);
	assert(!request->pass || request->pass->token.expires > NOW);
}

static void read_request(const struct http_head *head)
{
	static struct gate_request request;
	static const struct token_print_key key = {{{1, 2}, {3, 4}, {5, 6}, {7, 8}}};
	struct gate_remembered remembered = {0};
	struct mac_job jobs[CARRY_TOKENS_MAX];
	char *scratch = malloc(GATE_REQUEST_SCRATCH_BYTES(head->target.len));
	gate_request_read(&town, head, scratch, &request);
	uint32_t count = gate_request_tokens(&request, &secrets, &key, &remembered, NOW, jobs);
	mac_burst(engine, jobs, count);
	gate_request_settle(&request, &remembered, NOW);
	check(&request, head);
	free(scratch);
}

static void find_stale(const struct http_head *head)
{
	struct carry_stale stale;
	carry_stale_find(&town, head, NULL, 0, NOW, &stale);
	for (uint32_t i = 0; i < stale.count; i++)
		assert(stale.names[i].len > strlen("sluice-t-"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct http_limits limits = {8192, 32768, HTTP_FIELDS_MAX};
	static struct http_head head;
	struct span in = {(const char *)data, len};
	if (!engine)
		start();
	if (http_request_parse(in, &limits, &head) == HTTP_OK)
		read_request(&head);
	else
		carry_salvage(in, &head);
	find_stale(&head);
	return 0;
}
