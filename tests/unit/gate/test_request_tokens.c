// Requests: which of the tokens they carry count, and what a connection remembers.

#include "tests/unit/gate/append.h"
#include "tests/unit/gate/reading.h"

#include <stdlib.h>

#define NOW 1764604288u

static struct token_secrets secrets;
static struct token_print_key print_key; // random enough
static struct mac_engine *engine;

// A token's text, signed with the current secret, in one of a few buffers.
static const char *signed_text(struct token token)
{
	static char texts[32][TOKEN_TEXT_BYTES + 1];
	static unsigned next;
	char *text = texts[next++ % 32];
	token_sign(&secrets, &token, text);
	text[TOKEN_TEXT_BYTES] = 0;
	return text;
}

static const char *ticket(uint64_t key)
{
	return signed_text((struct token){
		.kind = TOKEN_TICKET, .line_id = 13, .key = key, .visitor = 5, .issued = NOW});
}

static const char *pass(uint64_t session, uint32_t expires)
{
	return signed_text((struct token){.kind = TOKEN_PASS,
		.line_id = 13,
		.key = session,
		.visitor = 5,
		.issued = NOW - 60,
		.expires = expires});
}

// Read, verify and settle. Returns how many MACs were computed.
static uint32_t settle(struct gate_request *request, struct gate_remembered *remembered,
	const char *method, const char *target, const char *format, ...)
{
	static char fields[8192];
	struct mac_job jobs[CARRY_TOKENS_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(fields, sizeof(fields), format, args);
	va_end(args);
	reading_parts(request, method, target, fields);
	uint32_t count = gate_request_tokens(request, &secrets, &print_key, remembered, NOW, jobs);
	mac_burst(engine, jobs, count);
	gate_request_settle(request, remembered, NOW);
	return count;
}

static uint64_t key_of(const struct gate_token *token)
{
	return token ? token->token.key : 0;
}

static void the_smallest_ticket_counts(void **state)
{
	(void)state;
	struct gate_request request;
	settle(&request, NULL, "GET", "/derby", "");
	assert_null(request.ticket);
	assert_null(request.pass);
	assert_null(request.pass_over);
	settle(&request, NULL, "GET", "/derby", "Cookie: sluice-t-derby=%s\r\n", ticket(7));
	assert_int_equal(key_of(request.ticket), 7);
	settle(&request, NULL, "GET", "/derby",
		"Cookie: sluice-t-derby=%s; sluice-t-derby=\"%s\"; sluice-t-derby=%s\r\n",
		ticket(9), ticket(7), ticket(8));
	assert_int_equal(key_of(request.ticket), 7);
	settle(&request, NULL, "GET", "/derby",
		"Cookie: sluice-t-derby=%s\r\nSluice-Ticket: %s\r\n", ticket(9), ticket(3));
	assert_int_equal(key_of(request.ticket), 3);
	assert_int_equal(request.ticket->carried.carrier, CARRY_HEADER);
}

static void the_latest_pass_counts(void **state)
{
	(void)state;
	struct gate_request request;
	settle(&request, NULL, "GET", "/derby",
		"Cookie: sluice-p-derby=%s; sluice-p-derby=%s\r\nSluice-Pass: %s\r\n",
		pass(1, NOW + 1), pass(2, NOW + 3), pass(3, NOW + 2));
	assert_int_equal(key_of(request.pass), 2);
	assert_null(request.pass_over);
	settle(&request, NULL, "GET", "/derby", "Cookie: sluice-p-derby=%s; sluice-p-derby=%s\r\n",
		pass(1, NOW), pass(2, NOW - 1));
	assert_null(request.pass);
	assert_int_equal(key_of(request.pass_over), 1);
}

// One cookie, and whether it counts.
static void what_is_wrong_counts_as_none(void **state)
{
	(void)state;
	const struct token good = {
		.kind = TOKEN_TICKET, .line_id = 13, .key = 1, .visitor = 5, .issued = NOW};
	struct token other_room = good, ahead = good, too_far_ahead = good;
	other_room.line_id = 15;
	ahead.issued = NOW + TOKEN_AHEAD_MAX_S;
	too_far_ahead.issued = NOW + TOKEN_AHEAD_MAX_S + 1;
	char truncated[65], flipped[65], old[65], absent[65];
	memcpy(truncated, signed_text(good), TOKEN_TEXT_BYTES + 1);
	truncated[63] = 0;
	memcpy(flipped, signed_text(good), TOKEN_TEXT_BYTES + 1);
	flipped[63] = flipped[63] == 'A' ? 'B' : 'A';
	secrets.current = 2;
	memcpy(old, signed_text(good), TOKEN_TEXT_BYTES + 1);
	secrets.state[2] = TOKEN_SECRET_REVOKED;
	secrets.current = 3;
	memcpy(absent, signed_text(good), TOKEN_TEXT_BYTES + 1);
	secrets.state[3] = TOKEN_SECRET_ABSENT;
	secrets.current = 1;
	const struct {
		const char *name, *cookie, *value;
		uint32_t macs;
		bool counts;
	} cases[] = {
		{"good", "sluice-t-derby", signed_text(good), 1, true},
		{"ten seconds ahead", "sluice-t-derby", signed_text(ahead), 1, true},
		{"eleven seconds ahead", "sluice-t-derby", signed_text(too_far_ahead), 0, false},
		{"another room's", "sluice-t-derby", signed_text(other_room), 0, false},
		{"a ticket for a pass", "sluice-p-derby", signed_text(good), 0, false},
		{"a pass for a ticket", "sluice-t-derby", pass(1, NOW + 1), 0, false},
		{"truncated", "sluice-t-derby", truncated, 0, false},
		{"flipped", "sluice-t-derby", flipped, 1, false},
		{"of a revoked secret", "sluice-t-derby", old, 0, false},
		{"of an unknown secret", "sluice-t-derby", absent, 0, false},
		{"not a token", "sluice-t-derby", "x", 0, false},
		{"empty", "sluice-t-derby", "", 0, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gate_request request;
		uint32_t macs = settle(&request, NULL, "GET", "/derby", "Cookie: %s=%s\r\n",
			cases[i].cookie, cases[i].value);
		if (macs != cases[i].macs)
			fail_msg("%s: %u MACs", cases[i].name, macs);
		if ((request.ticket || request.pass) != cases[i].counts)
			fail_msg("%s", cases[i].name);
	}
	secrets.state[2] = secrets.state[3] = TOKEN_SECRET_VALID;
}

// Each of the 512 bits matters.
static void every_bit_is_signed(void **state)
{
	(void)state;
	const char *letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	char text[65];
	for (int bit = 0; bit < 384; bit++) {
		struct gate_request request;
		memcpy(text, ticket(1), TOKEN_TEXT_BYTES + 1);
		const char *letter = strchr(letters, text[bit / 6]);
		text[bit / 6] = letters[(letter - letters) ^ 1 << bit % 6];
		settle(&request, NULL, "GET", "/derby", "Cookie: sluice-t-derby=%s\r\n", text);
		assert_null(request.ticket);
	}
}

// The query's ticket is taken unless the visitor has a smaller one.
static void the_query_is_taken(void **state)
{
	(void)state;
	const struct {
		const char *name, *method;
		uint64_t query, cookie; // keys; 0: none
		bool takes;
	} cases[] = {
		{"alone", "GET", 5, 0, true},
		{"smaller than the cookie", "GET", 5, 6, true},
		{"larger than the cookie", "GET", 5, 4, false},
		{"the same as the cookie", "GET", 5, 5, true},
		{"not there", "GET", 0, 5, false},
		{"not a GET", "POST", 5, 0, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gate_request request;
		char target[256] = "/derby?a=b";
		if (cases[i].query)
			append(target, sizeof(target), "&sluice_ticket=%s", ticket(cases[i].query));
		settle(&request, NULL, cases[i].method, target, "Cookie: sluice-t-derby=%s\r\n",
			cases[i].cookie ? ticket(cases[i].cookie) : "");
		if (request.takes_query != cases[i].takes)
			fail_msg("%s", cases[i].name);
		if (cases[i].query)
			assert_true(span_is_equal(request.redirect, SPAN("/derby?a=b")));
		else
			assert_null(request.redirect.at);
	}
	struct gate_request request;
	settle(&request, NULL, "GET", "/derby?sluice_ticket=x", "");
	assert_false(request.takes_query);
}

// A poller pays for the MAC once, and what can change is still checked.
static void connections_remember(void **state)
{
	(void)state;
	struct gate_remembered remembered = {0};
	struct gate_request request;
	char fields[512];
	snprintf(fields, sizeof(fields), "Cookie: sluice-t-derby=%s; sluice-p-derby=%s\r\n",
		ticket(7), pass(1, NOW + 60));
	assert_int_equal(settle(&request, &remembered, "GET", "/derby", "%s", fields), 2);
	assert_int_equal(settle(&request, &remembered, "GET", "/derby", "%s", fields), 0);
	assert_int_equal(key_of(request.ticket), 7);
	assert_int_equal(key_of(request.pass), 1);
	assert_int_equal(settle(&request, NULL, "GET", "/derby", "%s", fields), 2);

	// Another room does not take it, nor another cookie name.
	settle(&request, &remembered, "GET", "/derby/vip", "Cookie: sluice-t-vip=%s\r\n",
		ticket(7));
	assert_null(request.ticket);
	settle(&request, &remembered, "GET", "/derby", "Cookie: sluice-p-derby=%s\r\n", ticket(7));
	assert_null(request.pass);

	// With another letter anywhere it is another token.
	for (size_t i = 0; i < TOKEN_TEXT_BYTES; i++) {
		char *letter = &fields[strlen("Cookie: sluice-t-derby=") + i], was = *letter;
		*letter = was == 'A' ? 'B' : 'A';
		settle(&request, &remembered, "GET", "/derby", "%s", fields);
		assert_null(request.ticket);
		*letter = was;
	}

	// It runs out.
	struct mac_job jobs[CARRY_TOKENS_MAX];
	reading_parts(&request, "GET", "/derby", fields);
	assert_int_equal(
		gate_request_tokens(&request, &secrets, &print_key, &remembered, NOW + 60, jobs),
		0);
	gate_request_settle(&request, &remembered, NOW + 60);
	assert_null(request.pass);
	assert_non_null(request.pass_over);
	assert_non_null(request.ticket);

	// Its secret is revoked.
	secrets.state[1] = TOKEN_SECRET_REVOKED;
	assert_int_equal(settle(&request, &remembered, "GET", "/derby", "%s", fields), 0);
	assert_null(request.ticket);
	assert_null(request.pass);
	secrets.state[1] = TOKEN_SECRET_VALID;

	// A newer one takes its place.
	assert_int_equal(settle(&request, &remembered, "GET", "/derby",
				 "Cookie: sluice-t-derby=%s\r\n", ticket(8)),
		1);
	assert_int_equal(settle(&request, &remembered, "GET", "/derby", "%s", fields), 1);
}

// What was not valid is not remembered.
static void only_valid_tokens_are_remembered(void **state)
{
	(void)state;
	struct gate_remembered remembered = {0}, nothing = {0};
	struct gate_request request;
	char text[65];
	memcpy(text, ticket(7), TOKEN_TEXT_BYTES + 1);
	text[63] = text[63] == 'A' ? 'B' : 'A';
	settle(&request, &remembered, "GET", "/derby", "Cookie: sluice-t-derby=%s\r\n", text);
	assert_memory_equal(&remembered, &nothing, sizeof(nothing));
}

static void a_burst_of_requests_is_verified_together(void **state)
{
	(void)state;
	enum { REQUESTS = 40 };
	static struct gate_request requests[REQUESTS];
	struct mac_job jobs[REQUESTS * CARRY_TOKENS_MAX];
	static char texts[REQUESTS][1024];
	char *scratch = malloc(REQUESTS * GATE_REQUEST_SCRATCH_BYTES(16));
	static struct http_head head;
	static const struct http_limits limits = {1024, 1024, 16};
	uint32_t count = 0;
	for (int i = 0; i < REQUESTS; i++) {
		char value[65];
		memcpy(value, ticket(i + 1), TOKEN_TEXT_BYTES + 1);
		value[20] ^= i % 3 == 0;
		int len = snprintf(texts[i], sizeof(texts[i]),
			"GET /derby HTTP/1.1\r\nHost: shop.example\r\n"
			"Cookie: sluice-t-derby=%s; sluice-p-derby=%s\r\n\r\n",
			value, pass(i, NOW + i));
		assert_int_equal(
			http_request_parse((struct span){texts[i], len}, &limits, &head), HTTP_OK);
		gate_request_read(
			&town, &head, scratch + i * GATE_REQUEST_SCRATCH_BYTES(16), &requests[i]);
		count += gate_request_tokens(
			&requests[i], &secrets, &print_key, NULL, NOW, jobs + count);
	}
	mac_burst(engine, jobs, count);
	for (int i = 0; i < REQUESTS; i++) {
		gate_request_settle(&requests[i], NULL, NOW);
		assert_int_equal(key_of(requests[i].ticket), i % 3 == 0 ? 0 : i + 1);
		assert_true((requests[i].pass != NULL) == (i > 0));
	}
	free(scratch);
}

int main(void)
{
	for (unsigned i = 0; i <= TOKEN_PRINT_WORDS; i++)
		for (unsigned half = 0; half < 2; half++)
			print_key.words[i][half] = (2 * i + half + 1) * 0x9e3779b97f4a7c15u;
	static const uint8_t secret[3][32] = {"first", "second", "third"};
	for (int i = 0; i < 3; i++)
		token_secrets_add(&secrets, i + 1, secret[i], sizeof(secret[i]));
	secrets.current = 1;
	if (mac_create(&engine) < 0)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_smallest_ticket_counts),
		cmocka_unit_test(the_latest_pass_counts),
		cmocka_unit_test(what_is_wrong_counts_as_none),
		cmocka_unit_test(every_bit_is_signed),
		cmocka_unit_test(the_query_is_taken),
		cmocka_unit_test(connections_remember),
		cmocka_unit_test(only_valid_tokens_are_remembered),
		cmocka_unit_test(a_burst_of_requests_is_verified_together),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	mac_destroy(engine);
	return failed;
}
