// A TLS driver between a network in memory and a server that is OpenSSL's own, so that tests read
// as stories: who connects, what either side says, what the other one gets.
//
// With `bytewise` each byte of the server comes as an event of its own, in a turn of its own.
#pragma once

#include "dataplane/tls/tls.h"
#include "tests/unit/origin/fake.h"
#include "tests/unit/tls/certificate.h"

#include <openssl/ssl.h>

#define RIG_NAME "shop.example"
#define RIG_STREAMS_MAX 4

// What a stream's owner has heard.
struct rig_heard {
	int opened, writable, eof, closed;
	int error; // of the last `closed`
	struct fake_bytes data;
};

// The far end of one connection.
struct rig_far {
	SSL *ssl;
	struct fake_stream *s;
	size_t taken; // of s->got
	struct fake_bytes got; // opened
	bool has_ended; // close_notify came
};

struct rig {
	struct fake fake;
	struct stream_driver *tls;
	struct trust *trust;
	struct peer peer;
	const char *name; // to be verified; RIG_NAME to begin with
	struct certificate root; // trusted
	struct certificate server; // the far end's
	SSL_CTX *far_context;
	int far_version; // the only one that the far end speaks; 0: any
	bool bytewise;
	bool closes_when_opened; // what the owner does
	int max; // inner events a burst; 0: many

	struct stream *stream; // the latest connect; NULL once it has ended
	struct rig_heard heard; // of that one
	struct rig_far far; // likewise
	struct rig_far others[RIG_STREAMS_MAX]; // of earlier ones
	int other_count;
};

// Whether rigs made from now on are bytewise.
extern bool rig_bytewise;

// Whether the driver is at work, not the far end: for who counts what it allocates.
extern bool rig_is_inside;

// A rig whose far end has a good certificate for RIG_NAME, or the one given, which it takes over.
struct rig *rig_new(void);
struct rig *rig_with(const struct certificate_recipe *recipe);
void rig_end(struct rig *rig); // asserts that nothing is left

// Make the far end another one: its certificate, or what it speaks, has changed.
void rig_renew_far(struct rig *rig);

// Begin to connect; the TCP connection opens.
void rig_connect(struct rig *rig);

// One turn; and turns, in which the far end does what it must, until nothing happens any more.
int rig_turn(struct rig *rig);
void rig_settle(struct rig *rig);

// Connect, and assert that it opens, or that it closes with an error.
void rig_open(struct rig *rig);
void rig_fail(struct rig *rig, int error);

// The owner writes; the far end does. rig_far_says() does not wait for anything to happen.
size_t rig_says(struct rig *rig, struct span data);
void rig_far_says(struct rig *rig, struct span data);

// What the far end has sealed goes on its way.
void rig_far_flush(struct rig *rig);

// The owner closes its stream.
void rig_close(struct rig *rig, bool reset);

// A counter of the driver.
#define rig_count(rig, counter) (tls_counters((rig)->tls)->counter)

// `len` bytes that are not all alike.
struct span rig_text(size_t len);

// Assert that what was received is `text`, and forget it.
void rig_is(struct fake_bytes *got, struct span text);

// Run an array of tests twice, in whole messages and byte by byte; for main() to return.
#define rig_run(tests) \
	(cmocka_run_group_tests_name("whole", tests, rig_set_whole, NULL) + \
		cmocka_run_group_tests_name("byte by byte", tests, rig_set_bytewise, NULL))
int rig_set_whole(void **state);
int rig_set_bytewise(void **state);
