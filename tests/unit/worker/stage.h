// A stage for stories about one worker: the real one, its turns taken one by one on a network in
// memory, with the test as visitors, origin and control, and a clock that the test moves.
//
// There is one site, `localhost`, with rooms derby (line 7) and cup (line 8), and one origin.
#pragma once

#include "dataplane/inside.h"
#include "tests/unit/origin/fake.h"

#ifndef STAGE_CONNECTIONS // a benchmark wants more of them
#define STAGE_CONNECTIONS 64u
#endif
#define STAGE_BUFFERS 9u
#define STAGE_HEAD_MS 10000u
#define STAGE_IDLE_MS 75000u

struct stage {
	struct fake fake; // visitors and origin
	struct worker *w;
	struct snapshot_words words;
	struct snapshot *snapshot;
	struct place_file *places;
	struct place_line *derby, *cup;
	struct folder *folder;
	struct rings *rings;
	int wake_fd;
	bool control_is_late; // its heart has stopped
	uint64_t now_us;
};

// Once, before all stages. Returns false if DPDK refuses.
bool stage_open(void);

void stage_begin(struct stage *stage);
void stage_end(struct stage *stage);

// The worker is told to end, and has taken its last turn.
void stage_close(struct stage *stage);

// Let `ms` pass, and take a turn.
void stage_turn(struct stage *stage, uint64_t ms);

// A visitor connects.
struct fake_stream *stage_visitor(struct stage *stage);

// Somebody sends `text`, and a turn is taken.
void stage_says(struct stage *stage, struct fake_stream *s, const char *text);

// How often `text` is in what somebody has received.
unsigned stage_heard(const struct fake_stream *s, const char *text);

// Forget what somebody has received.
void stage_forget(struct fake_stream *s);

// The value of the last cookie of that name that a visitor was given; 64 bytes and a NUL.
void stage_cookie(const struct fake_stream *s, const char *name, char value[65]);

// Take the next claim off the ring. Fails if there is none.
struct claim stage_claim(struct stage *stage);
bool stage_has_claim(struct stage *stage);

// Answer a claim, and take a turn. A grant lasts for a minute.
void stage_answer(
	struct stage *stage, const struct claim *claim, uint8_t verdict, uint64_t session);

// The connection to the origin made last.
struct fake_stream *stage_origin(struct stage *stage);

// Connections on the list of the idle.
unsigned stage_idle(const struct stage *stage);

uint64_t stage_counter(const struct stage *stage, enum counter which);
