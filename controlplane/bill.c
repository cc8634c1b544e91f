// The rows of the bill. Pools that are mapped and touched only in use (kept bytes, the places file)
// are counted in full, since a crowd can make them so.

#include "controlplane/bill.h"

#include "controlplane/trusts.h"
#include "dataplane/gate/claim.h"
#include "dataplane/gate/ended.h"
#include "dataplane/gate/place.h"
#include "dataplane/tls/tls.h"
#include "dataplane/worker.h"
#include "drivers/sockets/sockets.h"

#define SESSION_BYTES 200u // of a controller (controller.h)
#define PRESENT_BYTES 72u
#define LEFT_BYTES 40u
#define HEAD_BYTES_TYPICAL (16u << 10) // the default of http.head
#define BUFFER_BYTES_TYPICAL (16u << 10) // the default of buffers.size
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

void bill_machine(struct config_machine *machine)
{
	static struct config_bill_row rows[] = {
		{"connections", CONFIG_PER_CONNECTION, 1, 0},
		{"streams", CONFIG_PER_CONNECTION, 1, 0},
		{"streams to origins", CONFIG_PER_ORIGIN_CONNECTION, 1, 0},
		{"send buffers", CONFIG_PER_BUFFER, 1, BUFFER_BYTES_TYPICAL},
		{"receive buffers", CONFIG_PER_BUFFER, 2, 4096},
		{"kept heads and requests", CONFIG_PER_BUFFER, 1,
			HEAD_BYTES_TYPICAL + BILL_KEPT_BYTES},
		{"worker", CONFIG_PER_WORKER, 1, 0},
		{"claim and answer rings", CONFIG_PER_WORKER, 2,
			BILL_RING_LEN * sizeof(struct claim)},
		{"lines (file)", CONFIG_PER_ROOM, 1, 0},
		{"sessions", CONFIG_PER_SESSION, 1, SESSION_BYTES},
		{"present", CONFIG_PER_PRESENT, 1, PRESENT_BYTES},
		{"tickets given back", CONFIG_PER_LEFT, 1, LEFT_BYTES},
		{"ended sessions", CONFIG_PER_ENDED, 1, 0},
		{"TLS to origins", CONFIG_PER_ORIGIN_TLS, 1, 0},
	};
	rows[0].entry_bytes = worker_connection_bytes();
	rows[1].entry_bytes = rows[2].entry_bytes = stream_bytes();
	rows[6].entry_bytes = worker_fixed_bytes();
	rows[8].entry_bytes =
		sizeof(struct place_line) + BILL_LINE_ENTRIES * sizeof(struct place_entry);
	rows[12].entry_bytes = ended_bytes(1u << 16) >> 16;
	rows[13].entry_bytes = tls_stream_bytes() + TLS_STREAM_BYTES;
	config_machine_read(machine);
	machine->ca_error = trusts_error;
	machine->bill = (struct config_bill){sizeof(rows) / sizeof(rows[0]), rows};
}
