// Rooms over reloads: one that fails midway changes nothing, and a room that comes back is what it
// was.

#include "controlplane/appliance/appliance.h"
#include "controlplane/engine.h"
#include "controlplane/rooms.h"

#include "controlplane/controller/pool.h"
#include "controlplane/reload.h"
#include "controlplane/turn.h"
#include "dataplane/gate/ended.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SESSION 77u

// A store that knows one session of each of two rooms, and that derby was closed; or that cannot be
// read.
struct memory_store {
	struct store store;
	enum store_kind fails; // to read these
};

// What no test here calls.
const struct claims_seams turn_seams;

// There is one appliance.
void appliance_share_draws(struct control *c)
{
	fail_msg("%p", (void *)c->appliance);
}

void appliance_see_draws(struct control *c)
{
	fail_msg("%p", (void *)c->appliance);
}

void appliance_salt_used(struct control *c, const struct control_room *room)
{
	fail_msg("%p of %s", (void *)c->appliance, room->config->name);
}

void reload_snapshot(struct control *c)
{
	(void)c;
}

static int memory_load(
	struct store *s, enum store_kind kind, uint64_t max, store_record_fn *record, void *ctx)
{
	(void)max;
	if (kind == ((struct memory_store *)s)->fails)
		return -EIO;
	for (uint32_t line_id = 7; line_id < 9 && kind == STORE_GRANTED; line_id++)
		record(ctx, &(struct store_record){.kind = kind,
				    .session = {.line_id = line_id,
					    .expires = UINT32_MAX,
					    .visitor = line_id,
					    .session = SESSION}});
	if (kind == STORE_ROOM)
		record(ctx, &(struct store_record){.kind = kind,
				    .room = {7, GATE_CLOSED, STORE_AS_CONFIGURED, "over"}});
	return 0;
}

static bool memory_put(struct store *s, const struct store_record *record)
{
	(void)s;
	(void)record;
	return true;
}

static void memory_moment(struct store *s, uint64_t now_ms)
{
	(void)s;
	(void)now_ms;
}

static const struct store_ops memory_ops = {
	.load = memory_load, .put = memory_put, .begin = memory_moment, .poll = memory_moment};

static struct config_room room(const char *name, uint32_t line_id, uint64_t capacity)
{
	return (struct config_room){.name = name,
		.line_id = line_id,
		.capacity = capacity,
		.rate.period_ms = 1000,
		.burst = 1,
		.priority = 1,
		.weight = 1,
		.session_s = 60,
		.claim_s = 60};
}

// A configuration of the rooms given.
static struct config *configure(uint32_t count, struct config_room first, struct config_room second)
{
	struct config *config = calloc(1, sizeof(*config));
	struct config_site *site = calloc(1, sizeof(*site));
	struct config_room *rooms = calloc(2, sizeof(*rooms));
	rooms[0] = first;
	rooms[1] = second;
	site->rooms = (struct config_rooms){count, rooms};
	config->sites = (struct config_sites){1, site};
	config->sessions_max = config->present_max = config->left_max = 16;
	return config;
}

static void forget(struct config *config)
{
	free(config->sites.at->rooms.at);
	free(config->sites.at);
	free(config);
}

static uint32_t sessions_of(struct control *c, const char *name)
{
	struct controller_view view;
	controller_look(rooms_find(c, name)->controller, clock_monotonic_us() / 1000, &view);
	return (uint32_t)view.sessions;
}

static struct ended *make_set(void)
{
	return ended_init(aligned_alloc(64, ended_bytes(64)), 64);
}

static struct claims *make_claims(struct store *store, const struct claims_sets *sets)
{
	static const struct claims_seams seams;
	static const struct claims_plan plan = {ROOMS_AT_ONCE, 1, 64};
	return claims_create(&plan, store, sets, &seams);
}

// What is new cannot be read: nothing changes, whichever it is. `configs`: the one in force, and
// two others.
static void read_nothing(struct control *c, struct memory_store *memory, struct config **configs)
{
	static const enum store_kind kinds[] = {STORE_GRANTED, STORE_ROOM};
	struct controller *cup = rooms_find(c, "cup")->controller;
	for (int i = 0; i < 2; i++) {
		memory->fails = kinds[i];
		c->config = configs[1];
		assert_int_equal(rooms_set(c), -EIO);
		c->config = configs[2];
		assert_int_equal(rooms_set(c), -EIO);
		c->config = configs[0];
		assert_null(rooms_find(c, "derby"));
		assert_ptr_equal(rooms_find(c, "cup")->controller, cup);
		assert_ptr_equal(rooms_find(c, "cup")->config, &configs[0]->sites.at->rooms.at[0]);
		assert_true(claims_set_state(c->claims, 8, GATE_OPEN, false));
		assert_false(claims_set_state(c->claims, 7, GATE_OPEN, false));
		claims_turn(c->claims, NULL, 0, clock_monotonic_us() / 1000);
	}
}

