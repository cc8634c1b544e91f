// The configuration: one YAML file, read once into a struct that never changes again.
// LONG: one struct for each map of keys.def, and all of them are one configuration
//
// keys.def has every key with its type, range, default and help; this header has the same keys as
// the program sees them. A reload loads a second configuration beside the first, and the caller
// frees the old one when nobody holds it. Numbers whose key may be `none` are 0 then; texts NULL.
//
// All functions run on the control thread (or before it starts). None keeps state.
//
// LONG: a struct for each mapping of the file.
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CONFIG_NAME_MAX 63 // bytes of the name of a room, site or user
#define CONFIG_ROOMS_MAX 1024 // over all sites
#define CONFIG_HOSTS_MAX 4096 // over all sites
#define CONFIG_FILE_BYTES_MAX (1u << 20)
#define CONFIG_ERRORS_MAX 1000 // listed in a report; the others are counted

enum config_driver {
	CONFIG_DRIVER_SOCKETS,
	CONFIG_DRIVER_DPDK,
};

enum config_hugepages {
	CONFIG_HUGEPAGES_AUTO,
	CONFIG_HUGEPAGES_OFF,
	CONFIG_HUGEPAGES_REQUIRED,
};

enum config_log {
	CONFIG_LOG_ERROR,
	CONFIG_LOG_WARNING,
	CONFIG_LOG_INFO,
	CONFIG_LOG_DEBUG,
};

enum config_balance {
	CONFIG_BALANCE_LEAST, // the server with the fewest requests in flight
	CONFIG_BALANCE_SESSION, // a session stays with its server
};

enum config_same_site {
	CONFIG_SAME_SITE_LAX,
	CONFIG_SAME_SITE_STRICT,
	CONFIG_SAME_SITE_NONE,
};

enum config_https {
	CONFIG_HTTPS_OFF,
	CONFIG_HTTPS_REDIRECT,
};

enum config_mode {
	CONFIG_MODE_AUTO,
	CONFIG_MODE_ALWAYS,
	CONFIG_MODE_OFF,
	CONFIG_MODE_REJECT,
	CONFIG_MODE_PEAK,
};

enum config_order {
	CONFIG_ORDER_ARRIVAL,
	CONFIG_ORDER_WINDOW, // drawn, window by window
};

enum config_event_order {
	CONFIG_EVENT_ORDER_ROOM, // the room's
	CONFIG_EVENT_ORDER_ARRIVAL,
	CONFIG_EVENT_ORDER_WINDOW,
};

enum config_event_mode {
	CONFIG_EVENT_MODE_ROOM, // the room's
	CONFIG_EVENT_MODE_AUTO,
	CONFIG_EVENT_MODE_ALWAYS,
	CONFIG_EVENT_MODE_OFF,
	CONFIG_EVENT_MODE_REJECT,
	CONFIG_EVENT_MODE_PEAK,
};

enum config_on_store_loss {
	CONFIG_ON_STORE_LOSS_HOLD, // nobody new is let in, everyone keeps the place
	CONFIG_ON_STORE_LOSS_SHARE, // this appliance's share of the rate
	CONFIG_ON_STORE_LOSS_OPEN, // everyone is let in
	CONFIG_ON_STORE_LOSS_REJECT, // newcomers are turned away
};

enum config_store_kind {
	CONFIG_STORE_EMBEDDED,
	CONFIG_STORE_REDIS, // one server
	CONFIG_STORE_SENTINEL, // sentinels, who know the server
	CONFIG_STORE_UNIX, // one server, by its socket
};

// Where something listens. IPv4 is stored mapped (::ffff:a.b.c.d).
struct config_address {
	const char *text; // as written
	uint8_t ip[16];
	uint16_t port;
};

// A network: the first `bits` of `ip` count. IPv4 is stored mapped, its bits 96 to 128.
struct config_network {
	const char *text;
	uint8_t ip[16];
	uint8_t bits;
};

// An address within its network.
struct config_interface {
	const char *text;
	uint8_t ip[16]; // IPv4 mapped
	uint8_t bits; // of 128; IPv4's are 96 to 128
};

// IPv4 mapped.
struct config_ip {
	const char *text;
	uint8_t ip[16];
};

// A server of an origin. A name is resolved by whoever connects.
struct config_server {
	const char *text;
	const char *host; // an address without brackets, or a name in lower case
	uint16_t port;
};

