// The answers are rendered as a worker does, for somebody far behind in a room with the plan's
// first name; the page is the one that comes with the program, in English.

#include "controlplane/simulate/sizes.h"

#include "controlplane/pages/folder.h"
#include "dataplane/gate/answer.h"
#include "dataplane/gate/page.h"
#include "dataplane/gate/rooms.h"

#include <string.h>

#define SEGMENT_BYTES 1448u // of an MTU of 1500, with TCP timestamps
#define HEADERS_BYTES 66u // Ethernet, IPv4, TCP with timestamps
#define RECORD_BYTES 22u // TLS 1.3: header, type, tag
#define SETUP_PACKETS 3u // SYN-ACK, FIN and an acknowledgement
#define NOW_S 1800000000u

static double on_wire(uint64_t bytes, bool tls)
{
	if (bytes == 0)
		return 0;
	const uint64_t all = bytes + (tls ? RECORD_BYTES : 0);
	const uint64_t packets = (all + SEGMENT_BYTES - 1) / SEGMENT_BYTES + 1; // and an ACK
	return (double)(all + packets * HEADERS_BYTES);
}

static const struct decision waiting = {.action = DECIDE_ANSWER,
	.ticket = {.kind = TOKEN_TICKET, .issued = NOW_S},
	.status = {.state = STATUS_waiting,
		.exact = true,
		.poll_after = 45,
		.position = 847382,
		.ahead = 846110,
		.ahead_min = STATUS_UNKNOWN,
		.eta_low = 12000,
		.eta_high = 15000,
		.now = NOW_S}};

static uint32_t measure(const struct gate_request *request, bool tls)
{
	static char out[ANSWER_BYTES_MAX];
	struct token_secrets secrets = {.current = 1};
	const struct carry_stale stale = {0};
	const struct answer_frame frame = {.date = "Fri, 15 Jan 2027 08:00:00 GMT",
		.secrets = &secrets,
		.now_s = NOW_S,
		.minor = 1,
		.is_secure = tls,
		.site = request->site,
		.stale = &stale};
	struct decision decision = waiting;
	token_secrets_add(&secrets, 1, (const uint8_t *)"0123456789abcdef", 16);
	decision.sets_ticket = request->route == GATE_ROUTE_GUARDED;
	decision.answer = decision.sets_ticket ? DECIDE_PAGE : DECIDE_STATUS;
	return (uint32_t)answer_render(&decision, request, &frame, out);
}

int sizes_measure(const struct plan *plan, struct sizes *sizes)
{
	static const uint8_t encodings[] = {[PLAN_ENCODING_BR] = ACCEPT_BR,
		[PLAN_ENCODING_GZIP] = ACCEPT_GZIP,
		[PLAN_ENCODING_IDENTITY] = ACCEPT_IDENTITY};
	const struct plan_traffic *traffic = plan->traffic;
	const char *name = plan->rooms.at[0].name;
	const struct template_ear ear = {NULL, NULL}; // nothing is wrong with them
	struct folder *folder;
	int ret = folder_read(NULL, "en", NULL, &ear, NULL, &folder);
	if (ret < 0)
		return ret;
	const struct gate_site site = {.name = {"shop", 4}};
	const struct gate_room room = {.name = {name, (uint32_t)strlen(name)},
		.queue_status = 200,
		.ticket_ttl_s = 86400,
		.pages = folder_set(folder)};
	struct gate_request request = {.route = GATE_ROUTE_STATUS,
		.method = HTTP_GET,
		.site = &site,
		.room = &room,
		.encoding = encodings[traffic->encoding]};
	sizes->poll = measure(&request, traffic->tls);
	request.route = GATE_ROUTE_GUARDED;
	sizes->page = measure(&request, traffic->tls);
	folder_give(folder);
	sizes->poll_wire = on_wire(sizes->poll, traffic->tls);
	sizes->page_wire = on_wire(sizes->page, traffic->tls);
	sizes->view_wire = on_wire(traffic->view_bytes, traffic->tls);
	sizes->connection_wire = SETUP_PACKETS * HEADERS_BYTES +
				 (traffic->tls ? on_wire(traffic->handshake_bytes, false) : 0);
	return 0;
}
