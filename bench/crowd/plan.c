// Options are long, each with a value but for three. A crowd is a load: it goes to this machine or
// to private addresses, and elsewhere only to who says that it is theirs.

#include "bench/crowd/plan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: crowd --target ADDRESS:PORT [options]\n"
	"\n"
	"  --target ADDRESS:PORT  where sluice listens; an address of this machine or a private "
	"one;\n"
	"                         again for each appliance of a cluster, up to 16\n"
	"  --roam SHARE           chance that a request goes to another target (default 0.2)\n"
	"  --yes-it-is-mine       any other address\n"
	"  --host NAME            for the Host field (default: the first target as given)\n"
	"  --path PATH            a page of the room, ending with a slash (default /derby/)\n"
	"  --room NAME            (default derby)\n"
	"  --visitors N           (default 100)\n"
	"  --shape step|ramp|poisson\n"
	"                         steady from one moment on (default), growing, at random\n"
	"  --over SECONDS         in which they arrive (default 1)\n"
	"  --no-show SHARE        of them, 0 to 1, stop polling as soon as they have a place\n"
	"  --tabs SHARE           open a second tab that claims the same ticket\n"
	"  --shop SECONDS         how long they shop (default 1)\n"
	"  --pages N              they load meanwhile, besides the first (default 2)\n"
	"  --leave leave|buy|mixed|none\n"
	"                         how a visit ends (default mixed)\n"
	"  --shop-port PORT       of the origin on 127.0.0.1: told of who leaves, asked for "
	"/stats\n"
	"  --rate N, --burst N, --capacity N\n"
	"                         of the room, people a second and people, to be judged by\n"
	"  --forever              who is done arrives again\n"
	"  --processes N          share the crowd (default 1)\n"
	"  --seconds LIMIT        the run is over by then (default 600)\n"
	"  --seed N               the same arrivals and choices again (default 1)\n"
	"  --json                 one flat object in place of the table\n";

enum choice {
	OPTION_TARGET = 1,
	OPTION_ROAM,
	OPTION_MINE,
	OPTION_HOST,
	OPTION_PATH,
	OPTION_ROOM,
	OPTION_VISITORS,
	OPTION_SHAPE,
	OPTION_OVER,
	OPTION_NO_SHOW,
	OPTION_TABS,
	OPTION_SHOP,
	OPTION_PAGES,
	OPTION_LEAVE,
	OPTION_SHOP_PORT,
	OPTION_RATE,
	OPTION_BURST,
	OPTION_CAPACITY,
	OPTION_FOREVER,
	OPTION_PROCESSES,
	OPTION_SECONDS,
	OPTION_SEED,
	OPTION_JSON,
	OPTION_HELP,
};

static const struct option options[] = {
	{"target", required_argument, NULL, OPTION_TARGET},
	{"roam", required_argument, NULL, OPTION_ROAM},
	{"yes-it-is-mine", no_argument, NULL, OPTION_MINE},
	{"host", required_argument, NULL, OPTION_HOST},
	{"path", required_argument, NULL, OPTION_PATH},
	{"room", required_argument, NULL, OPTION_ROOM},
	{"visitors", required_argument, NULL, OPTION_VISITORS},
	{"shape", required_argument, NULL, OPTION_SHAPE},
	{"over", required_argument, NULL, OPTION_OVER},
	{"no-show", required_argument, NULL, OPTION_NO_SHOW},
	{"tabs", required_argument, NULL, OPTION_TABS},
	{"shop", required_argument, NULL, OPTION_SHOP},
	{"pages", required_argument, NULL, OPTION_PAGES},
	{"leave", required_argument, NULL, OPTION_LEAVE},
	{"shop-port", required_argument, NULL, OPTION_SHOP_PORT},
	{"rate", required_argument, NULL, OPTION_RATE},
	{"burst", required_argument, NULL, OPTION_BURST},
	{"capacity", required_argument, NULL, OPTION_CAPACITY},
	{"forever", no_argument, NULL, OPTION_FOREVER},
	{"processes", required_argument, NULL, OPTION_PROCESSES},
	{"seconds", required_argument, NULL, OPTION_SECONDS},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"json", no_argument, NULL, OPTION_JSON},
	{"help", no_argument, NULL, OPTION_HELP},
	{0},
};

// A number with nothing behind it but, for seconds, an `s`.
static bool read_number(const char *text, double most, double *number)
{
	char *end;
	errno = 0;
	const double n = strtod(text, &end);
	if (*end == 's')
		end++;
	if (end == text || *end || errno || !(n >= 0 && n <= most))
		return false;
	*number = n;
	return true;
}

static bool read_count(const char *text, uint32_t least, uint32_t most, uint32_t *count)
{
	double n;
	if (!read_number(text, most, &n) || n < least || n != (uint32_t)n)
		return false;
	*count = (uint32_t)n;
	return true;
}

static bool read_leave(const char *word, enum plan_leave *leave)
{
	static const char *const words[] = {[PLAN_LEAVE_NONE] = "none",
		[PLAN_LEAVE_LEAVE] = "leave",
		[PLAN_LEAVE_BUY] = "buy",
		[PLAN_LEAVE_MIXED] = "mixed"};
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(word, words[i]) == 0) {
			*leave = (enum plan_leave)i;
			return true;
		}
	}
	return false;
}

static bool read_text(const char *text, const char **kept)
{
	*kept = text;
	return *text && strlen(text) <= PLAN_TEXT_MAX && strpbrk(text, " \r\n") == NULL;
}

