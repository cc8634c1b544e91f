// The memory bill: what the tables and pools take that are allocated at start.
//
// Who allocates knows the size of an entry, the configuration knows how many there are; the rows
// bring both together. All arithmetic saturates: a bill that does not fit is UINT64_MAX.

#include "config/config.h"

#include <assert.h>
#include <jansson.h>

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;
	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

uint64_t config_room_count(const struct config *config)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < config->sites.count; i++)
		count += config->sites.at[i].rooms.count;
	return count;
}

// Rooms where people gather, and the lanes of these.
static uint64_t gathering_lines(const struct config *config)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < config->sites.count; i++)
		for (uint32_t j = 0; j < config->sites.at[i].rooms.count; j++) {
			const struct config_room *room = &config->sites.at[i].rooms.at[j];
			count += config_room_gathers(room) ? 1 + room->lanes.count : 0;
		}
	return count;
}

uint64_t config_line_count(const struct config *config)
{
	uint64_t count = config_room_count(config);
	for (uint32_t i = 0; i < config->sites.count; i++)
		for (uint32_t j = 0; j < config->sites.at[i].rooms.count; j++)
			count += config->sites.at[i].rooms.at[j].lanes.count;
	return count;
}

static bool has_origin_tls(const struct config *config)
{
	for (uint32_t i = 0; i < config->sites.count; i++)
		if (config->sites.at[i].origin && config->sites.at[i].origin->tls)
			return true;
	return false;
}

static bool has_tls(const struct config *config)
{
	for (uint32_t i = 0; i < config->listen.count; i++)
		if (config->listen.at[i].tls.count > 0)
			return true;
	return false;
}

static bool has_proxy(const struct config *config)
{
	for (uint32_t i = 0; i < config->listen.count; i++)
		if (config->listen.at[i].proxy_protocol)
			return true;
	return false;
}

static bool is_shared(const struct config *config)
{
	return config->store.kind != CONFIG_STORE_EMBEDDED;
}

static uint64_t buffer_count(const struct config *config, uint32_t worker_count)
{
	return times(config->buffers->per_worker, worker_count);
}

static uint64_t asked(uint64_t (*bytes)(const struct config *, uint32_t),
	const struct config *config, uint32_t worker_count)
{
	return bytes ? bytes(config, worker_count) : 0;
}

static uint64_t count_per(const struct config *config, const struct config_bill *bill,
	enum config_per per, uint32_t worker_count)
{
	switch (per) {
	case CONFIG_PER_PROCESS:
		return 1;
	case CONFIG_PER_WORKER:
		return worker_count;
	case CONFIG_PER_CONNECTION:
		return config->connections;
	case CONFIG_PER_SOCKET:
		return config->driver == CONFIG_DRIVER_SOCKETS ? config->connections : 0;
	case CONFIG_PER_PROXIED:
		return has_proxy(config) ? config->connections : 0;
	case CONFIG_PER_ORIGIN_CONNECTION:
		return config->origin_connections;
	case CONFIG_PER_ORIGIN_TLS:
		return has_origin_tls(config) ? config->origin_connections : 0;
	case CONFIG_PER_TLS:
		return has_tls(config) ? config->tls_connections : 0;
	case CONFIG_PER_BUFFER:
		return buffer_count(config, worker_count);
	case CONFIG_PER_BUFFER_BYTE:
		return times(buffer_count(config, worker_count), config->buffers->size_bytes);
	case CONFIG_PER_HEAD_BYTE:
		return times(buffer_count(config, worker_count), config->http->head_bytes);
	case CONFIG_PER_ROOM:
		return config_line_count(config);
	case CONFIG_PER_SESSION:
		return times(config->sessions_max, config_line_count(config));
	case CONFIG_PER_PRESENT:
		return times(config->present_max, config_line_count(config));
	case CONFIG_PER_LEFT:
		return times(config->left_max, config_line_count(config));
	case CONFIG_PER_GATHERED:
		return times(config->gathered_max, gathering_lines(config));
	case CONFIG_PER_GATHERED_SHARED:
		return is_shared(config) ? times(config->gathered_max, gathering_lines(config)) : 0;
	case CONFIG_PER_ENDED:
		return config->ended_max;
	case CONFIG_PER_PORT_BYTE:
		return asked(bill->port_bytes, config, worker_count);
	case CONFIG_PER_NETWORK_BYTE:
		return asked(bill->network_bytes, config, worker_count);
	case CONFIG_PER_CODES_BYTE:
		return config->codes_bytes;
	case CONFIG_PER_LANE:
		return config_line_count(config) > config_room_count(config);
	case CONFIG_PER_CLUSTER:
		return is_shared(config);
	case CONFIG_PER_SHARED_ROOM:
		return is_shared(config) ? config_line_count(config) : 0;
	case CONFIG_PER_CLUSTER_BYTE:
		return is_shared(config) ? asked(bill->cluster_bytes, config, worker_count) : 0;
	}
	assert(!"a config_per without a count");
	return 0;
}

static uint64_t row_entries(const struct config *config, const struct config_bill *bill,
	const struct config_bill_row *row, uint32_t worker_count)
{
	return times(count_per(config, bill, row->per, worker_count), row->times);
}

uint64_t config_bill_total(
	const struct config *config, const struct config_bill *bill, uint32_t worker_count)
{
	uint64_t total = 0;
	for (uint32_t i = 0; i < bill->row_count; i++) {
		const struct config_bill_row *row = &bill->rows[i];
		uint64_t bytes =
			times(row_entries(config, bill, row, worker_count), row->entry_bytes);
		if (__builtin_add_overflow(total, bytes, &total))
			return UINT64_MAX;
	}
	return total;
}

json_t *config_bill_json(
	const struct config *config, const struct config_bill *bill, uint32_t worker_count)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < bill->row_count; i++) {
		const struct config_bill_row *row = &bill->rows[i];
		uint64_t entries = row_entries(config, bill, row, worker_count);
		json_array_append_new(list,
			json_pack("{s:s, s:I, s:I, s:I}", "memory", row->name, "entries",
				(json_int_t)entries, "bytes_each", (json_int_t)row->entry_bytes,
				"bytes", (json_int_t)times(entries, row->entry_bytes)));
	}
	return list;
}

void config_bill_print(const struct config *config, const struct config_bill *bill,
	uint32_t worker_count, FILE *out)
{
	fprintf(out, "%-28s %12s %12s %16s\n", "memory", "entries", "bytes each", "bytes");
	for (uint32_t i = 0; i < bill->row_count; i++) {
		const struct config_bill_row *row = &bill->rows[i];
		uint64_t entries = row_entries(config, bill, row, worker_count);
		fprintf(out, "%-28s %12lu %12lu %16lu\n", row->name, entries, row->entry_bytes,
			times(entries, row->entry_bytes));
	}
	fprintf(out, "%-28s %12s %12s %16lu\n", "total", "", "",
		config_bill_total(config, bill, worker_count));
}
