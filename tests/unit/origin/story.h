// A small worker around the origin side, so that tests read as stories: a client says something,
// the origin gets something, says something, the client gets something.
//
// Every `says` is followed by turns until nothing happens any more. With `bytewise` each byte comes
// as an event of its own, in a turn of its own.
#pragma once

#include "dataplane/origin/exchange.h"
#include "dataplane/origin/origin.h"
#include "tests/unit/origin/fake.h"

#define STORY_CLIENTS_MAX 8
#define STORY_HELD_MAX 131072
#define STORY_SERVERS_MAX 8

// What the origin gets behind a request's own fields from `Host: shop.example` over plain TCP.
#define STORY_ADDED \
	"X-Forwarded-For: 192.0.2.7\r\n" \
	"X-Forwarded-Proto: http\r\n" \
	"X-Forwarded-Host: shop.example\r\n" \
	"Forwarded: for=192.0.2.7;host=\"shop.example\";proto=http\r\n"

// The shortest request, as the client says it and as the origin gets it; one with a body of four
// bytes likewise; and an answer, the same on both sides.
#define STORY_GET "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"
#define STORY_GOT_GET "GET / HTTP/1.1\r\nHost: shop.example\r\n" STORY_ADDED "\r\n"
#define STORY_POST "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\n\r\n"
#define STORY_GOT_POST \
	"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\n" STORY_ADDED "\r\n"
#define STORY_STATUS "HTTP/1.1 200 OK\r\n"
#define STORY_OK STORY_STATUS "Content-Length: 2\r\n\r\nok"
#define STORY_SECOND 1000000ull

struct story;

struct story_client {
	struct story *story;
	struct fake_stream *s;
	struct exchange *x; // NULL: none in flight
	bool has_ended; // EOF came
	char held[STORY_HELD_MAX]; // received, not yet used
	size_t held_len;

	// what was heard
	struct exchange_end end; // the last one
	int ends, answers, tunnels, commands_end, commands_renew;
	uint16_t status; // of the last answer
	uint16_t refused; // by exchange_begin()
};

struct story {
	struct fake fake;
	struct origin_plan plan;
	struct origin *o;
	uint64_t now_us;
	bool bytewise;
	bool pump_at_once; // the worker looks at a request as it comes, not at the end of the turn
	struct exchange_request facts; // what the worker knows besides head and stream
	struct exchange_extra extra; // what the gate adds
	struct origin_table table;
	struct origin_table_origin origin;
	struct origin_table_server servers[STORY_SERVERS_MAX];
	struct story_client clients[STORY_CLIENTS_MAX];
	int client_count;
};

// Whether stories that begin now go byte by byte.
extern bool story_bytewise;

// A story with default sizes and one server. story_plan() may change `plan` before story_start().
struct story *story_plan(void);
void story_start(struct story *story);
struct story *story_new(void); // both
void story_end(struct story *story); // asserts that nothing is left

// Use a table of `count` servers, 10.0.0.1:80 and on, with these ids from `first_id`.
void story_table(struct story *story, uint8_t balance, uint32_t count, uint64_t first_id);

struct story_client *story_client(struct story *story);

// The n-th connection to an origin, from 0 (clients not counted); fails the test if there is none.
struct fake_stream *story_connection(struct story *story, int n);
int story_connection_count(const struct story *story);

// One turn of the worker; and turns until nothing happens any more.
int story_turn(struct story *story);
void story_settle(struct story *story);

// Let time pass.
void story_wait(struct story *story, uint64_t us);

void story_client_says(struct story_client *client, const char *text);
void story_client_ends(struct story_client *client);
void story_client_leaves(struct story_client *client);
void story_opens(struct story *story, struct fake_stream *connection);
void story_origin_says(struct story *story, struct fake_stream *connection, const char *text);
void story_origin_ends(struct story *story, struct fake_stream *connection);
void story_origin_closes(struct story *story, struct fake_stream *connection, int error);

// Asserts what a peer has got since last asked.
#define story_got(stream, text) story_got_at(stream, text, __FILE__, __LINE__)
void story_got_at(struct fake_stream *s, const char *text, const char *file, int line);

// Likewise for `head` and a chunked body: whole with `body`; or not ended, with `body` so far.
#define story_got_chunks(stream, head, body, is_whole) \
	story_got_chunks_at(stream, head, body, is_whole, __FILE__, __LINE__)
void story_got_chunks_at(struct fake_stream *s, const char *head, const char *body, bool is_whole,
	const char *file, int line);

// A counter of the origin side.
#define story_count(story, name) (origin_counters((story)->o)->name)

// Ask on a connection made for it, and assert what the origin gets. Returns the connection.
struct fake_stream *story_asked(struct story_client *client, const char *request, const char *got);

// The shortest whole exchange, on connection n; `is_new`: it is made for it.
struct fake_stream *story_get(struct story_client *client, int n, bool is_new);

// Run an array of tests twice, in whole messages and byte by byte; for main() to return.
#define story_run(tests) \
	(cmocka_run_group_tests_name("whole", tests, story_set_whole, NULL) + \
		cmocka_run_group_tests_name("byte by byte", tests, story_set_bytewise, NULL))
int story_set_whole(void **state);
int story_set_bytewise(void **state);