// Its two rooms share a pool, and cease to.
static void share_a_pool(
	struct control *c, struct memory_store *memory, struct config *two, struct config *other)
{
	// It shares a pool, with its slots; the pool goes, and it has its own again.
	struct config_pool shop = {
		.name = "shop", .capacity = 2, .rate.period_ms = 1000, .burst = 1};
	two->pools = (struct config_pools){1, &shop};
	two->sites.at->rooms.at[0].pool = two->sites.at->rooms.at[1].pool = "shop";
	assert_int_equal(rooms_set(c), 0);
	assert_int_equal(c->pool_count, 1);
	assert_int_equal(c->pools[0].pool->taken, 2);
	shop.capacity = 5;
	two->sites.at->rooms.at[1].pool = NULL;
	assert_int_equal(rooms_set(c), 0);
	assert_int_equal(c->pools[0].pool->taken, 1);
	assert_int_equal(c->pools[0].pool->limits.capacity, 5);

	// A pool that was to come does not, when a room cannot be read.
	memory->fails = STORE_GRANTED;
	c->config = other;
	other->sites.at->rooms.at[0].line_id = 9; // a new one
	other->pools = (struct config_pools){1, &(struct config_pool){.name = "b", .burst = 1}};
	assert_int_equal(rooms_set(c), -EIO);
	assert_string_equal(c->pools[0].name, "shop");
	memory->fails = 0;
	other->pools.count = 0;
	other->sites.at->rooms.at[0].line_id = 7;
}

static void test_reloads(void **state)
{
	(void)state;
	static struct control c;
	c.engine = &engine_alone;
	const struct store_status status = {.free_count = 1u << 20};
	struct memory_store memory = {.store = {&memory_ops, status}};
	char path[] = "/tmp/sluice-rooms-XXXXXX";
	close(mkstemp(path));
	unlink(path);
	assert_int_equal(place_file_open(path, 8, 64, &c.places), 0);
	unlink(path);
	struct claims_sets sets = {make_set(), make_set()};
	c.store = &memory.store;
	c.claims = make_claims(c.store, &sets);
	struct config *one = configure(1, room("cup", 8, 5), room("", 0, 0));
	struct config *two = configure(2, room("derby", 7, 3), room("cup", 8, 9));
	struct config *other = configure(1, room("derby", 7, 3), room("", 0, 0));

	c.config = c.started = one;
	assert_int_equal(rooms_set(&c), 0);
	assert_int_equal(sessions_of(&c, "cup"), 1);

	struct controller *cup = rooms_find(&c, "cup")->controller;
	read_nothing(&c, &memory, (struct config *[]){one, two, other});

	// It can: the room that stays is the same, the new one is what it was.
	memory.fails = 0;
	c.config = two;
	assert_int_equal(rooms_set(&c), 0);
	assert_ptr_equal(rooms_find(&c, "cup")->controller, cup);
	assert_int_equal(sessions_of(&c, "cup"), 1);
	assert_int_equal(sessions_of(&c, "derby"), 1);
	assert_int_equal(rooms_state(rooms_find(&c, "derby")), GATE_CLOSED);
	assert_string_equal(rooms_find(&c, "derby")->message, "over");

	share_a_pool(&c, &memory, two, other);

	// It goes, and comes back.
	two->pools.count = 0;
	two->sites.at->rooms.at[0].pool = NULL;
	c.config = two;
	assert_int_equal(rooms_set(&c), 0);
	assert_int_equal(c.pool_count, 0);
	c.config = one;
	assert_int_equal(rooms_set(&c), 0);
	assert_null(rooms_find(&c, "derby"));
	assert_false(claims_set_state(c.claims, 7, GATE_OPEN, false));
	claims_turn(c.claims, NULL, 0, clock_monotonic_us() / 1000);
	c.config = other;
	assert_int_equal(rooms_set(&c), 0);
	assert_int_equal(sessions_of(&c, "derby"), 1);
	assert_int_equal(rooms_state(rooms_find(&c, "derby")), GATE_CLOSED);

	rooms_destroy(&c);
	claims_destroy(c.claims);
	place_file_close(c.places);
	free(sets.ended);
	free(sets.left);
	forget(one);
	forget(two);
	forget(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_reloads)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
