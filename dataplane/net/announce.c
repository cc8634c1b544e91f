// Rounds: each walks the port's addresses, one a look, so that a port with many does not use up the
// reserve of buffers at once.

#include "dataplane/net/announce.h"

#include "dataplane/net/arp.h"
#include "dataplane/net/mld.h"
#include "dataplane/net/nd.h"

static void announce(struct net *n, uint16_t port, const uint8_t ip[16], bool probes);

void announce_port(struct net *n, uint16_t port, bool probes)
{
	struct net_announcement *a = &n->announcements[port];
	a->rounds = ANNOUNCE_ROUNDS;
	a->probes = probes;
	a->address = 0;
	a->due_us = n->driver.now_us;
}

void announce_defend(struct net *n, uint16_t port)
{
	struct net_announcement *a = &n->announcements[port];
	uint64_t now_us = n->driver.now_us;
	if (a->rounds > 0 || (a->defended_us && now_us - a->defended_us < ANNOUNCE_DEFEND_US))
		return;
	a->rounds = 1;
	a->due_us = a->defended_us = now_us;
}

void announce_due(struct net *n)
{
	for (uint16_t port = 0; port < n->plan.port_count; port++) {
		struct net_announcement *a = &n->announcements[port];
		const struct net_port_plan *p = &n->plan.ports[port];
		if (a->rounds == 0 || a->due_us > n->driver.now_us)
			continue;
		if (a->address == 0) // before its neighbours can ask, and a switch must let them
			mld_report(n, port);
		if (a->address < p->address_count)
			announce(n, port, p->addresses[a->address++].ip, a->probes);
		if (a->address < p->address_count)
			continue;
		a->rounds--;
		a->probes = false;
		a->address = 0;
		a->due_us += ANNOUNCE_ROUND_US;
	}
}

static void announce(struct net *n, uint16_t port, const uint8_t ip[16], bool probes)
{
	if (ip_is_v4(ip)) { // an announcement makes the other one speak, as a probe would
		arp_announce(n, port, ip);
		return;
	}
	if (probes)
		nd_probe(n, port, ip);
	nd_announce(n, port, ip);
}