// `count` in each `period_ms`; count 0: no limit.
struct config_rate {
	uint64_t count;
	uint64_t period_ms; // 1000, 60000 or 3600000
};

// Lists are `count` elements from `at` on; `at` is NULL when there are none.
struct config_cores {
	uint32_t count;
	uint64_t *at;
};

struct config_texts {
	uint32_t count;
	const char **at;
};

struct config_networks {
	uint32_t count;
	struct config_network *at;
};

struct config_servers {
	uint32_t count;
	struct config_server *at;
};

#define CONFIG_SENTINELS_MAX 16

// Where what must last is kept. An absent user is NULL, and db 0.
struct config_store {
	const char *text; // as written
	enum config_store_kind kind;
	const char *user;
	struct config_servers servers; // the one, or the sentinels; none for a socket
	const char *name; // of the primary among sentinels, or the path of the socket; else NULL
	uint64_t db;
};

// This appliance among others.
struct config_cluster {
	const char *appliance;
	const char *name; // of the cluster
	uint64_t sync_ms;
	const char *key_file;
};

struct config_interfaces {
	uint32_t count;
	struct config_interface *at;
};

struct config_ips {
	uint32_t count;
	struct config_ip *at;
};

// A network port that sluice drives itself.
struct config_port {
	const char *device;
	struct config_interfaces addresses;
	struct config_ips gateways;
	uint64_t vlan; // 0: untagged
	uint64_t mtu;
	const char *exception; // an interface, or "auto" or "none"
};

struct config_ports {
	uint32_t count;
	struct config_port *at;
};

struct config_dpdk {
	enum config_hugepages hugepages;
	uint64_t resets; // in a second and worker; 0: as many as it has connections
	uint64_t idle_sleep_us; // at a time, of a worker with nothing to do; 0: it polls
	struct config_ports ports;
};

// Files, all but `ocsp` in PEM.
struct config_certificate {
	const char *certificate;
	const char *key;
	const char *ocsp; // NULL: none
};

struct config_certificates {
	uint32_t count;
	struct config_certificate *at;
};

struct config_listen {
	struct config_address address;
	bool proxy_protocol;
	struct config_certificates tls; // none: plain
};

struct config_listens {
	uint32_t count;
	struct config_listen *at;
};

struct config_http {
	uint64_t line_bytes, head_bytes, fields; // limits of a request head, and of an origin's
	uint64_t head_timeout_ms; // absolute, from the first byte (or the accept) to the blank line
	uint64_t body_timeout_ms; // absolute, for a whole body
	uint64_t idle_timeout_ms; // between requests
	uint64_t send_timeout_ms; // a peer that takes nothing of what is queued for it
	uint64_t rate_min; // bytes/s; a body that comes slower for send_timeout is given up
};

struct config_buffers {
	uint64_t size_bytes;
	uint64_t per_worker;
	uint64_t queue_bytes; // queued for one peer, above which its source is paused
};

// TLS to an origin.
struct config_tls {
	const char *ca; // file; NULL: the system's
	const char *name; // asked for (SNI) and verified; NULL: the server's host
};

struct config_origin {
	struct config_servers servers;
	enum config_balance balance;
	struct config_tls *tls; // NULL: plain
	uint64_t connect_timeout_ms;
	uint64_t answer_timeout_ms; // from the request sent to the answer's head, and between reads
	uint64_t idle_timeout_ms; // a kept connection; 0: none is kept
	uint64_t idle_max; // kept per worker and server
	uint64_t fails; // failures in a row that set a server aside
	uint64_t retry_ms; // for how long
};

// How long a window gathers: a time, or as many people; both 0: none.
struct config_window {
	uint64_t s;
	uint64_t people;
};

// What holds from its gathering to its closing; 0, NULL and `room`: as the room has it.
struct config_event {
	const char *name; // NULL: none
	uint64_t opens_s; // unix s
	uint64_t closes_s; // unix s; 0: never
	uint64_t prequeue_s; // how long before people gather
	const char *salt; // hex
	uint64_t capacity;
	struct config_rate rate;
	uint64_t burst;
	uint64_t session_s;
	enum config_event_order order;
	struct config_window window;
	enum config_event_mode mode;
	const char *pages, *pages_language;
	const char *message;
};

