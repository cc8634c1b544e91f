// How tokens go out, and how cookies that are no use are got rid of.

#include "tests/unit/gate/answer_scene.h"

static void cookies_and_their_attributes(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		bool is_secure;
		enum gate_same_site same_site;
		const char *domain;
		const char *ticket, *pass; // attributes
	} rows[] = {
		{"plain", false, GATE_SAME_SITE_NONE, "", "SameSite=Lax; Max-Age=86400",
			"SameSite=Lax; Max-Age=86400"},
		{"TLS", true, GATE_SAME_SITE_NONE, "", "SameSite=Lax; Max-Age=86400; Secure",
			"SameSite=None; Max-Age=86400; Secure"},
		{"TLS, lax", true, GATE_SAME_SITE_LAX, "", "SameSite=Lax; Max-Age=86400; Secure",
			"SameSite=Lax; Max-Age=86400; Secure"},
		{"TLS, strict", true, GATE_SAME_SITE_STRICT, "",
			"SameSite=Lax; Max-Age=86400; Secure",
			"SameSite=Strict; Max-Age=86400; Secure"},
		{"a domain above the host", false, GATE_SAME_SITE_NONE, "club.example",
			"SameSite=Lax; Max-Age=86400; Domain=club.example",
			"SameSite=Lax; Max-Age=86400; Domain=club.example"},
		{"the host itself", true, GATE_SAME_SITE_NONE, "tickets.club.example",
			"SameSite=Lax; Max-Age=86400; Domain=tickets.club.example; Secure",
			"SameSite=None; Max-Age=86400; Domain=tickets.club.example; Secure"},
		{"a domain that the browser would refuse", false, GATE_SAME_SITE_NONE, "b.example",
			"SameSite=Lax; Max-Age=86400", "SameSite=Lax; Max-Age=86400"},
		{"a domain that only ends alike", false, GATE_SAME_SITE_NONE, "lub.example",
			"SameSite=Lax; Max-Age=86400", "SameSite=Lax; Max-Age=86400"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char expected[512];
		frame.is_secure = rows[i].is_secure;
		site.pass_same_site = (uint8_t)rows[i].same_site;
		site.cookie_domain = (struct span){rows[i].domain, strlen(rows[i].domain)};
		decision.sets_ticket = decision.sets_pass = true;
		render();
		snprintf(expected, sizeof(expected), "sluice-t-derby=%s; Path=/; HttpOnly; %s",
			token_text(&decision.ticket), rows[i].ticket);
		assert_string_equal(field("Set-Cookie", 0), expected);
		snprintf(expected, sizeof(expected), "sluice-p-derby=%s; Path=/; HttpOnly; %s",
			token_text(&decision.pass), rows[i].pass);
		assert_string_equal(field("Set-Cookie", 1), expected);
		assert_null(field("Set-Cookie", 2));
	}
}

static void a_pass_outlives_a_short_ticket_ttl(void **state)
{
	(void)state;
	room.ticket_ttl_s = 60;
	decision.sets_pass = true;
	render();
	assert_non_null(strstr(field("Set-Cookie", 0), "Max-Age=600"));
}

static void headers_are_answered_with_headers(void **state)
{
	(void)state;
	carry(TOKEN_TICKET, CARRY_COOKIE);
	carry(TOKEN_TICKET, CARRY_HEADER);
	decision.sets_ticket = decision.sets_pass = true;
	render();
	assert_field("Sluice-Ticket", token_text(&decision.ticket));
	assert_field("Sluice-Pass", token_text(&decision.pass));
	assert_null(field("Set-Cookie", 0));
}

static void cookies_are_cleared_with_and_without_domain(void **state)
{
	(void)state;
	site.cookie_domain = SPAN("club.example");
	frame.is_secure = true;
	decision.clears_ticket = decision.clears_pass = true;
	stale.names[stale.count++] = SPAN("sluice-p-old");
	render();
	static const char *const names[] = {"sluice-t-derby", "sluice-p-derby", "sluice-p-old"};
	for (unsigned i = 0; i < 6; i++) {
		char expected[256];
		snprintf(expected, sizeof(expected),
			"%s=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0%s; Secure", names[i / 2],
			i % 2 ? "; Domain=club.example" : "");
		assert_string_equal(field("Set-Cookie", i), expected);
	}
}

static void stale_cookies_go_as_far_as_there_is_room(void **state)
{
	(void)state;
	static char name[300];
	static char domain[253];
	memset(name, 'n', sizeof(name));
	memset(domain, 'd', sizeof(domain));
	site.cookie_domain = (struct span){domain, sizeof(domain)};
	request.host = site.cookie_domain;
	decision.sets_ticket = decision.sets_pass = true;
	for (size_t len = 1; len <= sizeof(name); len += 13) {
		stale.count = CARRY_STALE_MAX;
		for (uint32_t i = 0; i < stale.count; i++)
			stale.names[i] = (struct span){name, len};
		memset(out, '~', sizeof(out));
		size_t bytes = answer_fields(&decision, &request, &frame, out);
		assert_in_range(bytes, 1500, ANSWER_FIELDS_BYTES_MAX);
		assert_int_equal(out[bytes], '~');
		assert_memory_equal(out + bytes - 2, "\r\n", 2);
		render(); // and the whole stays well-formed
	}
}

static void an_origins_answer_gets_fields_or_nothing(void **state)
{
	(void)state;
	decision.action = DECIDE_FORWARD;
	assert_int_equal(answer_fields(&decision, &request, &frame, out), 0);
	decision.sets_pass = true;
	size_t bytes = answer_fields(&decision, &request, &frame, out);
	out[bytes] = 0;
	char expected[256];
	snprintf(expected, sizeof(expected),
		"Set-Cookie: sluice-p-derby=%s; Path=/; HttpOnly; SameSite=Lax; Max-Age=86400\r\n",
		token_text(&decision.pass));
	assert_string_equal(out, expected);
	frame.stale = NULL;
	frame.site = NULL;
	request.room = NULL; // outside every room
	decision.sets_pass = false;
	assert_int_equal(answer_fields(&decision, &request, &frame, out), 0);
}

static void what_is_set_can_be_read_again(void **state)
{
	(void)state;
	decision.sets_ticket = true;
	render();
	const char *text = strchr(field("Set-Cookie", 0), '=') + 1;
	assert_int_equal(strspn(text, TOKEN_CHARACTERS), TOKEN_TEXT_BYTES);
	struct token_wire wire;
	struct token token;
	assert_true(token_decode((struct span){text, TOKEN_TEXT_BYTES}, &wire, &token));
	assert_int_equal(token.key, 9);
	assert_int_equal(token.secret_id, 3);
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup(name, scene)
	const struct CMUnitTest tests[] = {
		STORY(cookies_and_their_attributes),
		STORY(a_pass_outlives_a_short_ticket_ttl),
		STORY(headers_are_answered_with_headers),
		STORY(cookies_are_cleared_with_and_without_domain),
		STORY(stale_cookies_go_as_far_as_there_is_room),
		STORY(an_origins_answer_gets_fields_or_nothing),
		STORY(what_is_set_can_be_read_again),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
