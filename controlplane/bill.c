// The rows of the bill. Pools that are mapped and touched only in use (kept bytes, the places file)
// are counted in full, since a crowd can make them so.

#include "controlplane/bill.h"

#include "controlplane/appliance/appliance.h"
#include "controlplane/certificates.h"
#include "controlplane/clock.h"
#include "controlplane/codes/codes_lists.h"
#include "controlplane/codes/moves.h"
#include "controlplane/folders.h"
#include "controlplane/link/link_password.h"
#include "controlplane/ports.h"
#include "controlplane/store/seal.h"
#include "controlplane/store/store.h"
#include "controlplane/trusts.h"
#include "dataplane/gate/claim.h"
#include "dataplane/gate/ended.h"
#include "dataplane/gate/place.h"
#include "dataplane/guard.h"
#include "dataplane/tls/tls.h"
#include "dataplane/worker.h"
#include "drivers/proxy/proxy.h"
#include "drivers/sockets/sockets.h"

#include <string.h>

#define SESSION_BYTES 200u // of a controller (controller.h)
#define PRESENT_BYTES 72u
#define LEFT_BYTES 40u
#define ENDED_BYTES (ended_bytes(1u << 16) >> 16)
#define RECORDS_BYTES ((sizeof(struct store_record) + 16) * 8 / 3) // see claims_records()
#define SAMPLE 1024u

// What one more of something adds to a sockets driver.
static uint64_t stream_bytes(void)
{
	struct sockets_plan one = {.streams_max = SAMPLE,
		.connects_max = SAMPLE,
		.receive_count = 64,
		.receive_bytes = 4096,
		.send_count = 64,
		.send_bytes = 4096,
		.queue_high = 4096};
	struct sockets_plan two = one;
	two.streams_max = 2 * SAMPLE;
	return (sockets_bytes(&two) - sockets_bytes(&one)) / SAMPLE;
}

// What one more request in flight adds to the origin side.
static uint64_t exchange_bytes(void)
{
	struct origin_plan one, two;
	origin_plan_init(&one, SAMPLE, 1);
	origin_plan_init(&two, 2 * SAMPLE, 1);
	return (origin_plan_bytes(&two) - origin_plan_bytes(&one)) / SAMPLE;
}

void bill_machine(struct config_machine *machine)
{
	const uint64_t line_bytes =
		sizeof(struct place_line) + BILL_LINE_ENTRIES * sizeof(struct place_entry);
	const struct config_bill_row known[] = {
		{"connections", CONFIG_PER_CONNECTION, 1, worker_connection_bytes()},
		{"streams", CONFIG_PER_SOCKET, 1, stream_bytes()},
		{"PROXY headers", CONFIG_PER_PROXIED, 1, proxy_stream_bytes()},
		{"network", CONFIG_PER_NETWORK_BYTE, 1, 1},
		{"ports (DPDK's memory)", CONFIG_PER_PORT_BYTE, 1, 1},
		{"streams to origins", CONFIG_PER_ORIGIN_CONNECTION, 1, stream_bytes()},
		{"exchanges with origins", CONFIG_PER_ORIGIN_CONNECTION, 1,
			exchange_bytes() + worker_errand_bytes()},
		{"send buffers", CONFIG_PER_BUFFER_BYTE, 1, 1},
		{"receive buffers", CONFIG_PER_BUFFER, 2, 4096},
		{"kept heads", CONFIG_PER_HEAD_BYTE, 1, 1},
		{"kept requests", CONFIG_PER_BUFFER, 1, BILL_KEPT_BYTES},
		{"worker", CONFIG_PER_WORKER, 1, worker_fixed_bytes()},
		{"claim and answer rings", CONFIG_PER_WORKER, 2,
			BILL_RING_LEN * sizeof(struct claim)},
		{"lines (file)", CONFIG_PER_ROOM, 1, line_bytes},
		{"sessions", CONFIG_PER_SESSION, 1, SESSION_BYTES},
		{"records for the store", CONFIG_PER_SESSION, 1, RECORDS_BYTES},
		{"present", CONFIG_PER_PRESENT, 1, PRESENT_BYTES},
		{"tickets given back", CONFIG_PER_LEFT, 1,
			LEFT_BYTES + RECORDS_BYTES + ENDED_BYTES},
		{"gathered", CONFIG_PER_GATHERED, 3, 8}, // ids, hashes, and what sorts them
		{"gathered on all", CONFIG_PER_GATHERED_SHARED, 1, 8},
		{"guard of codes", CONFIG_PER_PROCESS, 1, guard_bytes()},
		{"codes", CONFIG_PER_CODES_BYTE, 1, 1},
		{"moves to lanes", CONFIG_PER_LANE, 1, moves_bytes()},
		{"ended sessions", CONFIG_PER_ENDED, 1, ENDED_BYTES},
		{"ranks of a cluster", CONFIG_PER_SHARED_ROOM, 1, appliance_line_bytes()},
		{"a cluster's member", CONFIG_PER_CLUSTER_BYTE, 1, 1},
		{"link to the store", CONFIG_PER_CLUSTER, 1, appliance_link_bytes()},
		{"TLS of visitors", CONFIG_PER_TLS, 1, tls_stream_bytes() + TLS_VISITOR_BYTES},
		{"TLS to origins", CONFIG_PER_ORIGIN_TLS, 1, tls_stream_bytes() + TLS_STREAM_BYTES},
	};
	static struct config_bill_row rows[sizeof(known) / sizeof(known[0])];
	memcpy(rows, known, sizeof(rows));
	config_machine_read(machine);
	machine->now_s = clock_system_ms() / 1000;
	machine->ca_error = trusts_error;
	machine->bill = (struct config_bill){.row_count = sizeof(rows) / sizeof(rows[0]),
		.rows = rows,
		.port_bytes = ports_bytes,
		.network_bytes = ports_network_bytes,
		.cluster_bytes = appliance_bytes};
	machine->certificate_fault = certificates_fault;
	machine->password_error = link_password_error;
	machine->cluster_key_error = seal_key_error;
	machine->pages_check = folders_check;
	machine->codes_check = codes_lists_check;
}