struct config_events {
	uint32_t count;
	struct config_event *at;
};

// Capacity and rate of several rooms together.
struct config_pool {
	const char *name;
	uint64_t capacity; // people; 0: no limit
	struct config_rate rate;
	uint64_t burst; // people; at least 1
};

struct config_pools {
	uint32_t count;
	struct config_pool *at;
};

// A line of its own within a room.
struct config_lane {
	const char *name;
	uint64_t priority, weight; // among the room's lines
	const char *header, *header_value; // NULL: none; anything
	const char *codes; // a file; NULL: none
	struct config_networks addresses;
	const char *full_name; // derived: ROOM/LANE
	uint32_t line_id; // derived: low 32 bits of XXH3-64 of that
};

struct config_lanes {
	uint32_t count;
	struct config_lane *at;
};

struct config_room {
	const char *name;
	const char *path;
	uint64_t capacity; // people; 0: no limit
	struct config_rate rate;
	uint64_t burst; // people; at least 1
	uint64_t session_s;
	uint64_t claim_s;
	bool sliding;
	enum config_mode mode;
	const char *pages; // NULL: the site's
	const char *pages_language; // NULL: likewise
	uint64_t queue_status; // 200, 202, 429 or 503
	uint64_t ticket_ttl_s;
	uint64_t line_max; // people; 0: no limit
	enum config_on_store_loss on_store_loss;
	enum config_order order;
	struct config_window window;
	uint64_t window_max_s; // how long a window by number stays open
	uint64_t opens_s; // unix s; 0: the doors are open
	uint64_t closes_s; // unix s; 0: never
	uint64_t prequeue_s; // how long before the opening people gather; 0: not at all
	const char *salt; // hex; NULL: none
	struct config_events events; // instead of these three
	const char *pool; // NULL: none
	uint64_t priority, weight; // in the pool
	struct config_rate inflow; // newcomers a minute in mode peak; count 0: no limit
	struct config_rate batch; // people in each period; count 0: no limit
	bool batch_spread;
	uint64_t line_priority, line_weight; // of its own line among the lanes
	struct config_lanes lanes;
	uint32_t line_id; // derived: low 32 bits of XXH3-64 of the name
};

struct config_rooms {
	uint32_t count;
	struct config_room *at;
};

struct config_site {
	const char *name;
	struct config_texts hosts; // lower case, without a trailing dot; wildcards as "*.x"
	bool case_sensitive;
	const char *cookie_domain; // NULL: none
	enum config_same_site pass_same_site;
	enum config_https https; // of plain listeners
	uint64_t https_port;
	uint64_t hsts_s; // 0: none
	struct config_rate preflight_rate;
	const char *pages; // NULL: those of the program
	const char *pages_language;
	struct config_origin *origin;
	struct config_rooms rooms;
};

struct config_sites {
	uint32_t count;
	struct config_site *at;
};

struct config {
	enum config_driver driver;
	struct config_cores workers; // count 0: all but one
	uint64_t connections;
	uint64_t origin_connections;
	uint64_t connections_per_source;
	uint64_t tls_connections; // of the connections
	uint64_t tls_handshakes; // a second and worker; 0: no limit
	uint64_t code_attempts; // in vain, of a source in a minute
	const char *state;
	const char *user; // NULL: sluice where that user exists
	uint64_t drain_ms;
	enum config_log log;
	struct config_dpdk *dpdk; // NULL: absent
	struct config_listens listen;
	struct config_networks trusted_proxies;
	struct config_http *http;
	struct config_buffers *buffers;
	uint64_t sessions_max; // per room
	uint64_t present_max; // per room
	uint64_t left_max; // per room
	uint64_t ended_max;
	uint64_t gathered_max; // per room
	struct config_store store;
	const char *store_password_file; // NULL: none
	uint64_t codes_bytes; // that the lists of codes take, once they have been checked
	struct config_cluster *cluster; // NULL: alone
	struct config_pools pools;
	struct config_sites sites;
};

