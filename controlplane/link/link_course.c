// One setter, one table of moves. The pauses: 0, then 50, 100, 200, 400, 500 ms and so on from the
// beginning of one try to that of the next, each less up to a quarter.

#include "controlplane/link/link_course.h"

#include <assert.h>

#define MS UINT64_C(1000)
#define PAUSE_MS 50u // the second
#define DOUBLINGS_MAX 4u // then LINK_COURSE_TRY_MS

#define FROM(state) (1u << LINK_COURSE_##state)

// From where each state may be entered.
static const unsigned from[] = {
	[LINK_COURSE_RESTING] = FROM(ASKING) | FROM(CONNECTING) | FROM(GREETING) | FROM(READY),
	[LINK_COURSE_ASKING] = FROM(RESTING),
	[LINK_COURSE_CONNECTING] = FROM(RESTING) | FROM(ASKING),
	[LINK_COURSE_GREETING] = FROM(CONNECTING),
	[LINK_COURSE_READY] = FROM(GREETING),
};

static void set(struct link_course *course, enum link_course_state to)
{
	assert(from[to] & (1u << course->state));
	course->state = to;
}

void link_course_init(struct link_course *course, uint32_t sentinel_count, uint64_t seed)
{
	*course = (struct link_course){.sentinel_count = sentinel_count, .random = seed | 1};
}

void link_course_begin(struct link_course *course, uint64_t now_us)
{
	set(course, course->sentinel_count ? LINK_COURSE_ASKING : LINK_COURSE_CONNECTING);
	course->began_us = now_us;
}

void link_course_told(struct link_course *course)
{
	assert(course->state == LINK_COURSE_ASKING);
	set(course, LINK_COURSE_CONNECTING);
}

void link_course_connected(struct link_course *course)
{
	set(course, LINK_COURSE_GREETING);
}

void link_course_greeted(struct link_course *course)
{
	set(course, LINK_COURSE_READY);
}

void link_course_served(struct link_course *course)
{
	assert(course->state == LINK_COURSE_READY);
	course->failures = 0;
}

static void count_failure(struct link_course *course)
{
	if (course->failures < UINT32_MAX)
		course->failures++;
}

void link_course_doubted(struct link_course *course)
{
	assert(course->state == LINK_COURSE_READY);
	count_failure(course);
}

void link_course_failed(struct link_course *course)
{
	bool was_ready = course->state == LINK_COURSE_READY;
	set(course, LINK_COURSE_RESTING);
	if (was_ready)
		return;
	count_failure(course);
	if (course->sentinel_count)
		course->sentinel = (course->sentinel + 1) % course->sentinel_count;
}

// xorshift64 (Marsaglia, 2003): nobody gains by guessing a pause.
static uint64_t next_random(struct link_course *course)
{
	course->random ^= course->random << 13;
	course->random ^= course->random >> 7;
	course->random ^= course->random << 17;
	return course->random;
}

uint64_t link_course_next_us(struct link_course *course, uint64_t now_us)
{
	assert(course->state == LINK_COURSE_RESTING);
	if (course->failures == 0)
		return now_us;
	uint32_t doublings = course->failures - 1;
	uint64_t pause_us =
		doublings < DOUBLINGS_MAX ? (PAUSE_MS << doublings) * MS : LINK_COURSE_TRY_MS * MS;
	pause_us -= next_random(course) % (pause_us / 4 + 1);
	uint64_t due_us = course->began_us + pause_us;
	return due_us > now_us ? due_us : now_us;
}