static bool set_peer(const char *host, uint32_t port, struct plan_peer *peer)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&peer->address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&peer->address;
	memset(&peer->address, 0, sizeof(peer->address));
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		peer->bytes = sizeof(*v4);
	} else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		peer->bytes = sizeof(*v6);
	}
	return peer->bytes > 0;
}

// 192.0.2.1:80 or [2001:db8::1]:80.
static bool read_peer(const char *text, struct plan_peer *peer)
{
	char host[INET6_ADDRSTRLEN + 1];
	const char *colon = strrchr(text, ':');
	const bool is_v6 = text[0] == '[' && colon && colon[-1] == ']';
	uint32_t port;
	if (!colon || !read_count(colon + 1, 1, 65535, &port))
		return false;
	const size_t len = (size_t)(colon - text) - (is_v6 ? 2 : 0);
	if (len >= sizeof(host))
		return false;
	memcpy(host, text + is_v6, len);
	host[len] = '\0';
	return is_v6 == (strchr(host, ':') != NULL) && set_peer(host, port, peer);
}

// RFC 1918, RFC 4193, loopback and link-local.
static bool is_near(const struct plan_peer *peer)
{
	if (peer->address.ss_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)&peer->address;
		const uint32_t ip = ntohl(v4->sin_addr.s_addr);
		return ip >> 24 == 127 || ip >> 24 == 10 || ip >> 20 == 0xac1 ||
		       ip >> 16 == 0xc0a8 || ip >> 16 == 0xa9fe;
	}
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&peer->address;
	const uint8_t *ip = v6->sin6_addr.s6_addr;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) || (ip[0] & 0xfe) == 0xfc ||
	       IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
}

// Returns whether the value is one.
static bool take(int option, const char *value, struct plan *plan)
{
	uint32_t n;
	switch (option) {
	case OPTION_TARGET:
		if (!plan->host)
			plan->host = value;
		return plan->target_count < PLAN_TARGETS_MAX &&
		       read_peer(value, &plan->targets[plan->target_count++]);
	case OPTION_ROAM:
		return read_number(value, 1, &plan->roam);
	case OPTION_HOST:
		return read_text(value, &plan->host);
	case OPTION_PATH:
		return read_text(value, &plan->path) && value[0] == '/' &&
		       value[strlen(value) - 1] == '/';
	case OPTION_ROOM:
		return read_text(value, &plan->room);
	case OPTION_VISITORS:
		return read_count(value, 1, PLAN_VISITORS_MAX, &plan->visitors);
	case OPTION_SHAPE:
		return shape_read(value, &plan->shape);
	case OPTION_OVER:
		return read_number(value, 86400, &plan->over_s);
	case OPTION_NO_SHOW:
		return read_number(value, 1, &plan->no_show);
	case OPTION_TABS:
		return read_number(value, 1, &plan->tabs);
	case OPTION_SHOP:
		return read_number(value, 86400, &plan->shop_s);
	case OPTION_PAGES:
		return read_count(value, 0, 1000, &plan->pages);
	case OPTION_LEAVE:
		return read_leave(value, &plan->leave);
	case OPTION_SHOP_PORT:
		return read_count(value, 1, 65535, &n) && set_peer("127.0.0.1", n, &plan->shop);
	case OPTION_RATE:
		return read_number(value, 1e6, &plan->rate);
	case OPTION_BURST:
		return read_number(value, 1e6, &plan->burst);
	case OPTION_CAPACITY:
		return read_count(value, 0, PLAN_VISITORS_MAX, &plan->capacity);
	case OPTION_PROCESSES:
		return read_count(value, 1, PLAN_PROCESSES_MAX, &plan->processes);
	case OPTION_SECONDS:
		return read_number(value, 86400, &plan->limit_s) && plan->limit_s > 0;
	case OPTION_SEED:
		return read_count(value, 0, UINT32_MAX, &n) && (plan->seed = n, true);
	}
	return false;
}

static enum plan_result check(struct plan *plan, bool is_mine)
{
	if (plan->target_count == 0) {
		fputs(usage, stderr);
		return PLAN_WRONG;
	}
	for (uint32_t i = 0; i < plan->target_count && !is_mine; i++) {
		if (is_near(&plan->targets[i]))
			continue;
		fprintf(stderr, "crowd: a target is neither of this machine nor private; "
				"say --yes-it-is-mine if it is yours\n");
		return PLAN_WRONG;
	}
	if (plan->processes > plan->visitors)
		plan->processes = plan->visitors;
	return PLAN_OK;
}

enum plan_result plan_read(int argc, char **argv, struct plan *plan)
{
	bool is_mine = false;
	*plan = (struct plan){.path = "/derby/",
		.room = "derby",
		.roam = 0.2,
		.visitors = 100,
		.over_s = 1,
		.shop_s = 1,
		.pages = 2,
		.leave = PLAN_LEAVE_MIXED,
		.processes = 1,
		.limit_s = 600,
		.seed = 1};
	for (int option, index = 0;
		(option = getopt_long(argc, argv, "", options, &index)) != -1;) {
		if (option == OPTION_HELP) {
			fputs(usage, stdout);
			return PLAN_HELP;
		}
		if (option == OPTION_MINE)
			is_mine = true;
		else if (option == OPTION_FOREVER)
			plan->forever = true;
		else if (option == OPTION_JSON)
			plan->json = true;
		else if (option == '?')
			return PLAN_WRONG; // getopt has said why
		else if (!take(option, optarg, plan)) {
			fprintf(stderr, "crowd: --%s: '%s' cannot be; --help says what can\n",
				options[index].name, optarg);
			return PLAN_WRONG;
		}
	}
	if (optind != argc) {
		fputs(usage, stderr);
		return PLAN_WRONG;
	}
	return check(plan, is_mine);
}