// What the memory bill counts by.
enum config_per {
	CONFIG_PER_PROCESS,
	CONFIG_PER_WORKER,
	CONFIG_PER_CONNECTION,
	CONFIG_PER_SOCKET, // connections, if they are the kernel's
	CONFIG_PER_PROXIED, // connections, if a listener speaks the PROXY protocol
	CONFIG_PER_ORIGIN_CONNECTION,
	CONFIG_PER_ORIGIN_TLS, // origin_connections, if an origin has TLS
	CONFIG_PER_TLS, // tls_connections, if a listener has TLS
	CONFIG_PER_BUFFER, // buffers.per_worker of each worker
	CONFIG_PER_BUFFER_BYTE, // buffers.size of each of them
	CONFIG_PER_HEAD_BYTE, // http.head_max of each of them
	CONFIG_PER_ROOM,
	CONFIG_PER_SESSION, // sessions_max of each room
	CONFIG_PER_PRESENT, // present_max of each room
	CONFIG_PER_LEFT, // left_max of each room
	CONFIG_PER_GATHERED, // gathered_max of each room where people gather
	CONFIG_PER_GATHERED_SHARED, // the same, where appliances share it; else none
	CONFIG_PER_ENDED,
	CONFIG_PER_PORT_BYTE, // what ports_bytes() of the bill says
	CONFIG_PER_NETWORK_BYTE, // and network_bytes()
	CONFIG_PER_CODES_BYTE, // of lists of codes
	CONFIG_PER_LANE, // 1 if a room has any
	CONFIG_PER_CLUSTER, // 1 if the store is shared
	CONFIG_PER_SHARED_ROOM, // rooms, if it is
	CONFIG_PER_CLUSTER_BYTE, // what cluster_bytes() of the bill says, if it is
};

// One line of the bill: a table or pool, filled in by whoever knows the size of its entries.
struct config_bill_row {
	const char *name;
	enum config_per per;
	uint32_t times; // entries for each of `per`
	uint64_t entry_bytes;
};

struct config_bill {
	uint32_t row_count;
	const struct config_bill_row *rows;
	// What no product says: what all ports take of DPDK's memory, and the network on them.
	// NULL: nothing.
	uint64_t (*port_bytes)(const struct config *config, uint32_t worker_count);
	uint64_t (*network_bytes)(const struct config *config, uint32_t worker_count);
	// What an appliance of a cluster takes besides. NULL: nothing.
	uint64_t (*cluster_bytes)(const struct config *config, uint32_t worker_count);
};

// What is wrong with the files of a certificate.
#define CONFIG_FAULT_BYTES 600
struct config_fault {
	const char *key; // of struct config_certificate
	bool is_warning; // they can be used all the same
	char text[CONFIG_FAULT_BYTES]; // begins with the name of the file
};

// Say that something is wrong in a file that the configuration names; line 0: with the file itself.
typedef void config_say(
	void *context, const char *file, uint32_t line, uint32_t column, const char *text);

// What `check` measures a configuration against.
struct config_machine {
	uint64_t descriptors; // RLIMIT_NOFILE, hard
	uint64_t memory_bytes;
	cpu_set_t cores; // that this process may run on
	bool (*has_user)(const char *name);
	// What is wrong with a file of certificates (NULL: the system's), beginning with its name;
	// NULL: nothing. Without this function such files are not looked at.
	const char *(*ca_error)(const char *path);
	// What is wrong with the file of a password, or of a cluster's key; NULL: nothing.
	// Likewise.
	const char *(*password_error)(const char *path);
	const char *(*cluster_key_error)(const char *path);
	uint64_t hugepages, hugepages_free; // of the size that most memory is set aside in
	uint64_t hugepage_bytes;
	// Whether something is wrong with a certificate and its key. Likewise.
	bool (*certificate_fault)(
		const struct config_certificate *files, struct config_fault *fault);
	// How many errors are in the templates of a folder; each is said. Likewise.
	uint32_t (*pages_check)(
		const char *path, const char *language, config_say *say, void *context);
	// Likewise of the codes of a file; `warn` is told what is no error, `bytes` what they take.
	uint32_t (*codes_check)(void *codes_context, const char *path, uint64_t *bytes,
		config_say *say, config_say *warn, void *context);
	void *codes_context;
	// What is to be done meanwhile: called before each folder, of which one takes milliseconds,
	// and each file of codes, of which a long one takes more; NULL: nothing.
	void (*turn)(void *context);
	void *turn_context;
	uint64_t now_s; // unix s; 0: nothing is said of moments that are past
	// The salt that was named for those who gather now before the doors of a room, in hex, and
	// what time it is; NULL: none was. Without this function none was.
	const char *(*named_salt)(void *context, const char *room, uint64_t *now_s);
	void *named_salt_context;
	struct config_bill bill; // no rows: memory is not checked
};

// The machine that this process runs on, with an empty bill; the caller adds its own.
void config_machine_read(struct config_machine *machine);

// What was wrong: `count` texts of the form `FILE:LINE:COLUMN: ...`, in the order of the file, of
// which the first CONFIG_ERRORS_MAX are listed; among them warnings, which do not count. Begin with
// {0}; config_report_fini() frees the texts.
struct config_report {
	uint32_t count; // errors
	uint32_t listed; // errors and warnings
	uint32_t warnings; // of those
	struct config_error *errors;
};

struct config_error {
	uint32_t line, column; // from 1
	char *text; // one line, without its end
};

// Write each error on a line of its own, and how many more there were.
void config_report_print(const struct config_report *report, FILE *out);

// The same as a list of objects (jansson), the caller's: line, column, text.
struct json_t *config_report_json(const struct config_report *report);

// Free what it holds.
void config_report_fini(struct config_report *report);

// Read, parse and check the file `path`.
//   machine  what to measure it against
//   config   filled on success; the caller ends it with config_destroy()
//   report   gets every error, not only the first
// Returns 0, -EINVAL with at least one error in the report, or -ENOMEM.
int config_load(const char *path, const struct config_machine *machine, struct config **config,
	struct config_report *report);

// The same from memory. `path` names the text in errors, and relative files are looked for beside
// it. Does no I/O but what `machine` does.
int config_read(const char *path, const char *text, size_t len,
	const struct config_machine *machine, struct config **config, struct config_report *report);

// Accepts NULL.
void config_destroy(struct config *config);

// Only the folder `state`, whatever else is wrong with the file, so that the running process can be
// found and asked while its next configuration is being written.
//   state  CONFIG_STATE_BYTES bytes
// Returns 0, -EINVAL with the errors in the report (no file, not YAML, a bad `state`), or -ENOMEM.
#define CONFIG_STATE_BYTES 8192
int config_load_state(const char *path, char *state, struct config_report *report);

// Write the keys that differ and that only a restart can change, one a line. Returns how many.
uint32_t config_diff(const struct config *now, const struct config *next, FILE *out);

// Write the memory bill as a grid: name, entries, bytes each, bytes; then the total.
//   worker_count  workers that will run
void config_bill_print(const struct config *config, const struct config_bill *bill,
	uint32_t worker_count, FILE *out);

// The same as a list of objects (jansson), the caller's, without the total.
struct json_t *config_bill_json(
	const struct config *config, const struct config_bill *bill, uint32_t worker_count);

// Its total, in bytes; UINT64_MAX if it does not fit.
uint64_t config_bill_total(
	const struct config *config, const struct config_bill *bill, uint32_t worker_count);

// The folder of templates, and the language of its files, that a room has, or (`room` NULL) what of
// a site lies outside its rooms.
const char *config_pages(const struct config_site *site, const struct config_room *room);
const char *config_pages_language(const struct config_site *site, const struct config_room *room);

// No configuration of that many sites, rooms and events has more of them.
uint64_t config_pages_most(const struct config *config);

// Whether people may gather in the room, before its doors open or in windows.
bool config_room_gathers(const struct config_room *room);

// The room as it is while an event is under way (NULL: none): with what that overrides, but for its
// times and its message.
struct config_room config_room_during(
	const struct config_room *room, const struct config_event *event);

// The same by the event's place in the list from 1; 0: none is under way.
struct config_room config_room_during_nth(const struct config_room *room, uint32_t nth);

// The pool of that name, or NULL.
const struct config_pool *config_find_pool(const struct config *config, const char *name);

// Rooms of all sites, and lines: these and their lanes.
uint64_t config_room_count(const struct config *config);
uint64_t config_line_count(const struct config *config);

// How many workers run on `machine`: as many as named, else one on each core but one, at least one.
uint32_t config_worker_count(const struct config *config, const struct config_machine *machine);

// The table of keys: as a grid for people, as a JSON array, as the page sluice.yaml(5) in mdoc, and
// as a commented example that is itself a valid configuration.
void config_print_keys(FILE *out);
void config_print_json(FILE *out);
void config_print_manual(FILE *out);
void config_print_example(FILE *out);
